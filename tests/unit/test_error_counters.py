"""Errors of paths and ports: read where the kernel counts them, reported once, derived, recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from collectors.graph import Graph
from collectors.model import Device, Rows, Sample, Table
from collectors.rates import derive
from collectors.sampling import slow_counters
from collectors.sampling.slow_counters import SlowCounters, SlowPace
from collectors.tables.block.counters import BlockCollector
from collectors.tables.block.error_readers import (
    MOST_EVENTS,
    PathErrors,
    PortErrors,
    path_error_events,
    port_error_events,
)
from collectors.tables.block.schema import PATH_ERRORS, PORT_ERRORS
from collectors.topology.scanner import TopologyScanner
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import FakeScsi, add_fc_disk, add_fc_host, add_nvme_controller, add_nvme_namespace
from tests.unit.raw_samples import RAW_MISSING, disks, raw_table, sample
from tests.unit.test_block_tables import WHO, did, topology


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def scan(kernel: FakeKernel) -> tuple[dict[str, Device], Graph]:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    return TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)


def by_name(table: Table | None) -> dict[str, list[int]]:
    """Counts of each row; of ports without those of the transports, of which the others are sums."""
    return {} if table is None else dict(zip(table.rows.names, table.values[:, :5].tolist(), strict=True))


def test_scsi_errors_and_timeouts_are_hexadecimal(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=1).build()
    kernel.set("sda", "device/ioerr_cnt", "0x1f\n")
    kernel.set("sda", "device/iotmo_cnt", "0x2\n")
    kernel.set("sdb", "device/ioerr_cnt", "0x0\n")
    errors = PathErrors(str(kernel.sysfs))
    _, graph = scan(kernel)
    first = errors.take(graph)
    assert by_name(first) == {
        "sda": [31, 2, RAW_MISSING, RAW_MISSING],
        "sdb": [0, RAW_MISSING, RAW_MISSING, RAW_MISSING],
    }
    second = errors.take(graph)
    assert first is not None
    assert second is not None
    assert first.rows is second.rows


def test_nvme_paths_have_theirs_where_the_kernel_is_new_enough(kernel: FakeKernel) -> None:
    add_nvme_namespace(kernel, 1, [add_nvme_controller(kernel, number) for number in range(2)])
    _, graph = scan(kernel)
    assert PathErrors(str(kernel.sysfs)).take(graph) is None
    for name, value in (("command_error_count", 4), ("command_retry_count", 5), ("multipath_failover_count", 6)):
        kernel.set("nvme0c0n1", f"diag/{name}", f"{value}\n")
    assert by_name(PathErrors(str(kernel.sysfs)).take(graph)) == {"nvme0c0n1": [4, RAW_MISSING, 5, 6]}


@pytest.mark.parametrize("text", ["", "none\n", "-1\n", "0xffffffffffffffff\n", "1 2\n"])
def test_what_is_no_count_is_missing(kernel: FakeKernel, text: str) -> None:
    FakeScsi(kernel, hosts=1, luns=1).build()
    kernel.set("sda", "device/ioerr_cnt", text)
    kernel.set("sda", "device/iotmo_cnt", "0x0\n")
    assert by_name(PathErrors(str(kernel.sysfs)).take(scan(kernel)[1])) == {
        "sda": [RAW_MISSING, 0, RAW_MISSING, RAW_MISSING]
    }


def test_a_tree_that_is_gone_counts_nothing(kernel: FakeKernel, tmp_path: Path) -> None:
    FakeScsi(kernel, hosts=1, luns=1).build()
    graph = scan(kernel)[1]
    assert PathErrors(str(tmp_path / "none")).take(graph) is None
    assert PortErrors(str(tmp_path / "none")).take(graph) is None


def test_fc_counters_are_added_up_and_virtual_ports_not_twice(kernel: FakeKernel) -> None:
    folder = add_fc_host(kernel, 3, "0x10000090fa000001")
    virtual = add_fc_host(kernel, 5, "0x20010090fa000001", below=folder)
    add_fc_disk(kernel, "sda", folder, 3, target_wwpn="0x5000000000000aaa")
    for at in (f"{folder}/fc_host/host3", f"{virtual}/fc_host/host5"):
        statistics = kernel.sysfs / "devices" / at / "statistics"
        statistics.mkdir()
        for name, value in (("link_failure_count", "0x3"), ("loss_of_sync_count", "0xffffffffffffffff"),
                            ("invalid_crc_count", "0x10")):  # fmt: skip
            (statistics / name).write_text(f"{value}\n")
    assert by_name(PortErrors(str(kernel.sysfs)).take(scan(kernel)[1])) == {
        "host3": [RAW_MISSING, 3, 16, RAW_MISSING, RAW_MISSING]
    }


def test_controllers_count_resets_and_reconnects(kernel: FakeKernel) -> None:
    folder = add_nvme_controller(kernel, 0, "tcp", "traddr=10.0.0.2,trsvcid=4420,src_addr=10.0.0.1")
    add_nvme_namespace(kernel, 1, [folder])
    (kernel.sysfs / "class/nvme/nvme0/diag").mkdir()
    kernel.set_class("nvme", "nvme0", "diag/reset_count", "2")
    kernel.set_class("nvme", "nvme0", "diag/reconnect_count", "7")
    assert by_name(PortErrors(str(kernel.sysfs)).take(scan(kernel)[1])) == {
        "nvme0": [RAW_MISSING, RAW_MISSING, RAW_MISSING, 2, 7]
    }


def table_of(**counts: tuple[int, int]) -> Table:
    who = Rows(tuple(f"{name}:8:0:1" for name in counts), tuple(counts))
    return raw_table(PATH_ERRORS, who, [{"errors": each[0], "timeouts": each[1]} for each in counts.values()])


def test_new_errors_of_a_path_are_an_event() -> None:
    about = topology()
    tell = path_error_events(lambda: about.devices)
    before, now = table_of(sd0h0=(5, 0), sd0h1=(1, 1)), table_of(sd0h0=(17, 3), sd0h1=(1, 1))
    (event,) = tell(before, now, about.graph)
    assert (event.kind, event.text) == (EventKind.PATH, "path sd0h0 of dm-0: 12 errors, 3 timeouts")
    assert (event.data["path"], event.data["lun"], event.data["errors"]) == ("sd0h0", "dm-0", 12)
    assert list(tell(now, now, about.graph)) == []
    assert list(tell(now, before, about.graph)) == []
    assert list(tell(table_of(), now, about.graph)) == []


def test_very_many_paths_with_errors_are_one_event() -> None:
    names = [f"sd{number}" for number in range(MOST_EVENTS + 1)]
    before = table_of(**dict.fromkeys(names, (0, 0)))
    now = table_of(**dict.fromkeys(names, (2, 0)))
    (event,) = path_error_events(dict)(before, now, Graph())
    assert event.text == f"paths: {len(names)} with new errors: {2 * len(names)} errors"


def test_new_errors_of_a_port_are_an_event() -> None:
    who = Rows(("p0",), ("host3",))
    before = raw_table(PORT_ERRORS, who, [{"link_errors": 1, "frame_errors": RAW_MISSING}])
    now = raw_table(PORT_ERRORS, who, [{"link_errors": 4, "frame_errors": 9}])
    (event,) = port_error_events(before, now, Graph())
    assert (event.text, event.data) == ("port host3: 3 link errors", {"port": "host3", "link_errors": 3})


def test_errors_stand_beside_the_figures_and_add_up_by_port() -> None:
    about = topology()
    keys = [WHO.keys[WHO.names.index(name)] for name in ("sd0h0", "sd1h0", "sd0h1")]
    who = Rows(tuple(keys), ("sd0h0", "sd1h0", "sd0h1"))

    def at(moment: int, *counts: int) -> Sample:
        errors = raw_table(PATH_ERRORS, who, [{"errors": count, "timeouts": RAW_MISSING} for count in counts])
        busy = {"sd0h0": did(9, 1, 9)}
        taken = sample(moment, disks=disks(WHO, *(busy.get(name, {}) for name in WHO.names)), topology=about)
        return replace(taken, tables={**taken.tables, "path_errors": errors})

    frame = derive(at(1, 5, 5, 5), at(2, 7, 8, 5))
    paths, ports = frame.tables["paths"], frame.tables["hbas"]
    new = dict(zip(paths.rows.names, paths.columns["new_errors"].tolist(), strict=True))
    assert (new["sd0h0"], new["sd1h0"], new["sd0h1"]) == (2, 3, 0)
    assert np.isnan(new["sd2h0"])
    assert ports.columns["new_errors"].tolist() == [5, 0]
    assert np.isnan(ports.columns["new_timeouts"]).all()
    totals = dict(zip(paths.rows.names, paths.columns["errors"].tolist(), strict=True))
    assert (totals["sd0h0"], totals["sd1h0"]) == (7, 8)
    assert np.isnan(ports.columns["new_link_errors"]).all()


class _Counts:
    """Something that counts one more at every reading, on a thread that is not the test's."""

    def __init__(self) -> None:
        self.taken = 0
        self.rows = Rows(("p0",), ("host0",))
        self.again = threading.Event()

    def take(self, graph: Graph) -> Table | None:
        if not graph.luns:
            return None
        self.taken += 1
        if self.taken > 2:
            self.again.set()
        return raw_table(PORT_ERRORS, self.rows, [{"resets": self.taken}])


