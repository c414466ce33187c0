"""Cost of the exact tier: to a running load, of the reader, at the start, in kernel memory.

The load is 4 KiB random reads with O_DIRECT. Under one running load the programs are switched on and off in short
turns; the result is the median of the ratios between a turn and the mean of the two adjacent turns without programs.
Empty programs on the same tracepoints show the kernel's own cost of calling any.

Reading is measured on the real maps of a tracer set up for 19,200 disks; the bench writes into them what the programs
would.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.targets import SIZE_BYTES, storage_paths
from collectors.derive.percentiles import RowCells, percentiles_ns
from collectors.model import HistogramScale
from engine._native import BlockTracer, LoadEngine, LoadTarget, tracer_refusal
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs
from tests.kernel.bpf_calls import attach, load_empty

DEPTHS = (1, 8, 32, 128)
TURNS = 48
TURN_S, SETTLE_S = 0.12, 0.01
DISK_GOAL_PCT, LOOP_GOAL_POINTS = 2, 5

DEVICES, ACTIVE, SHARDS = 19_200, 1_000, 16
ACTIVE_GOAL_MS, IDLE_GOAL_MS, READY_GOAL_MS, MEMORY_GOAL_MB = 20, 1, 250, 64
READS = 15

EMPTY = ("rq_complete", "rq_complete", "rq_merge", "rq_requeue", "rq_issue", "rq_insert")
"""Tracepoints of the tracer's own programs for requests."""
EMPTY_BIOS = ("bio_complete", "bio_complete", "bio_queue")
"""The same for bios, which are attached where any disk has no requests."""


def main(*, quick: bool = False) -> None:
    refusal = tracer_refusal()
    if refusal:
        print(f"left out: {refusal}")
        return
    start(9)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        reading(Path(folder))
    with ExitStack() as stack:
        for name, path in storage_paths(stack):
            for depth in DEPTHS:
                cost(name, path, depth, turns=9 if quick else TURNS)


# ---- a running load


class Switch:
    """Attaches the tracer's programs, empty ones or none."""

    def __init__(self) -> None:
        self.tracer = BlockTracer()
        self.tracer.pause()
        tracepoints = EMPTY + (EMPTY_BIOS if any_bio_based() else ())
        self._empty = [load_empty(f"block_{tracepoint}") for tracepoint in tracepoints]
        self._links: list[int] = []

    def turn(self, to: str) -> None:
        """Detach what is attached, then attach "empty", "exact" or, for anything else, nothing."""
        self.tracer.pause()
        for link in self._links:
            os.close(link)
        self._links = [attach(program) for program in self._empty] if to == "empty" else []
        if to == "exact":
            self.tracer.resume()

    def close(self) -> None:
        """Detach and free everything."""
        self.turn("none")
        self.tracer.close()
        for program in self._empty:
            os.close(program)


def any_bio_based() -> bool:
    disks = [disk for disk in Path("/sys/block").iterdir() if not disk.name.startswith("nvme")]
    return any(not (disk / "mq").exists() and (disk / "size").read_text().strip() != "0" for disk in disks)


def cost(name: str, path: str, depth: int, turns: int) -> None:
    """One running load, and the programs switched under it."""
    switch = Switch()
    try:
        with load(path, depth) as engine:
            without = [rate(engine)]
            ratios: dict[str, list[float]] = {"control": [], "empty": [], "exact": []}
            order = random.Random(depth)
            for _ in range(turns):
                for kind in order.sample(sorted(ratios), len(ratios)):
                    switch.turn(kind)
                    during = rate(engine)
                    switch.turn("none")
                    without.append(rate(engine))
                    # A disk stalled by other load gives no result.
                    if all(without[-2:]):
                        ratios[kind].append(during / statistics.mean(without[-2:]))
    finally:
        switch.close()
    empty, exact = (statistics.median(ratios[kind]) for kind in ("empty", "exact"))
    print(f"{name}, QD {depth}: {statistics.median(without) / 1e3:.0f}k IOPS without programs, {turns} turns of each")
    for kind, found in ratios.items():
        low, middle, high = statistics.quantiles(found, n=4)
        print(f"  {kind:8} {middle:.3f}x [{low:.3f}-{high:.3f}]")
    print(
        f"  costs {(1 - exact) * 100:.1f} % (goal on disk: {DISK_GOAL_PCT}), "
        f"{(empty - exact) * 100:.1f} points more than empty programs (goal on loop: {LOOP_GOAL_POINTS})",
        flush=True,
    )


@contextmanager
def load(path: str, depth: int) -> Iterator[LoadEngine]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        target = LoadTarget(descriptor, path, SIZE_BYTES, 4096, writable=False)
    finally:
        os.close(descriptor)
    engine = LoadEngine([target], Knobs(queue_depth=depth), LoadSettings(backend="uring"))
    engine.start()
    try:
        time.sleep(0.5)
        yield engine
    finally:
        engine.stop()


def rate(engine: LoadEngine) -> float:
    time.sleep(SETTLE_S)
    before, began = int(engine.counters()[0, 0]), time.perf_counter()
    time.sleep(TURN_S)
    return (int(engine.counters()[0, 0]) - before) / (time.perf_counter() - began)


# ---- start


def start(times: int) -> None:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        tracer = BlockTracer()
        found.append((time.perf_counter() - began) * 1e3)
        tracer.close()
    print(f"ready after {statistics.median(found):.0f} ms, longest {max(found):.0f} ms (goal: {READY_GOAL_MS})")


# ---- reading

