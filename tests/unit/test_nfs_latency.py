"""Times of NFS calls: which mount they are of, percentiles by operation and transport, recorded, averaged."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from collectors.latency.history import LatencyHistory
from collectors.latency.nfs_subjects import all_subjects, nfs_subjects
from collectors.latency.slow_calls import NO_CALLS, slow_calls
from collectors.latency.summary import summarize
from collectors.model import Frame, Sample, Step
from collectors.rates import derive
from collectors.reports.export import Selection, export_lines
from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.sampling.programs import NO_TRANSPORT, NfsCalls, NfsProgram, NfsSlowCalls
from collectors.sampling.reading import Reading
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.tables.nfs.latency import NfsLatency
from collectors.tables.nfs.reader import NfsCollector
from collectors.tables.nfs.schema import NFS_LATENCY
from engine.replacing import replace
from tests.fake_nfs import FakeMount, write_client, write_mountstats, write_switch
from tests.unit import raw_samples as raw

PATIENCE_S = 60.0
TWO = ("tcp 0 0 2 0 0 100 100 0 300 0 10 50 200",) * 2
_QUEUE, _RTT, _EXECUTE = range(3)
DONE_NS = 999_000_000_000
Call = tuple[int, int, int, str, int, int, int]
"""Client, transport, version, operation; its queue, RTT and execute time in microseconds."""


def bucket_of_us(us: int) -> int:
    octave = max(us.bit_length() - 5, 0)
    return (octave << 4) + (us >> octave)


class HandCalls:
    """Calls as a test makes them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.slow: list[Call] = []
        self.lost = 0, 0
        self.closed = False

    def read(self) -> NfsCalls:
        if self.closed:
            raise OSError(9, "closed")
        groups = [(key, list(each)) for key, each in itertools.groupby(sorted(self.calls), key=lambda call: call[:4])]
        self.slow, self.calls = sorted(self.calls, key=lambda call: -call[6]), []
        rows, cells = [], []
        for at, ((client, transport, version, _), calls) in enumerate(groups):
            times = np.array([call[4:] for call in calls])
            rows.append([client, transport, version, len(calls), *times.sum(axis=0), *times.max(axis=0)])
            cells += [[at, part, bucket_of_us(int(us)), 1] for call in times for part, us in enumerate(call)]
        names = [key[3] for key, _ in groups]
        return np.array(rows, np.uint64).reshape(-1, 10), names, np.array(cells, np.uint64).reshape(-1, 4)

    def slowest(self) -> NfsSlowCalls:
        """All of them; those of 40 us in queue were ended by process 42."""
        rows = [
            [DONE_NS, call[0], call[1], call[2], *call[4:], 0xABC, *((42,) if call[4] == 40 else (0,))]
            for call in self.slow
        ]
        commands = ["=dd" if call[4] == 40 else "" for call in self.slow]
        return np.array(rows, np.uint64).reshape(-1, 9), [call[3] for call in self.slow], commands

    def losses(self) -> tuple[int, int]:
        return self.lost

    def close(self) -> None:
        self.closed = True


class Lab:
    """A host with NFS mounts whose calls a test makes."""

    def __init__(self, tmp_path: Path) -> None:
        self.procfs, self.sysfs = tmp_path / "proc", tmp_path / "sys"
        self.procfs.mkdir()
        self.program = HandCalls()
        self._collector: NfsCollector | None = None

    def open(self, open_program: Callable[[], NfsProgram] | None = None) -> None:
        """Begin, and wait until the program is attached."""
        latency = NfsLatency(open_program or (lambda: self.program))
        self._collector = NfsCollector(str(self.procfs), str(self.sysfs), latency)
        self.until(lambda reading: NFS_LATENCY.name in reading.tables or bool(reading.events))

    def read(self, *calls: Call) -> Reading:
        assert self._collector is not None
        self.program.calls += calls
        return self._collector.read()

    def sample(self, at_s: int, *calls: Call) -> Sample:
        reading = self.read(*calls)
        tables, histograms = dict(reading.tables), dict(reading.histograms)
        return replace(raw.sample(at_s), tables=tables, histograms=histograms, events=reading.events)

    def until(self, wanted: Callable[[Reading], bool]) -> Reading:
        deadline_s = time.monotonic() + PATIENCE_S
        while not wanted(reading := self.read()) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        return reading

    def close(self) -> None:
        if self._collector is not None:
            self._collector.close()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


