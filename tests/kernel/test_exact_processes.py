"""I/O by process and device: what two processes did, buffered writes, and places that are given to others."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from collectors.derive.percentiles import RowCells, percentiles_ns
from collectors.exact.tracer import PROCESS_COLUMNS, ProcessIos
from collectors.tables.process_io.schema import PROCESS_SCALE, Submitter
from engine import _native
from tests import needs
from tests.kernel.conftest import Storage
from tests.kernel.slow_file import slow_file
from tests.kernel.tracing import opened, read_extents, row_of

pytestmark = [pytest.mark.alone, needs.loop, needs.tracer]

SIZE_BYTES = 64 << 20
SHM = Path("/dev/shm")
PATIENCE_S = 60.0
SERVICE_S = 0.02
PLACE = np.dtype([("key", "u8"), ("started_ns", "u8"), ("cgroup", "u8"), ("id", "u4"), ("kind", "u4"), ("name", "S32")])
"""struct process of engine/native/bpf/layout.h."""
LEAVING, NOBODY = 1, 2
WITNESS = """
import json, mmap, os, sys, time
path, mode, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
descriptor = os.open(path, (os.O_WRONLY if mode == "write" else os.O_RDONLY) | os.O_DIRECT)
buffer = mmap.mmap(-1, size)
print("ready", flush=True)
sys.stdin.readline()
spent = []
for number in range(count):
    at, began = number * size % (32 << 20), time.monotonic_ns()
    done = os.pwritev(descriptor, [buffer], at) if mode == "write" else os.preadv(descriptor, [buffer], at)
    spent.append(time.monotonic_ns() - began)
    assert done == size