CELL = np.dtype([("leaf", "u8", 8), ("ios", "u8", (3, 4)), ("rest", "u8", 12)])
"""struct cell of engine/native/bpf/layout.h."""
PLACES_AT = 64 + 96 + 48 + 16 + 12
"""Offset of the number of its places, in bytes."""
OWN = np.dtype([("index", "u4"), ("asked", "u4")])
TOUCHED = np.dtype([("epoch", "u4"), ("unused", "u4")])
IDENTITY = np.dtype([("number", "u4"), ("changes", "u4"), ("name", "S32")])
OCTAVES, BUCKETS = 28, 16
USED = (4, 5, 6, 7, 8, 9)
"""Octaves that a load on real disks fills, out of 28."""
SCALE = HistogramScale(unit_ns=64, sub_bits=4)


def reading(folder: Path) -> None:
    for name in ("block", "kernel/btf", "devices/system/cpu"):
        (folder / name).mkdir(parents=True)
    for number in range(DEVICES):
        (folder / f"block/sd{number}/mq").mkdir(parents=True)
    (folder / "kernel/btf/vmlinux").symlink_to("/sys/kernel/btf/vmlinux")
    possible = "devices/system/cpu/possible"
    (folder / possible).write_text(Path("/sys", possible).read_text())
    (folder / "devices/system/cpu/online").write_text(f"0-{SHARDS - 1}")
    tracer = BlockTracer(str(folder))
    descriptors = tracer.map_descriptors()
    try:
        memory = sum(locked_bytes(descriptor) for descriptor in descriptors.values())
        print(f"maps for {DEVICES:,} disks: {memory / 1e6:.1f} MB (goal: {MEMORY_GOAL_MB})")
        tracer.pause()
        read_all(tracer, descriptors)
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)
        tracer.close()


def locked_bytes(descriptor: int) -> int:
    return figure_of(descriptor, "memlock:")


def entries_of(descriptor: int) -> int:
    return figure_of(descriptor, "max_entries:")


def figure_of(map_descriptor: int, name: str) -> int:
    lines = Path(f"/proc/self/fdinfo/{map_descriptor}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def read_all(tracer: BlockTracer, descriptors: dict[str, int]) -> None:
    identities = mapped(descriptors["identities"], IDENTITY, DEVICES + 1)
    identities["name"][1:] = [f"sd{number}".encode() for number in range(DEVICES)]
    identities["number"][1:] = np.arange(DEVICES) + 1
    own = ACTIVE * SHARDS
    with mmap.mmap(descriptors["control"], 4096) as control:
        struct.pack_into("<I", control, 4, DEVICES + 1)
    first_cell = entries_of(descriptors["cell_of"]) // SHARDS
    cells = mapped(descriptors["cells"], CELL, first_cell + own)[first_cell:]
    cell_of = mapped(descriptors["cell_of"], OWN, (ACTIVE + 1) * SHARDS)[SHARDS:]
    touched = mapped(descriptors["touched"], TOUCHED, ACTIVE + 1)[1:]
    places = mapped(descriptors["places"], np.dtype(("u4", (4, OCTAVES))), own)
    octaves = mapped(descriptors["octaves"], np.dtype(("u4", (BUCKETS,))), own * 4 * len(USED))
    cell_of["index"] = first_cell + np.arange(own)
    cells.view("u4").reshape(own, -1)[:, PLACES_AT // 4] = np.arange(own) + 1
    places[:, :, USED] = np.arange(1, own * 4 * len(USED) + 1).reshape(own, 4, len(USED))
    epochs = mmap.mmap(descriptors["control"], 4096)

    def work() -> None:
        touched["epoch"] = struct.unpack_from("<I", epochs)[0]
        cells["ios"] = np.add(cells["ios"], 7)
        np.add(octaves, 3, out=octaves)

    for _ in range(3):
        tracer.read()
        tracer.cells()
    idle_ms = median_ms(lambda: (tracer.read(), tracer.cells()), lambda: None)
    print(f"reading {DEVICES:,} idle disks: {idle_ms:.2f} ms (goal: {IDLE_GOAL_MS})")
    parts = (
        ("counters", tracer.read),
        ("histograms", tracer.cells),
        ("all, with 12 percentiles of each disk", lambda: percentiles_of(tracer)),
    )
    for name, part in parts:
        print(f"reading {ACTIVE:,} active disks of {DEVICES:,}, {name}: {median_ms(part, work):.2f} ms", flush=True)
    print(f"  (goal of the last: {ACTIVE_GOAL_MS})")


def mapped(descriptor: int, dtype: np.dtype[np.void], entries: int) -> NDArray[np.void]:
    return np.frombuffer(mmap.mmap(descriptor, entries * dtype.itemsize), dtype)[:entries]


def percentiles_of(tracer: BlockTracer) -> None:
    """Everything a tick needs: counters, and three percentiles of each of the four histograms of every disk."""
    tracer.read()
    row, series, bucket, count = tracer.cells()
    cells = RowCells(SCALE, row * 4 + series, bucket, count)
    found = percentiles_ns(cells, ACTIVE * 4, (50.0, 99.0, 99.9))
    assert found.shape == (3, ACTIVE * 4)


def median_ms(measured: Callable[[], object], before: Callable[[], None]) -> float:
    found = []
    for _ in range(READS):
        before()
        began = time.perf_counter()
        measured()
        found.append((time.perf_counter() - began) * 1e3)
    return statistics.median(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.exact", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, for a quick check")
    main(quick=parser.parse_args().quick)