def two_mounts(lab: Lab, *, links: bool, at: Sequence[str] = ("/a", "/b")) -> None:
    """Two file systems on the two transports 7 and 5 of one server; 3 is the client of its lease."""
    mounts = [FakeMount(point, export=f"server:{point}", transports=TWO) for point in at]
    write_mountstats(lab.procfs, *mounts)
    write_switch(lab.sysfs, 1, 5, [{"main_xprt": 1}, {"main_xprt": 0}])
    for client in range(3, 4 + len(at)):
        write_client(lab.sysfs, client, switch=1)
    for device in range(len(at)):
        if links:
            write_client(lab.sysfs, 4 + device, switch=1, of=f"0:{device}", link="nfs_client")
            write_client(lab.sysfs, 3, switch=1, of=f"0:{device}", link="nfs_state_client")


def timed(reading: Reading) -> dict[str, int]:
    table = reading.tables[NFS_LATENCY.name]
    return {name: int(count) for name, count in zip(table.rows.names, table.column("calls"), strict=True) if count}


def row(frame: Frame, table: str, name: str) -> dict[str, float]:
    found = frame.tables[table]
    at = found.rows.names.index(name)
    return {field_id: float(values[at]) for field_id, values in found.columns.items()}


def reads(count: int, client: int = 4, transport: int = 5, rtt_us: int = 1000) -> list[Call]:
    return [(client, transport, 4, "READ", 10, rtt_us, rtt_us + 100)] * count


def test_links_of_the_kernel_say_which_mount_a_call_is_of(lab: Lab) -> None:
    two_mounts(lab, links=True)
    lab.open()
    lease = (3, 6, 4, "SEQUENCE", 1, 2, 3)
    reading = lab.read(*reads(3), *reads(2, client=5, transport=6), lease)
    assert timed(reading) == {"/a READ 1": 3, "/b READ 2": 2, "/a SEQUENCE 2": 1, "/b SEQUENCE 2": 1}
    found = reading.histograms[NFS_LATENCY.name]
    assert int(found.count.sum()) == 3 * (3 + 2 + 2)
    assert reading.events == ()
    assert timed(lab.read()) == {}


def test_a_client_that_alone_uses_transports_is_of_their_mount(lab: Lab) -> None:
    two_mounts(lab, links=False, at=("/a",))
    lab.open()
    assert timed(lab.read(*reads(1, transport=NO_TRANSPORT))) == {"/a READ": 1}
    assert timed(lab.read(*reads(1, transport=6))) == {"/a READ 2": 1}


def test_calls_of_mounts_that_share_transports_are_listed_by_client(lab: Lab) -> None:
    two_mounts(lab, links=False)
    lab.open()
    before, now = lab.sample(1), lab.sample(2, *reads(100), *reads(7, client=5))
    frame = derive(before, now)
    assert row(frame, "nfs", "192.0.2.1 RPC client-4 READ")["rtt_p99_ms"] == pytest.approx(1, rel=0.04)
    assert row(frame, "nfs", "192.0.2.1 RPC client-5 all")["timed_per_s"] == 7
    assert row(frame, "nfs", "/a all")["timed_per_s"] == 0
    document = next(iter(report_json([Step(before, now)], ReportOptions(("nfs",)))))
    by_client = [each for each in json.loads(document)["nfs"] if each["mount"] == "-"]
    assert {(each["export"], each["server"]) for each in by_client} == {
        ("client-4", "192.0.2.1"),
        ("client-5", "192.0.2.1"),
    }
    assert ["Linux 6.5" in event.text for event in now.events] == [True]


