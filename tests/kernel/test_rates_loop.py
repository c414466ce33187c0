"""Derived figures of a real loop device under a known load, beside what iostat makes of the same counters."""

from __future__ import annotations

import mmap
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.model import Frame, Sample, Topology
from collectors.rates import derive
from collectors.tables.block.counters import BlockCollector
from tests import needs

pytestmark = [pytest.mark.alone, needs.loop]

READS, WRITES = 100, 200
"""I/Os of one round of the load."""
READ_BYTES, WRITE_BYTES = 256 << 10, 64 << 10
ENOUGH_MS = 10
"""Least time of reads and of writes: the kernel counts it in whole milliseconds."""
INTERVAL_S = 3
"""Interval of iostat: a hundred times what the load takes, so that the whole of it lies within."""

Columns = dict[str, float]


def load(device: str) -> int:
    """Rounds of READS and WRITES of known sizes, past the page cache, until the kernel counted time for both."""
    descriptor = os.open(device, os.O_RDWR | os.O_DIRECT)
    before, rounds = counted_ms(device), 0
    try:
        with mmap.mmap(-1, READ_BYTES) as buffer:
            while min(now - then for now, then in zip(counted_ms(device), before, strict=True)) < ENOUGH_MS:
                one_round(descriptor, buffer)
                rounds += 1
    finally:
        os.close(descriptor)
    return rounds


def counted_ms(device: str) -> tuple[int, int]:
    """Time of the reads and of the writes by the kernel's counters (Documentation/block/stat.rst)."""
    counters = Path("/sys/block", Path(device).name, "stat").read_text(encoding="ascii").split()
    return int(counters[3]), int(counters[7])


def one_round(descriptor: int, buffer: mmap.mmap) -> None:
    for number in range(READS):
        assert os.preadv(descriptor, [buffer], number * READ_BYTES) == READ_BYTES
    for number in range(WRITES):
        assert os.pwritev(descriptor, [memoryview(buffer)[:WRITE_BYTES]], number * WRITE_BYTES) == WRITE_BYTES


@pytest.fixture
def device(make_loop: Callable[..., str]) -> str:
    return make_loop(64 << 20, folder=Path("/dev/shm"))


@pytest.fixture
def read() -> Iterator[Callable[[], Sample]]:
    collector = BlockCollector()

    def now() -> Sample:
        return Sample(time.time_ns(), time.monotonic_ns(), Topology(), collector.read().tables)

    yield now
    collector.close()


def of_device(frame: Frame, device: str) -> Columns:
    disks = frame.tables["disks"]
    row = disks.rows.names.index(device.removeprefix("/dev/"))
    return {field_id: float(column[row]) for field_id, column in disks.columns.items()}


def test_known_ios_come_out_exactly(device: str, read: Callable[[], Sample]) -> None:
    first = read()
    rounds = load(device)
    frame = derive(first, read())
    found = of_device(frame, device)
    assert found["read_bytes_per_s"] * frame.elapsed_s == pytest.approx(rounds * READS * READ_BYTES)
    assert found["write_bytes_per_s"] * frame.elapsed_s == pytest.approx(rounds * WRITES * WRITE_BYTES)
    assert found["writes_per_s"] * frame.elapsed_s == pytest.approx(rounds * WRITES)
    assert found["reads_per_s"] * frame.elapsed_s >= rounds * READS * 0.999999
    assert 0 < found["read_await_ms"] < frame.elapsed_s * 1e3
    assert 0 < found["in_flight"] <= 1.01
    assert 0 <= found["busy_pct"] <= 100


@needs.iostat
@pytest.mark.waits
def test_iostat_sees_the_same(device: str, read: Callable[[], Sample]) -> None:
    for _ in range(3):
        beside, frame, took_s = iostat_around(device, read)
        if took_s < INTERVAL_S / 2:
            break
    else:
        pytest.skip(f"the load took {took_s:.1f} s, too long for an iostat interval of {INTERVAL_S} s")
    found = of_device(frame, device)
    assert found["read_await_ms"] == pytest.approx(beside["r_await"], abs=0.0051)
    assert found["write_await_ms"] == pytest.approx(beside["w_await"], abs=0.0051)
    assert found["read_bytes_per_io"] / 1024 == pytest.approx(beside["rareq-sz"], abs=0.0051)
    assert found["write_bytes_per_io"] / 1024 == pytest.approx(beside["wareq-sz"], abs=0.0051)
    assert found["reads_per_s"] / found["writes_per_s"] == pytest.approx(beside["r/s"] / beside["w/s"], rel=0.01)
    assert found["in_flight"] * frame.elapsed_s == pytest.approx(beside["aqu-sz"] * INTERVAL_S, rel=0.1, abs=0.02)


def iostat_around(device: str, read: Callable[[], Sample]) -> tuple[Columns, Frame, float]:
    """Run the load between two reports of iostat; its columns, our frame and how long the load took."""
    name = device.removeprefix("/dev/")
    command = ["stdbuf", "-oL", "iostat", "-x", "-d", "-k", name, str(INTERVAL_S), "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"}) as iostat:
        assert iostat.stdout is not None
        reports = columns_of(iostat.stdout, name)
        next(reports)
        first, started = read(), time.monotonic()
        load(device)
        took_s = time.monotonic() - started
        frame = derive(first, read())
        return next(reports), frame, took_s


def columns_of(lines: Iterator[str], name: str) -> Iterator[Columns]:
    """What iostat printed for one device, report by report."""
    titles: list[str] = []
    for line in lines:
        words = line.split()
        if words[:1] == ["Device"]:
            titles = words[1:]
        elif words[:1] == [name]:
            yield dict(zip(titles, map(float, words[1:]), strict=True))