@pytest.fixture
def counts() -> _Counts:
    return _Counts()


@pytest.fixture
def slow(counts: _Counts) -> Iterator[SlowCounters]:
    pace = SlowPace(least_s=0.001, share=0.5, longest_s=0.01)
    reader = SlowCounters("test", lambda: topology().graph, counts.take, pace, port_error_events)
    yield reader
    reader.close()


def test_slow_counters_hand_over_their_last_table_and_every_event(counts: _Counts, slow: SlowCounters) -> None:
    assert counts.again.wait(10)
    events: list[Event] = []
    reading = slow.read()
    end = time.monotonic() + 10
    while len(events) < 2 and time.monotonic() < end:
        events += reading.events
        reading = slow.read()
    assert [event.text for event in events[:2]] == ["port host0: 1 resets"] * 2
    assert reading.tables["port_errors"].rows is counts.rows


def test_a_failing_reader_is_reported() -> None:
    def fail(graph: Graph) -> Table | None:
        raise OSError(5, "Input/output error")

    reader = SlowCounters("test", Graph, fail, SlowPace(1, 1, 1))

    def read_on() -> None:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            reader.read()
            time.sleep(0.001)

    with pytest.raises(RuntimeError, match="Input/output error"):
        read_on()
    reader.close()


def test_without_luns_the_pace_holds_after_the_first_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_counters, "FIRST_POLL_S", 0.0001)
    paced = threading.Event()
    calls: list[float] = []

    class Pace(SlowPace, frozen=True):
        def pause_s(self, cost_s: float) -> float:
            calls.append(cost_s)
            paced.set()
            return 60.0

    taken: list[Graph] = []

    def take(graph: Graph) -> Table | None:
        taken.append(graph)
        return None

    reader = SlowCounters("test", Graph, take, Pace(60, 1, 60))
    assert paced.wait(10)
    reader.close()
    assert (len(taken), len(calls)) == (slow_counters.FIRST_POLLS, 1)