def test_file_systems_mounted_elsewhere_make_it_uncertain(lab: Lab) -> None:
    two_mounts(lab, links=False, at=("/a",))
    (lab.procfs / "fs/nfsfs/volumes").write_text("NV SERVER PORT DEV FSID FSC\nv4 c0000201 801 0:77 0:0 no\n")
    lab.open()
    assert timed(lab.read(*reads(1))) == {"192.0.2.1 RPC client-4 READ": 1}


def test_percentiles_of_operations_and_transports(lab: Lab) -> None:
    two_mounts(lab, links=True)
    lab.open()
    write = (4, 6, 4, "WRITE", 500, 3000, 4000)
    before, now = lab.sample(1), lab.sample(2, *reads(99), *reads(1, transport=6, rtt_us=50_000), write)
    frame = derive(before, now)
    read, whole = row(frame, "nfs", "/a READ"), row(frame, "nfs", "/a all")
    assert (read["timed_per_s"], whole["timed_per_s"]) == (100, 101)
    assert read["rtt_p50_ms"] == read["rtt_p99_ms"] == pytest.approx(1, rel=0.04)
    assert (read["rtt_max_ms"], read["execute_max_ms"], read["queue_max_ms"]) == (50, 50.1, 0.01)
    assert whole["queue_max_ms"] == 0.5
    # The second largest of 101: the write.
    assert whole["execute_p99_ms"] == pytest.approx(4, rel=0.04)
    first, second = (row(frame, "nfs_transports", f"/a tcp {number}") for number in (1, 2))
    assert (first["timed_per_s"], second["timed_per_s"]) == (99, 2)
    assert (first["rtt_max_ms"], second["rtt_max_ms"]) == (1, 50)
    assert np.isnan(first["rtt_p99_ms"])
    assert row(frame, "nfs", "/b all")["timed_per_s"] == 0


def test_a_recording_keeps_them_and_averages_add_all_intervals_up(lab: Lab, tmp_path: Path) -> None:
    two_mounts(lab, links=True)
    lab.open()
    path = tmp_path / "r.luns"
    moments = [lab.sample(1), lab.sample(2, *reads(60)), lab.sample(3, *reads(60, rtt_us=8000))]
    with SessionWriter(path) as writer:
        for each in moments:
            writer.write(each)
    with SessionReader(path) as reader:
        steps = list(reader.steps(1, 2))
    documents = [json.loads(line) for line in report_json(steps, ReportOptions(("nfs",)))]
    rows = [next(each for each in one["nfs"] if each["name"] == "/a READ") for one in documents]
    assert [each["execute_max_ms"] for each in rows] == [1.1, 8.1]
    assert [each["execute_p99_ms"] for each in rows] == [None, None]
    lines = report_text(steps, ReportOptions(("nfs",), distribution=True, all_disks=True))
    average = next(line for line in reversed(list(lines)) if line.startswith("Average") and "/a READ" in line).split()
    assert average[-3:] == ["1.120", "8.064", "8.100"]


def test_the_history_of_latencies_has_a_subject_per_mount_and_operation(lab: Lab) -> None:
    two_mounts(lab, links=True)
    lab.open()
    before, now = lab.sample(1), lab.sample(2, *reads(100), *reads(50, client=5, rtt_us=9000))
    history = LatencyHistory()
    history.add(Step(before, now))
    subjects = {one.title: one for one in all_subjects(derive(before, now), history.offered())}
    assert list(subjects) == ["NFS mount /a", "NFS /a READ", "NFS mount /b", "NFS /b READ"]
    history.follow(subjects["NFS mount /b"])
    ticks = history.ticks()
    assert ticks is not None
    summary = summarize(ticks, ("rtt_read", "rtt_write", "rtt_other"))
    assert (summary.ios, summary.max_ns) == (50, 9e6)
    assert [(peak.name, peak.what) for peak in history.peaks(0, 1 << 62, 1)] == [("/b READ 1", "total")]


