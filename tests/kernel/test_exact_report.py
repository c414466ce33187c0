"""Exact time end to end on real loop devices: reports, recordings, waits for tags, and users without rights."""

from __future__ import annotations

import itertools
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectors.latency.slow_ios import SlowIo, by_number, slow_ios
from collectors.model import Frame, Sample, Step, Tier
from collectors.rates import derive
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.sources.live import LiveSource
from collectors.sources.recorder import RecordingSource
from tests import needs
from tests.kernel.forked_command import Forked, lunscope
from tests.kernel.tracing import queue_set

pytestmark = [pytest.mark.alone, needs.loop, needs.tracer]

READS, WRITES = 400, 100
READ_BYTES, WRITE_BYTES = 512 << 10, 256 << 10
OUTSTANDING = 16
"""So many large I/Os that waking who waits, which the kernel counts and no tracepoint sees, is little of their time."""
PATIENCE_S = 30
PATIENCE_LINES = 60
PAUSE_S = 0.001
NEXT_TIERS = ("~", ":")
"""Sampled or the kernel's: I/Os this short have no sampled times."""
ATTEMPTS = 5
"""Some kernels skip programs while a certain task is current, and a processor may stand still between a tracepoint and
the kernel's own clock: what was not seen whole or undisturbed is tried again."""

Row = dict[str, Any]


def load(device: str) -> None:
    """READS and WRITES of known sizes, past the page cache."""
    descriptor = os.open(device, os.O_RDWR | os.O_DIRECT)
    memory = mmap.mmap(-1, READ_BYTES)

    def transfer(number: int) -> None:
        if number < READS:
            os.preadv(descriptor, [memory], number % 100 * READ_BYTES)
        else:
            os.pwritev(descriptor, [memoryview(memory)[:WRITE_BYTES]], number % 100 * WRITE_BYTES)

    try:
        with ThreadPoolExecutor(OUTSTANDING) as threads:
            for _ in threads.map(transfer, range(READS + WRITES)):
                pass
    finally:
        os.close(descriptor)