def test_the_pace_follows_what_a_reading_costs() -> None:
    pace = SlowPace(least_s=30, share=0.002, longest_s=600)
    assert [pace.pause_s(cost_s) for cost_s in (0.0, 0.01, 0.1, 5)] == [30, 30, 50, 600]


def test_sas_counts_its_own_phys_and_not_those_of_expanders(kernel: FakeKernel) -> None:
    folder = "pci0000:00/0000:00:09.0/host9"
    kernel.add_class("scsi_host", "host9", f"{folder}/scsi_host/host9", proc_name="mpt3sas", can_queue=512)
    kernel.add_class("sas_host", "host9", f"{folder}/sas_host/host9")
    for phy, lost in (("phy-9:0", 2), ("phy-9:1", 3), ("phy-9:0:0", 100), ("phy-8:0", 100)):
        kernel.add_class("sas_phy", phy, f"{folder}/{phy}/sas_phy/{phy}", loss_of_dword_sync_count=lost,
                         invalid_dword_count=1)  # fmt: skip
    kernel.add(FakeDisk("sda", at=f"{folder}/port-9:0/end_device-9:0/target9:0:0/9:0:0:0/block/sda"))
    assert by_name(PortErrors(str(kernel.sysfs)).take(scan(kernel)[1])) == {
        "host9": [RAW_MISSING, 5, 2, RAW_MISSING, RAW_MISSING]
    }