def test_what_cannot_be_timed_is_missing_and_an_event_says_why_once(lab: Lab) -> None:
    def refused() -> NfsProgram:
        raise OSError(1, "not permitted")

    two_mounts(lab, links=True)
    latency = NfsLatency(refused)
    collector = NfsCollector(str(lab.procfs), str(lab.sysfs), latency)
    texts: list[str] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while not texts and time.monotonic() < deadline_s:
        reading = collector.read()
        texts += [event.text for event in reading.events]
    collector.close()
    assert texts == ["no latencies of NFS calls: not permitted"]
    assert NFS_LATENCY.name not in reading.tables
    assert collector.read().events == ()


def test_losses_are_said(lab: Lab) -> None:
    two_mounts(lab, links=True)
    lab.open()
    lab.program.lost = 1, 2
    assert len(lab.read().events) == 2
    assert lab.read().events == ()


def test_without_mounts_calls_are_left_out(lab: Lab) -> None:
    two_mounts(lab, links=True)
    lab.open()
    write_mountstats(lab.procfs)
    lab.read()
    assert lab.read(*reads(3)).tables == {}
    two_mounts_again = [FakeMount(point, export=f"server:{point}", transports=TWO) for point in ("/a", "/b")]
    write_mountstats(lab.procfs, *two_mounts_again)
    assert timed(lab.read(*reads(1))) == {"/a READ 1": 1}


def test_the_slowest_calls_are_listed_recorded_and_exported(lab: Lab, tmp_path: Path) -> None:
    two_mounts(lab, links=True)
    lab.open()
    lookup: Call = (4, 6, 4, "LOOKUP", 40, 9_000, 9_100)
    late: Call = (9, 6, 4, "READ", 1, 2_000_000, 2_000_001)
    path = tmp_path / "r.luns"
    history = LatencyHistory()
    samples = [
        lab.sample(1),
        lab.sample(2, *reads(30), *reads(1, rtt_us=50_000), *reads(1, 5, 6, 20_000), lookup, late),
    ]
    with SessionWriter(path) as writer:
        for before, sample in zip([None, *samples], samples, strict=False):
            writer.write(sample)
            history.add(Step(before, sample))
    table = samples[1].tables["nfs_slow"]
    assert len(table.rows) == 8 + 3, "of one operation of a mount eight at most"
    found = history.slow_calls(0, samples[1].time_ns, 5)
    assert [(call.mount, call.operation, call.transport, call.rtt_ns) for call in found[:4]] == [
        ("- RPC client-9", "READ", "-", 2_000_000_000),
        ("/a", "READ", "1", 50_000_000),
        ("/b", "READ", "2", 20_000_000),
        ("/a", "LOOKUP", "2", 9_000_000),
    ]
    assert (found[3].pid, found[3].command, found[1].pid, found[1].command) == (42, "=dd", None, "")
    assert found[1].time_ns == samples[1].time_ns - samples[1].monotonic_ns + DONE_NS
    subject = next(each for each in nfs_subjects(samples[1].tables["nfs_latency"].rows) if each.title == "NFS /a READ")
    of_reads = history.slow_calls(0, samples[1].time_ns, 60, subject)
    assert {(call.mount, call.operation) for call in of_reads} == {("/a", "READ")}
    exported = [json.loads(line) for line in export_lines(SessionReader(path), "jsonl", Selection(("slow_calls",)))]
    assert len(exported) == len(table.rows)
    assert next(one for one in exported if one["pid"]) == {
        "schema": "lunscope.slow_calls/1",
        "time": exported[0]["time"],
        "time_ns": found[3].time_ns,
        "mount": "/a",
        "id": found[3].key,
        "operation": "LOOKUP",
        "transport": "2",
        "queue_ms": 0.04,
        "rtt_ms": 9.0,
        "execute_ms": 9.1,
        "xid": "0x00000abc",
        "pid": 42,
        "command": "=dd",
    }


def test_damaged_slow_calls_are_left_out(lab: Lab) -> None:
    two_mounts(lab, links=True)
    lab.open()
    sample = lab.sample(2, *reads(2))
    table = sample.tables["nfs_slow"]
    table.values[0, table.schema.index("row")] = 10**6
    assert len(slow_calls(sample)) == 1
    assert slow_calls(replace(sample, tables={"nfs_slow": table})) is NO_CALLS
