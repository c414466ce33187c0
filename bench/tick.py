"""CPU of reading and parsing the counters of many devices, compared with the kernel's own share and iostat.

Parsing is measured on busy lines in a fake tree on tmpfs; the kernel's share cannot be faked, so the rest runs on real
idle loop devices as far as memory allows. Only ratios within one run are meaningful.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.loops import BYTES_EACH, disk_names, idle_loops, memory_available_bytes
from collectors.tables.block.counters import BlockCollector
from collectors.topology.scanner import TopologyScanner
from engine._native import BlockReader
from tests.fake_kernel import FakeDisk, FakeKernel, busy_counters

SIZES = (2_000, 19_200)
PAIRS = 5
PARSE_GOAL_MS = 2.5


def main(*, quick: bool = False) -> None:
    pairs = 2 if quick else PAIRS
    for size in SIZES:
        parse_share(size, pairs)
    if os.geteuid() != 0:
        print("real devices: left out, needs root for /dev/loop-control")
        return
    for size in SIZES:
        if size * BYTES_EACH * 2 > memory_available_bytes():
            print(f"{size:,} real devices: left out, too little memory")
            continue
        with idle_loops(size) as there:
            real_tick(there, pairs)


def cpu_ms(read: Callable[[], object], count: int) -> float:
    """CPU time of one call, as the mean over several; the first call is not counted."""
    read()
    before = time.thread_time_ns()
    for _ in range(count):
        read()
    return (time.thread_time_ns() - before) / count / 1e6


def medians(parts: dict[str, Callable[[], float]], pairs: int) -> dict[str, float]:
    """Median of each part; the parts alternate, so that other load on the machine affects all alike."""
    found: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(pairs):
        for name, measure in parts.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}


def parse_share(size: int, pairs: int) -> None:
    """Read and parse a fake tree on tmpfs."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        kernel = FakeKernel(folder)
        kernel.add(*(FakeDisk(f"sd{n}", n // 256, n % 256, counters=busy_counters(n)) for n in range(size)))
        reader = BlockReader(str(kernel.procfs), str(kernel.sysfs), "diskstats")
        collector = BlockCollector(str(kernel.procfs), str(kernel.sysfs))
        path = kernel.procfs / "diskstats"
        parts = {
            "file alone": lambda: cpu_ms(path.read_bytes, 20),
            "read + parse": lambda: cpu_ms(reader.read, 20),
        }
        found = medians(parts, pairs)
        parse_ms = found["read + parse"] - found["file alone"]
        print(
            f"{size:,} fake busy devices: read + parse {found['read + parse']:.2f} ms, parse {parse_ms:.2f} ms "
            f"({parse_ms / size * 1e6:.0f} ns per device; goal at 19,200: {PARSE_GOAL_MS} ms)"
        )
        rows = collector.read().tables["disk"].rows
        started = time.perf_counter()
        TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
        print(f"{size:,} fake devices: scan of all facts {time.perf_counter() - started:.2f} s wall")
    finally:
        shutil.rmtree(folder)


def real_tick(size: int, pairs: int) -> None:
    """Our readers, the kernel alone and iostat on the same devices, alternating.

    Each part opens and closes its files: the limit of descriptors may be too low for all at once.
    """
    calls = max(3, 20_000 // size)
    parts = {
        "kernel, diskstats": lambda: cpu_ms(read_diskstats, calls),
        "kernel, sysfs": lambda: kernel_sysfs_ms(calls),
        "reader, diskstats": lambda: cpu_ms(BlockReader(method="diskstats").read, calls),
        "reader, sysfs": lambda: cpu_ms(BlockReader(method="sysfs").read, calls),
        "collector tick": lambda: cpu_ms(BlockCollector().read, calls),
        "iostat -xd 1": iostat_ms,
    }
    found = medians(parts, pairs)
    kernel_ms = min(found["kernel, diskstats"], found["kernel, sysfs"])
    print(f"{size:,} real devices, CPU ms per sample:")
    for name, value in found.items():
        print(f"  {name:<18} {value:8.2f}   {value / kernel_ms:5.2f}x the kernel's share")
    print(f"  iostat / collector tick: {found['iostat -xd 1'] / found['collector tick']:.1f}x")


def read_diskstats() -> None:
    """Read diskstats without parsing."""
    buffer = bytearray(1 << 16)
    with Path("/proc/diskstats").open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def kernel_sysfs_ms(calls: int) -> float:
    """Read every `stat` file, less the cost of Python and the bare system calls."""
    names = disk_names()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    files = [os.open(f"/sys/block/{name}/stat", os.O_RDONLY) for name in names]
    try:
        return cpu_ms(lambda: read_files(files), calls) - cpu_ms(lambda: read_nothing(len(files)), calls)
    finally:
        for file in files:
            os.close(file)


def read_files(files: list[int]) -> None:
    for file in files:
        os.pread(file, 512, 0)


def read_nothing(count: int) -> None:
    """Read at the end of file: the cost of Python and the bare system call."""
    with Path("/dev/null").open("rb", buffering=0) as null:
        file = null.fileno()
        for _ in range(count):
            os.pread(file, 512, 0)


def iostat_ms() -> float:
    """CPU of one further sample of iostat: a long run less a short one."""
    if shutil.which("iostat") is None:
        return float("nan")
    return (child_cpu_ms("iostat", "-xd", "1", "5") - child_cpu_ms("iostat", "-xd", "1", "2")) / 3


def child_cpu_ms(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000