@contextmanager
def loaded(device: str, threads: int = 4) -> Iterator[None]:
    """Keep a device busy."""
    stop = threading.Event()

    def read() -> None:
        descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 4096) as buffer:
            # Busy enough: as fast as it goes would take a processor from what is tested.
            while not stop.wait(PAUSE_S):
                os.preadv(descriptor, [buffer], 0)
        os.close(descriptor)

    workers = [threading.Thread(target=read) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()


@pytest.fixture
def device(make_loop: Callable[..., str]) -> str:
    return make_loop(64 << 20, folder=Path("/dev/shm"))


def name_of(device: str) -> str:
    return device.removeprefix("/dev/")


def diskstats(device: str) -> list[int]:
    lines = Path("/proc/diskstats").read_text().splitlines()
    return next([int(word) for word in line.split()[3:]] for line in lines if line.split()[2] == name_of(device))


def rows_of(lines: list[str], device: str) -> list[tuple[float, Row]]:
    documents = [json.loads(line) for line in lines]
    return [
        (document["interval_s"], row)
        for document in documents
        for row in document["disks"]
        if row["name"] == name_of(device)
    ]


def report_around_load(device: str) -> tuple[list[tuple[float, Row]], list[int]]:
    """Rows of `lunscope report` around a load, and what diskstats counted meanwhile."""
    with Forked("report", "--json", "--tier", "exact", "--all", "0.5", stdout=subprocess.PIPE) as report:
        assert report.stdout is not None
        lines = itertools.islice(report.stdout, PATIENCE_LINES)
        # Counting begins with the first row: a disk that has just come is not in the report at once.
        rows = next(filter(None, (rows_of([line], device) for line in lines)))
        before = diskstats(device)
        load(device)
        after = diskstats(device)
        for line in lines:
            rows += rows_of([line], device)
            if total(rows, "iops") >= 0.999 * (READS + WRITES) and rows[-1][1]["iops"] == 0:
                break
        report.send_signal(signal.SIGINT)
        report.stdout.read()
    return rows, [new - old for old, new in zip(before, after, strict=True)]


def total(rows: list[tuple[float, Row]], weight: str, figure: str = "") -> float:
    """Sum of rates over the intervals, or of a mean times the number of I/Os."""
    return float(sum(interval_s * row[weight] * (row[figure] or 0.0 if figure else 1.0) for interval_s, row in rows))


def test_an_exact_report_agrees_with_diskstats(device: str) -> None:
    for _ in range(ATTEMPTS):
        rows, counted = report_around_load(device)
        reads, writes = total(rows, "reads_per_s"), total(rows, "writes_per_s")
        busy = [row for _, row in rows if row["iops"] > 0]
        exact_ms = total(rows, "iops", "queue_ms") + total(rows, "iops", "service_ms")
        # The kernel ends its clock once the reader is woken and counts milliseconds: a little more, never less.
        kernel_ms = pytest.approx(counted[3] + counted[7], rel=0.25, abs=3.0)
        tiers = {row["tiers"].get(field) for row in busy for field in ("service_ms", "busy_pct")}
        if tiers == {"exact"} and exact_ms == kernel_ms:
            break
    assert (reads, writes) == pytest.approx((counted[0], counted[4]), rel=1e-4)
    assert (reads, writes) >= (READS * 0.9999, WRITES * 0.9999)
    assert total(rows, "read_bytes_per_s") == pytest.approx(counted[2] * 512, rel=1e-4)
    assert tiers == {"exact"}
    assert exact_ms == kernel_ms
    busy_ms = 1e3 * sum(interval_s * row["busy_pct"] / 100 for interval_s, row in rows)
    assert 0 < busy_ms <= exact_ms * 1.01 + 0.1
    for row in busy:
        assert row["p50_ms"] <= row["service_max_ms"] <= row["max_ms"]


def test_an_idle_disk_is_exactly_idle(device: str) -> None:
    done = lunscope("report", "--json", "--tier", "exact", "--all", "0.3", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    ((_, row),) = rows_of(lines, device)
    assert (row["busy_pct"], row["tiers"]["busy_pct"]) == (0.0, "exact")


def frames_of(steps: Iterator[Step]) -> Iterator[Frame]:
    return (derive(step.previous, step.current) for step in steps)


def slowest(sample: Sample) -> tuple[SlowIo, ...]:
    return tuple(slow_ios(sample, by_number(sample.topology.devices)))


def test_a_recording_replays_exact_figures_and_slow_ios(device: str, tmp_path: Path) -> None:
    live = LiveSource(0.3, tier="exact", patience_s=PATIENCE_S)
    source = RecordingSource(live, SessionWriter(tmp_path / "s.luns"))
    try:
        with loaded(device):
            steps = [*itertools.islice(source.steps(threading.Event()), 4)]
    finally:
        source.close()
    reader = SessionReader(tmp_path / "s.luns")
    replayed = [*reader.steps(reader.first, len(reader) - 1)]
    reader.close()
    assert len(replayed) == len(steps)
    for shown, again in zip(steps[1:], replayed[1:], strict=True):
        disks, others = (derive(step.previous, step.current).tables["disks"] for step in (shown, again))
        for field_id, column in disks.columns.items():
            np.testing.assert_array_equal(others.columns[field_id], column, field_id)
        assert slowest(again.current) == slowest(shown.current)
    row = disks.rows.names.index(name_of(device))
    assert Tier(int(disks.tiers["p99_ms"][row])) is Tier.EXACT
    mine = [one for one in slowest(shown.current) if one.device == name_of(device)]
    assert {one.operation for one in mine} == {"read"}
    peak_ns = max((one.queue_ns or 0) + (one.service_ns or 0) for one in mine)
    assert peak_ns / 1e6 == pytest.approx(disks.value("max_ms", row))
    assert {one.pid for one in mine} <= {os.getpid(), 0}


def test_waits_for_tags_show_while_a_queue_is_full(device: str) -> None:
    source = LiveSource(0.3, tier="exact", patience_s=PATIENCE_S, first_topology_s=PATIENCE_S)
    waits = []
    try:
        with queue_set(device, scheduler="none", nr_requests="4"), loaded(device, threads=24):
            for frame in itertools.islice(frames_of(source.steps(threading.Event())), 40):
                disks = frame.tables["disks"]
                row = disks.rows.names.index(name_of(device))
                waits.append(disks.value("tag_wait_ms", row))
                if waits[-1] > 0:
                    break
    finally:
        source.close()
    assert np.isnan(waits[0])
    assert waits[-1] > 0
    assert Tier(int(disks.tiers["tag_wait_ms"][row])) is Tier.EXACT


@contextmanager
def helper(socket: Path) -> Iterator[subprocess.Popen[str]]:
    """`lunscope probe` for nobody, listening."""
    with Forked("probe", "--socket", socket, "--user", "nobody", stderr=subprocess.PIPE) as probe:
        try:
            assert probe.stderr is not None
            assert "listening" in probe.stderr.readline()
            yield probe
        finally:
            probe.terminate()


AS_NOBODY = """
import difflib, os, sys, collectors.tables.host.reader, collectors.sources.live, pyudev, tui.commands.report
from tui.cli import run_cli
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(run_cli(sys.argv[1:]))
"""
"""What the user may not read where this Python lives is loaded before the rights are dropped."""


def as_nobody(*arguments: str, socket: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", AS_NOBODY, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LUNSCOPE_PROBE": str(socket), "XDG_CONFIG_HOME": str(socket.parent)},
    )


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    """A place that another user can reach."""
    closed = [folder for folder in (tmp_path, *tmp_path.parents) if folder.stat().st_mode & 0o005 != 0o005]
    for folder in closed:
        folder.chmod(0o755)
    return tmp_path / "probe.sock"


def test_a_user_without_rights_gets_exact_time_from_the_helper(device: str, socket: Path) -> None:
    with helper(socket), loaded(device):
        with as_nobody("report", "--json", "--tier", "exact", "0.4", "4", socket=socket) as report:
            words, errors = report.communicate(timeout=PATIENCE_S)
        assert report.returncode == 0, errors
        rows = rows_of(words.splitlines(), device)
    assert len(rows) == 4
    assert {row["tiers"][field] for _, row in rows for field in ("service_ms", "p99_ms")} == {"exact"}
    # The kernel's where the end of an I/O was not seen (ATTEMPTS): it would be taken for busy meanwhile.
    assert [row["tiers"]["busy_pct"] for _, row in rows].count("exact") >= 2


def test_without_helper_a_user_without_rights_reads_what_would_help(socket: Path) -> None:
    with as_nobody("report", "--tier", "exact", "0.4", "1", socket=socket) as report:
        _, errors = report.communicate(timeout=PATIENCE_S)
    assert report.returncode == 1
    assert errors == (
        "lunscope: tier exact: no right to trace: run as root, or with CAP_BPF and CAP_PERFMON; "
        "or have root start `lunscope probe`\n"
    )


def test_when_the_helper_dies_the_next_tier_serves_and_it_is_said(device: str, socket: Path) -> None:
    with helper(socket) as probe, loaded(device):
        with as_nobody("report", "0.4", socket=socket) as report:
            assert report.stdout is not None
            lines = []
            for line in itertools.islice(report.stdout, 100 * PATIENCE_LINES):
                lines.append(line)
                if name_of(device) in line and probe.poll() is None:
                    probe.kill()
                    probe.wait()
                elif name_of(device) in line and line.rstrip().endswith(NEXT_TIERS):
                    break
            report.send_signal(signal.SIGINT)
            report.communicate(timeout=PATIENCE_S)
        assert report.returncode == 0
    notices = [line for line in lines if "<<" in line]
    assert any("exact time: block tracepoints are watched" in line for line in notices)
    assert any("no exact time: the probe helper" in line for line in notices)
    figures = [line for line in lines if name_of(device) in line]
    assert "~" not in figures[0]
    assert figures[-1].rstrip().endswith(NEXT_TIERS)
