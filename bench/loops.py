"""Idle loop devices by the thousand: real rows in the kernel's lists, without files behind them."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

LOOP_CTL_ADD = 0x4C80
LOOP_CTL_REMOVE = 0x4C81
FIRST_NUMBER = 100_000
"""Far above the numbers in use by others."""
BYTES_EACH = 300_000
"""Kernel memory of one device, an upper bound."""
THREADS = 64
"""Adding and removing wait for RCU grace periods, so many run at once."""


def memory_available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def disk_names() -> list[str]:
    return [path.name for path in Path("/sys/block").iterdir()]


@contextmanager
def idle_loops(total: int) -> Iterator[int]:
    """Add devices until there are `total` block devices, and remove them at the end."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    missing = max(0, total - len(disk_names()))
    try:
        _each(LOOP_CTL_ADD, range(FIRST_NUMBER, FIRST_NUMBER + missing))
        yield len(disk_names())
    finally:
        _each(LOOP_CTL_REMOVE, _ours())
        signal.signal(signal.SIGTERM, before)


def _ours() -> list[int]:
    """Numbers of all devices added here, including those of a killed run."""
    numbers = [int(name.removeprefix("loop")) for name in disk_names() if name.removeprefix("loop").isdigit()]
    return [number for number in numbers if number >= FIRST_NUMBER]


def _each(request: int, numbers: Iterable[int]) -> None:
    control = os.open("/dev/loop-control", os.O_RDWR)

    def ask(number: int) -> None:
        # It may exist already, or be gone.
        with suppress(FileExistsError, FileNotFoundError):
            fcntl.ioctl(control, request, number)

    try:
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(ask, numbers):
                pass
    finally:
        os.close(control)
