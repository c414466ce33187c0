"""Asking a tracer about one device, and known I/O for it to see."""

from __future__ import annotations

import mmap
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine import _native

GAUGES = ("in_flight_now", "in_driver_now")
PEAKS = ("in_driver_peak", "queue_max_ns", "service_max_ns", "latency_max_ns")
PATIENCE_S = 10.0


def row_of(tracer: _native.TraceReader, device: str) -> int:
    """Row of a device; -1 before its first I/O."""
    name = device.removeprefix("/dev/")
    names = tracer.names()
    return names.index(name) if name in names else -1


def read_device(tracer: _native.TraceReader, device: str) -> dict[str, int]:
    """Columns of the device, all 0 before its first I/O."""
    values = tracer.read()
    row = row_of(tracer, device)
    if row < 0:
        return dict.fromkeys(_native.TRACE_COLUMNS, 0)
    return dict(zip(_native.TRACE_COLUMNS, values[row].tolist(), strict=True))


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Growth of the sums; gauges and peaks as they are after."""
    return {name: value if name in GAUGES + PEAKS else value - before[name] for name, value in after.items()}


@contextmanager
def opened(device: str) -> Iterator[int]:
    descriptor = os.open(device, os.O_RDWR | os.O_DIRECT)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def queue_set(device: str, **attributes: str) -> Iterator[None]:
    """Set attributes of the queue and put back what they were, as the next loop device may get the same queue.

    The order counts both ways: another scheduler sets nr_requests anew, and allows others.
    """
    folder = Path("/sys/block", Path(device).name, "queue")
    before = {attribute: (folder / attribute).read_text() for attribute in attributes}
    try:
        for attribute, value in attributes.items():
            (folder / attribute).write_text(value)
        yield
    finally:
        for attribute, value in before.items():
            chosen = re.search(r"\[(.*)\]", value)
            (folder / attribute).write_text(chosen[1] if chosen else value)


TYPES = "/sys/kernel/btf/vmlinux"


def sysfs_without_types(root: Path) -> str:
    """Make a folder like /sys, but without the description of the kernel's types, and return it."""
    return sysfs_without(root, "kernel/btf")


def sysfs_without(root: Path, left_out: str) -> str:
    """Make a folder like /sys, but without what is at a path below it, and return it."""
    real, copy = Path("/sys"), root
    copy.mkdir(parents=True)
    for name in left_out.split("/"):
        for entry in os.scandir(real):
            if entry.name != name:
                (copy / entry.name).symlink_to(entry.path)
        real, copy = real / name, copy / name
        if copy != root / left_out:
            copy.mkdir()
    return str(root)


def read_extents(descriptor: int, extents: Sequence[tuple[int, int]]) -> None:
    """Read (offset, length) one after the other, past the page cache."""
    with mmap.mmap(-1, max(length for _, length in extents)) as buffer:
        for offset, length in extents:
            assert os.preadv(descriptor, [memoryview(buffer)[:length]], offset) == length


def eventually(happened: Callable[[], bool], what: str) -> None:
    """Wait for something that comes by itself."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
