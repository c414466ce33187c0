"""Idle loop devices by the thousand: real rows in the kernel's lists, without files behind them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOP_CTL_ADD = 0x4C80
LOOP_CTL_REMOVE = 0x4C81
FIRST_NUMBER = 100_000
"""Far above the numbers anybody else takes."""
BYTES_EACH = 300_000
"""Kernel memory of one device, generously."""


def memory_available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def count_disks() -> int:
    return sum(1 for _ in Path("/sys/block").iterdir())


@contextmanager
def idle_loops(total: int) -> Iterator[int]:
    """Add devices until there are `total` block devices in all, and take every one of them away again."""
    control = os.open("/dev/loop-control", os.O_RDWR)
    missing = max(0, total - count_disks())
    added: list[int] = []
    try:
        for number in range(FIRST_NUMBER, FIRST_NUMBER + missing):
            fcntl.ioctl(control, LOOP_CTL_ADD, number)
            added.append(number)
        yield count_disks()
    finally:
        for number in added:
            fcntl.ioctl(control, LOOP_CTL_REMOVE, number)
        os.close(control)