print(json.dumps(spent), flush=True)
"""


class Witness:
    """A process with a known load on a device, which times its I/Os itself."""

    def __init__(self, device: str, mode: str, count: int, size: int) -> None:
        command = [sys.executable, "-c", WITNESS, device, mode, str(count), str(size)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> list[int]:
        """Time of each I/O in nanoseconds, system calls included."""
        out, _ = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0
        spent: list[int] = json.loads(out)
        return spent


def of_device(ios: ProcessIos, tracer: _native.BlockTracer, device: str) -> dict[tuple[int, str], dict[str, int]]:
    """Rows of a device by process id and name."""
    row, found = row_of(tracer, device), {}
    for values in ios[0]:
        one = dict(zip(PROCESS_COLUMNS, values.tolist(), strict=True))
        name = values[-4:].astype("<u8").tobytes().split(b"\0")[0].decode()
        if one["row"] == row:
            found[one["process"], name] = one
    return found


def percentile_ns(ios: ProcessIos, row: dict[str, int], percent: float) -> float:
    position = next(at for at, values in enumerate(ios[0].tolist()) if values == list(row.values()))
    cells = ios[1][ios[1][:, 0] == position]
    zeros = np.zeros(len(cells), np.uint32)
    found = RowCells(PROCESS_SCALE, zeros, cells[:, 1].astype(np.uint16), cells[:, 2])
    return float(percentiles_ns(found, 1, (percent,))[0, 0])


def test_the_columns_are_those_of_the_core() -> None:
    assert list(PROCESS_COLUMNS) == _native.PROCESS_COLUMNS


def test_two_processes_on_one_device_are_counted_apart(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    tracer.read()
    tracer.processes()
    reader, writer = Witness(device, "read", 3000, 4096), Witness(device, "write", 500, 65536)
    reader.begin()
    writer.begin()
    read_ns, write_ns = reader.end(), writer.end()
    tracer.read()
    ios = tracer.processes()
    found = of_device(ios, tracer, device)
    by_pid = {pid: one for (pid, _), one in found.items()}
    reads, writes = by_pid[reader.pid], by_pid[writer.pid]
    assert (reads["reads"], reads["read_bytes"], reads["writes"]) == (3000, 3000 * 4096, 0)
    assert (writes["writes"], writes["write_bytes"], writes["reads"]) == (500, 500 * 65536, 0)
    assert reads["kind"] == writes["kind"] == Submitter.PROCESS
    for one, spent in ((reads, read_ns), (writes, write_ns)):
        # The witness's time is that of the system call around the I/O.
        assert 0 < one["latency_ns"] <= sum(spent)
        p99 = percentile_ns(ios, one, 99.0)
        assert 0 < p99 <= 1.13 * np.sort(spent)[int(0.99 * len(spent))] + PROCESS_SCALE.unit_ns
    assert tracer.losses()["without_process"] == 0


def test_sums_of_processes_are_those_of_the_device(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    columns = _native.TRACE_COLUMNS
    values = tracer.read()
    row = row_of(tracer, device)
    before = values[row].astype(np.int64) if row >= 0 else np.zeros(len(columns), np.int64)
    tracer.processes()
    witnesses = [Witness(device, mode, 400, 8192) for mode in ("read", "write", "read")]
    for one in witnesses:
        one.begin()
    for one in witnesses:
        one.end()
    grown = tracer.read()[row_of(tracer, device)].astype(np.int64) - before
    device_sums = dict(zip(columns, grown.tolist(), strict=True))
    rows = of_device(tracer.processes(), tracer, device).values()
    for mine, theirs in (
        ("reads", ("reads",)),
        ("writes", ("writes",)),
        ("read_bytes", ("read_bytes",)),
        ("write_bytes", ("write_bytes",)),
        ("latency_ns", ("queue_read_ns", "queue_write_ns", "service_read_ns", "service_write_ns")),
    ):
        assert sum(one[mine] for one in rows) == sum(device_sums[name] for name in theirs)


@pytest.fixture
def slow_disk(tmp_path: Path) -> Iterator[str]:
    with slow_file(tmp_path / "slow", SERVICE_S) as file, ExitStack() as stack:
        yield Storage(tmp_path, stack).loop(backing=file, options=("--read-only", "--direct-io=on"))


@needs.fuse
def test_the_mean_is_that_of_a_device_of_known_service_time(slow_disk: str, tracer: _native.BlockTracer) -> None:
    tracer.read()
    tracer.processes()
    reader = Witness(slow_disk, "read", 40, 4096)
    reader.begin()
    spent = reader.end()
    tracer.read()
    found = {pid: one for (pid, _), one in of_device(tracer.processes(), tracer, slow_disk).items()}[reader.pid]
    mean_ns = found["latency_ns"] / found["reads"]
    assert 1e9 * SERVICE_S <= mean_ns <= np.mean(spent)
    assert mean_ns >= 0.8 * np.mean(spent)


def test_buffered_writes_are_those_of_the_writeback_of_the_kernel(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    tracer.read()
    tracer.processes()
    descriptor = os.open(device, os.O_WRONLY)
    try:
        os.pwrite(descriptor, b"x" * (4 << 20), 0)
        seen: dict[tuple[int, str], dict[str, int]] = {}
        os.sync()
        deadline = time.monotonic() + PATIENCE_S
        while not seen and time.monotonic() < deadline:
            tracer.read()
            seen = of_device(tracer.processes(), tracer, device)
    finally:
        os.close(descriptor)
    written = {name: one for (_, name), one in seen.items() if one["writes"]}
    # sync(2) writes the pages of block devices itself: it starts their writeback and waits, or submits them.
    assert sum(one["write_bytes"] for one in written.values()) == 4 << 20
    for (pid, name), one in seen.items():
        assert (one["kind"], pid) == (Submitter.WORKQUEUE, 0) if name == "writeback" else pid == os.getpid()


def test_reading_again_has_only_what_came_since(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    for count in (50, 20):
        reader = Witness(device, "read", count, 4096)
        reader.begin()
        reader.end()
        tracer.read()
        rows, cells = tracer.processes()
        found = {pid: one for (pid, _), one in of_device((rows, cells), tracer, device).items()}
        assert found[reader.pid]["reads"] == count
    assert not of_device(tracer.processes(), tracer, device)


def test_a_process_that_was_idle_gets_another_place_and_counts_on(make_loop: Callable[..., str]) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    tracer = _native.BlockTracer(process_idle_s=0.05)
    descriptors = tracer.map_descriptors()
    try:
        with opened(device) as descriptor:
            for count in (7, 11):
                tracer.read()
                tracer.processes()
                read_extents(descriptor, [(number * 4096, 4096) for number in range(count)])
                tracer.read()
                found = {pid: one for (pid, _), one in of_device(tracer.processes(), tracer, device).items()}
                assert found[os.getpid()]["reads"] == count
                wait_until_free(tracer, descriptors["processes"])
    finally:
        for map_ in descriptors.values():
            os.close(map_)
        tracer.close()


def wait_until_free(tracer: _native.BlockTracer, places: int) -> None:
    """Wait until no place is of this process."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        tracer.read()
        taken = mapped(places, PLACE)
        if not np.any((taken["key"] > LEAVING) & (taken["id"] == os.getpid())):
            return
        assert time.monotonic() < deadline, "the places of an idle process stay taken"
        time.sleep(0.02)


def test_what_finds_no_place_is_counted(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    descriptors = tracer.map_descriptors()
    places = mapped(descriptors["processes"], PLACE)
    free = places["key"] == 0
    places["key"][free] = NOBODY
    try:
        tracer.processes()
        reader = Witness(device, "read", 30, 4096)
        reader.begin()
        reader.end()
        tracer.read()
        found = {pid for pid, _ in of_device(tracer.processes(), tracer, device)}
    finally:
        places["key"][free] = 0
        for map_ in descriptors.values():
            os.close(map_)
    assert reader.pid not in found
    assert tracer.losses()["without_process"] >= 30
    assert tracer.read()[row_of(tracer, device)][0] >= 30


def mapped(descriptor: int, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    entries = next(int(line.split()[1]) for line in lines if line.startswith("max_entries:"))
    return np.frombuffer(mmap.mmap(descriptor, entries * dtype.itemsize), dtype)
