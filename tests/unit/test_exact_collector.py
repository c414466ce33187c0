"""The collector of exact time over a tracer in the test's hand: keys, lives, groups, losses, and a tracer that dies."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from collectors.exact.begun_before import READINGS
from collectors.exact.collector import ExactCollector
from collectors.exact.tracer import Tracer
from collectors.exact.tracer_supervisor import TracerSupervisor
from collectors.graph import Graph, Path, Port
from collectors.model import MISSING, Device, Rows, Topology
from collectors.sampling.reading import Reading
from collectors.tables.block.schema import NO_TAG_WAITS, SLOW_IO, TAG_WAITS_TIMED, TRACE
from engine.errors import LunscopeError
from tests.unit.hand_tracer import HandTracer

DISKS = Rows(("sda:8:0#1", "sdb:8:16#2", "cciss/c0d0:104:0#3"), ("sda", "sdb", "cciss/c0d0"))
PATIENCE_S = 10


class Host:
    """What the collector looks at: a tracer, the rows of the disk table, the topology."""

    def __init__(self) -> None:
        self.tracer = HandTracer()
        self.disks = DISKS
        self.topology = Topology()
        self.opened = threading.Semaphore(0)
        self.refusal = ""
        self.attachment = TracerSupervisor(self.open, first_pause_s=0.001)
        self.in_flight = [0, 0, 0]
        self.collector = ExactCollector(
            self.attachment,
            lambda: self.disks,
            lambda: self.topology,
            in_flight=lambda: np.array(self.in_flight, np.uint64),
        )

    def open(self) -> Tracer:
        self.opened.release()
        if self.refusal:
            raise LunscopeError(self.refusal)
        return self.tracer

    def start(self) -> None:
        self.attachment.start()
        self.attachment.wait(PATIENCE_S)

    def attempts(self, count: int) -> None:
        for _ in range(count):
            assert self.opened.acquire(timeout=PATIENCE_S)


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.collector.close()


def column(reading: Reading, column_id: str, table: str = "trace") -> list[int]:
    return [int(value) for value in reading.tables[table].column(column_id)]


def test_nothing_is_handed_over_before_the_tracer_is_there(host: Host) -> None:
    assert host.collector.read().tables == {}
    assert not host.collector.delivers


def test_rows_have_the_keys_of_the_disk_table(host: Host) -> None:
    host.start()
    host.tracer.add("sdb", 8, 16, reads=5)
    host.tracer.add("sdz", 65, 144, reads=9)
    host.tracer.add("cciss/c0d0", 104, 0, writes=2)
    reading = host.collector.read()
    assert reading.tables["trace"].rows.keys == (DISKS.keys[1], DISKS.keys[2])
    assert column(reading, "reads") == [5, 0]
    assert column(reading, "writes") == [0, 2]
    assert [event.text.partition(",")[0] for event in reading.events] == ["exact time: block tracepoints are watched"]


def test_an_io_that_hangs_since_before_tracing_may_have_kept_the_disk_busy(host: Host) -> None:
    """The kernel has it in flight at every reading; under load it has more than were seen to begin at some."""
    host.start()
    host.tracer.add("sda", 8, 0, reads=1, in_flight_now=1)
    host.tracer.add("sdb", 8, 16, reads=1, in_flight_now=1)
    host.in_flight = [2, 2, 0]
    lost = [column(host.collector.read(), "lost_in_driver_ns") for _ in range(READINGS - 1)]
    assert lost == [[0, 0]] * (READINGS - 1)
    host.in_flight = [2, 1, 0]
    first = column(host.collector.read(), "lost_in_driver_ns")
    second = column(host.collector.read(), "lost_in_driver_ns")
    host.in_flight = [1, 2, 0]
    third = column(host.collector.read(), "lost_in_driver_ns")
    assert 0 < first[0] < second[0] == third[0]
    assert first[1] == third[1] == 0


@pytest.mark.parametrize(("busy_ns", "counts"), [(0, True), (70, True), (int(MISSING), False)])
def test_a_tracer_that_counts_no_busy_time_is_known(busy_ns: int, *, counts: bool, host: Host) -> None:
    """The samplers go on then: programs for old kernels count everything else."""
    assert not host.collector.counts_busy
    host.start()
    host.tracer.add("sda", 8, 0, reads=5, busy_ns=busy_ns)
    host.collector.read()
    assert host.collector.delivers
    assert host.collector.counts_busy is counts


def test_a_name_under_another_number_is_another_device(host: Host) -> None:
    host.start()
    host.tracer.add("sda", 8, 32, reads=5)
    assert len(host.collector.read().tables["trace"].rows) == 0


def test_rows_stay_one_object_while_nobody_comes_or_goes(host: Host) -> None:
    host.start()
    host.tracer.add("sda", 8, 0, reads=5)
    first = host.collector.read().tables["trace"].rows
    assert host.collector.read().tables["trace"].rows is first


def test_histograms_follow_the_rows(host: Host) -> None:
    host.start()
    host.tracer.add("sdz", 65, 144)
    host.tracer.add("sda", 8, 0)
    host.tracer.finish(0, 2, 40, 7)
    host.tracer.finish(1, 3, 41, 8)
    cells = host.collector.read().histograms["trace"]
    assert (cells.row.tolist(), cells.series_index.tolist(), cells.bucket.tolist(), cells.count.tolist()) == (
        [0],
        [3],
        [41],
        [8],
    )


def test_a_device_under_an_old_name_begins_at_zero_with_a_key_of_its_own(host: Host) -> None:
    host.start()
    row = host.tracer.add("sda", 8, 0, reads=1_000, in_driver_peak=4)
    host.collector.read()
    host.tracer.grow(row, reads=10, in_driver_peak=3)
    host.disks = Rows(("sda:8:0#9", *DISKS.keys[1:]), DISKS.names)
    first = host.collector.read()
    assert first.tables["trace"].rows.keys == ("sda:8:0#9",)
    assert column(first, "reads") == [0]
    assert column(first, "in_driver_peak") == [int(MISSING)]
    host.tracer.grow(row, reads=7, in_driver_peak=2)
    second = host.collector.read()
    assert column(second, "reads") == [7]
    assert column(second, "in_driver_peak") == [2]


def test_a_device_that_vanished_has_no_row_and_comes_back_as_the_same(host: Host) -> None:
    host.start()
    row = host.tracer.add("sda", 8, 0, reads=10)
    host.collector.read()
    host.disks = Rows(DISKS.keys[1:], DISKS.names[1:])
    assert len(host.collector.read().tables["trace"].rows) == 0
    host.disks = DISKS
    host.tracer.grow(row, reads=5)
    assert column(host.collector.read(), "reads") == [15]


def graph(*names: str, port: str = "p0") -> Graph:
    paths = tuple(Path(f"{name}:8:0#1", name, "lun", port) for name in names)
    return Graph(ports=(Port(port, "host0", "fc"),), paths=paths)


def test_groups_follow_the_graph_and_a_changed_one_is_missing_once(host: Host) -> None:
    host.start()
    host.topology = Topology(graph=graph("sda", "sdb"))
    first = host.collector.read().tables["trace_group"]
    assert host.tracer.groups == [["sda", "sdb"]]
    assert first.rows.keys == ("hba p0",)
    assert int(first.values[0, 0]) == int(MISSING)
    host.tracer.group_values = [[77, 1]]
    assert column(host.collector.read(), "busy_ns", "trace_group") == [77]
    host.topology = Topology(graph=graph("sda", "sdb", "sdc"))
    assert column(host.collector.read(), "busy_ns", "trace_group") == [int(MISSING)]


def test_a_graph_that_says_the_same_regroups_nothing(host: Host) -> None:
    host.start()
    host.topology = Topology(graph=graph("sda"))
    host.collector.read()
    host.tracer.group_values = [[77, 1]]
    host.topology = Topology(graph=graph("sda"))
    assert column(host.collector.read(), "busy_ns", "trace_group") == [77]


def test_losses_that_matter_are_reported_once_a_minute(host: Host) -> None:
    host.start()
    row = host.tracer.add("sda", 8, 0, reads=10)
    host.tracer.lost = {"unseen": 30}
    host.collector.read()
    host.tracer.grow(row, reads=10_000)
    host.tracer.lost = {"unseen": 33, "rescued": 500}
    few = host.collector.read()
    assert few.events == ()
    assert column(few, "unseen", "tracer") == [33]
    assert column(few, "stale", "tracer") == [int(MISSING)]
    host.tracer.grow(row, reads=10_000)
    host.tracer.lost = {"unseen": 33, "table_full": 300}
    (event,) = host.collector.read().events
    assert event.text == "exact time: of 10,300 I/Os 300 not tracked (table full)"
    assert event.data == {"table_full": 300}
    host.tracer.lost = {"table_full": 900}
    assert host.collector.read().events == ()


def test_a_tracer_that_dies_is_reported_once_and_replaced(host: Host) -> None:
    host.start()
    host.attempts(1)
    host.tracer.add("sda", 8, 0, reads=5)
    host.collector.read()
    dead = host.tracer
    host.refusal = "the probe helper is not there"
    dead.trouble = "the probe helper ended"
    lost = host.collector.read()
    assert lost.tables == {}
    assert [event.text for event in lost.events] == ["no exact time: the probe helper ended"]
    assert dead.closed == 1
    assert not host.collector.delivers
    host.attempts(3)
    host.tracer = HandTracer()
    host.refusal = ""
    while not host.collector.delivers:
        host.attempts(1)
        host.collector.read()
    host.tracer.add("sda", 8, 0, reads=2)
    assert column(host.collector.read(), "reads") == [2]


def test_a_refusal_is_reported_once_however_often_it_comes(host: Host) -> None:
    host.refusal = "no right to trace: run as root"
    host.start()
    host.attempts(4)
    assert [event.text for event in host.collector.read().events] == ["no exact time: no right to trace: run as root"]
    assert host.attachment.refusal == "no right to trace: run as root"


def test_closing_detaches(host: Host) -> None:
    host.start()
    host.collector.close()
    host.collector.close()
    assert host.tracer.closed == 1
    assert host.collector.read().tables == {}


def tag_topology(requests: int) -> Topology:
    return Topology({DISKS.keys[0]: Device(DISKS.keys[0], "sda", "disk", 8, 0, nr_requests=requests)})


def test_a_full_queue_has_waits_for_tags_watched_for_a_while(host: Host) -> None:
    host.start()
    host.topology = tag_topology(64)
    row = host.tracer.add("sda", 8, 0, in_driver_peak=63)
    host.collector.read()
    assert host.tracer.tag_wait == []
    host.tracer.grow(row, in_driver_peak=64)
    assert column(host.collector.read(), "tag_wait_on", "tracer") == [0]
    assert host.tracer.tag_wait == [True]
    assert column(host.collector.read(), "tag_wait_on", "tracer") == [1]
    for _ in range(40):
        host.collector.read()
    assert host.tracer.tag_wait == [True, False]


def test_a_scheduler_that_is_full_counts_however_few_its_driver_holds(host: Host) -> None:
    host.start()
    host.topology = tag_topology(256)
    row = host.tracer.add("sda", 8, 0, in_driver_peak=128, in_flight_now=255)
    host.collector.read()
    assert host.tracer.tag_wait == []
    host.tracer.grow(row, in_flight_now=256)
    host.collector.read()
    assert host.tracer.tag_wait == [True]


def test_where_the_kernel_counts_sleeps_for_tags_they_decide(host: Host) -> None:
    host.start()
    host.topology = tag_topology(64)
    host.tracer.lost["tag_sleeps"] = 5
    host.tracer.add("sda", 8, 0, in_driver_peak=64)
    known = [column(host.collector.read(), "tag_wait_on", "tracer") for _ in range(4)]
    assert known == [[0], [0], [NO_TAG_WAITS], [NO_TAG_WAITS]]
    assert host.tracer.tag_wait == []
    host.tracer.lost["tag_sleeps"] = 6
    assert column(host.collector.read(), "tag_wait_on", "tracer") == [0]
    assert host.tracer.tag_wait == [True]
    assert column(host.collector.read(), "tag_wait_on", "tracer") == [TAG_WAITS_TIMED]
    assert column(host.collector.read(), "tag_wait_on", "tracer") == [TAG_WAITS_TIMED | NO_TAG_WAITS]
    for _ in range(40):
        host.collector.read()
    assert host.tracer.tag_wait == [True, False]


def test_the_operator_has_waits_for_tags_watched_or_not(host: Host) -> None:
    host.start()
    host.collector.ask_tag_wait(True)
    host.collector.read()
    host.collector.ask_tag_wait(False)
    host.collector.read()
    assert host.tracer.tag_wait == [True, False]


def test_bio_based_devices_that_come_have_their_probes_attached(host: Host) -> None:
    host.start()
    host.topology = tag_topology(64)
    host.collector.read()
    bio = Device("dm-0:253:0#4", "dm-0", "dm", 253, 0, bio_based=True)
    host.topology = Topology({**host.topology.devices, bio.key: bio})
    host.collector.read()
    host.collector.read()
    assert host.tracer.rescans == 1
    other = Device("dm-1:253:1#5", "dm-1", "dm", 253, 1, bio_based=True)
    host.topology = Topology({**host.topology.devices, other.key: other})
    host.collector.read()
    assert host.tracer.rescans == 2


def test_slow_ios_are_the_slowest_of_every_device(host: Host) -> None:
    host.start()
    first, second = host.tracer.add("sda", 8, 0), host.tracer.add("sdb", 8, 16)
    for place in range(40):
        host.tracer.slow(first, "postgres", done_ns=100 + place, latency_ns=1_000 - place, queue_ns=1)
    host.tracer.slow(second, "a" * 15 + "\udcff", done_ns=200, latency_ns=3, queue_ns=2)
    table = host.collector.read().tables["slow_io"]
    assert table.column("completed_ns").tolist() == [100, 101, 102, 103, 104, 105, 106, 107, 200]
    assert table.column("minor").tolist() == [0] * 8 + [16]
    names = table.values[[0, -1]][:, [SLOW_IO.index("command_low"), SLOW_IO.index("command_high")]].astype("<u8")
    assert [name.tobytes().rstrip(b"\0") for name in names] == [b"postgres", b"a" * 15 + b"\xff"]


def test_without_slow_ios_the_table_is_empty(host: Host) -> None:
    host.start()
    assert host.collector.read().tables["slow_io"].values.shape == (0, len(SLOW_IO.columns))


def test_columns_are_those_of_the_native_core() -> None:
    from collectors.exact.tracer import SLOW_COLUMNS
    from engine import _native

    assert [column.id for column in TRACE.columns] == _native.TRACE_COLUMNS
    assert list(SLOW_COLUMNS) == _native.SLOW_COLUMNS


def test_values_are_64_bit(host: Host) -> None:
    host.start()
    host.tracer.add("sda", 8, 0)
    assert host.collector.read().tables["trace"].values.dtype == np.uint64
