"""CPU and memory of the screens at 1 Hz over 600 LUNs with 32 paths each, all of which do I/O.

The tree is a fake one on tmpfs whose counters move once a second; the program runs on a pseudo-terminal of 160x50.
Goals: at most 10 % of one core and 300 MB, start-up and device scan excluded. Measured as over a kernel's sysfs
(bench.as_sysfs) and as over any tree of files. A real kernel's cost of printing 19,800 counters (some 58 ms, 6 points)
comes on top; bench.tick measures that.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.terminal import Terminal
from tests.fake_kernel import COUNTERS, FakeKernel
from tests.fake_storage import FakeScsi

HOSTS, TARGETS, LUNS = 8, 4, 600
SICK_SHARE = 0.001
SETTLE_S, MINUTE_S, QUICK_S = 10.0, 60.0, 15.0
CPU_GOAL_PCT, MEMORY_GOAL_MB = 10.0, 300.0
SCREENS = {
    "overview": "1",
    "paths by LUN": "5",
    "paths by LUN, all open": "x",
    "paths by HBA port": "xb",
    "tree": "6",
    "tree, two levels open": "xx",
    "wall": "7",
}
"""Keys that lead from one screen to the next."""


def main(*, quick: bool = False) -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        kernel = FakeKernel(folder)
        FakeScsi(kernel, HOSTS, TARGETS, LUNS).build()
        with moving(kernel):
            measure(kernel, QUICK_S if quick else MINUTE_S)
    finally:
        shutil.rmtree(folder)


def measure(kernel: FakeKernel, seconds: float) -> None:
    roots = ("--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs))
    for module, how in {"bench.as_sysfs": "as over sysfs", "tui": "as over any tree of files"}.items():
        terminal = Terminal([sys.executable, "-m", module, "watch", "--interval", "1", *roots])
        print(f"{len(kernel.disks):,} devices at 1 Hz, {how}, on the screen for {seconds:.0f} s each:")
        measure_screens(terminal, seconds)


def measure_screens(terminal: Terminal, seconds: float) -> None:
    terminal.drain(60.0, until=b"dm-1")
    terminal.drain(SETTLE_S)
    for screen, keys in SCREENS.items():
        for key in keys:
            terminal.press(key)
            terminal.drain(1.0)
        started_s, before_s, sent = time.monotonic(), cpu_s(terminal.worker), len(terminal.output)
        drain_for(terminal, seconds)
        share_pct = 100.0 * (cpu_s(terminal.worker) - before_s) / (time.monotonic() - started_s)
        sent_kb = (len(terminal.output) - sent) / 1024 / seconds
        print(
            f"  {screen:<24} {share_pct:5.1f} % of a core (goal {CPU_GOAL_PCT:g})  "
            f"{memory_mb(terminal.worker):5.0f} MB (goal {MEMORY_GOAL_MB:g})  {sent_kb:5.1f} KB/s to the terminal",
            flush=True,
        )
    terminal.close()


def drain_for(terminal: Terminal, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        terminal.drain(left)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


@contextmanager
def moving(kernel: FakeKernel) -> Iterator[None]:
    """Update the counters in another process, to keep that work out of ours."""
    mover = multiprocessing.get_context("fork").Process(target=move, args=(kernel,))
    mover.start()
    try:
        yield
    finally:
        mover.terminate()
        mover.join()


def move(kernel: FakeKernel) -> None:
    """Write new counters once a second, in place and with a fixed length, so that no reader sees a partial line."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    disks = list(kernel.disks.values())
    stats = os.open(kernel.procfs / "diskstats", os.O_WRONLY | os.O_TRUNC)
    line = b" ".join([b"%11d"] * COUNTERS) + b"\n"
    heads = [b"%4d %7d %b " % (disk.major, disk.minor, disk.name.encode()) for disk in disks]
    for values in rising(np.array([disk.name.startswith("dm-") for disk in disks])):
        lines = [line % tuple(each) for each in values.tolist()]
        os.pwrite(stats, b"".join(map(bytes.__add__, heads, lines)), 0)
        for disk, text in zip(disks, lines, strict=True):
            write_over(f"{kernel.sysfs}/{disk.folder}/stat", text)
        time.sleep(1.0)


def write_over(path: str, text: bytes) -> None:
    file = os.open(path, os.O_WRONLY)
    os.pwrite(file, text, 0)
    os.close(file)


def rising(is_map: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Yield counters per second; every device does I/O, maps as much as all their paths, few paths are slow."""
    dice = np.random.default_rng(1)
    rate = dice.integers(5, 60, len(is_map)) * np.where(is_map, HOSTS * TARGETS, 1)
    each_ms = np.where(dice.random(len(is_map)) < SICK_SHARE, 30.0, dice.uniform(0.5, 4.0, len(is_map)))
    counters = np.zeros((len(is_map), COUNTERS), np.int64)
    while True:
        reads = dice.poisson(rate)
        time_ms = (reads * each_ms).astype(np.int64)
        grown = {0: reads, 2: reads * 16, 3: time_ms, 4: reads // 4, 6: reads * 4, 7: time_ms // 4}
        grown |= {9: np.minimum(time_ms, 990), 10: time_ms + time_ms // 4}
        for column, amounts in grown.items():
            counters[:, column] += amounts
        yield counters


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
