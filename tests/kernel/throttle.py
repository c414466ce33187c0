"""A device that is slow or stalls: the kernel's block throttle lets few I/Os through to it (cgroup v1)."""

from __future__ import annotations

import errno
import functools
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

_ROOT = Path("/sys/fs/cgroup/blkio")
_DIRECTIONS = ("read", "write")
_PATIENCE_S = 60.0


@functools.cache
def _refusal() -> str:
    if os.geteuid() != 0:
        return "not root"
    present = (_ROOT / "blkio.throttle.read_iops_device").exists()
    return "" if present else f"no throttle files in {_ROOT}"


throttle = pytest.mark.skipif(bool(_refusal()), reason=f"needs the cgroup v1 block throttle: {_refusal()}")


@contextmanager
def stalled(device: str) -> Iterator[None]:
    """Let this process start one I/O per second on a device while the block lasts; what waits goes on after it."""
    with slowed(device, 1):
        yield


@contextmanager
def slowed(device: str, iops: int) -> Iterator[None]:
    """Let this process start so many I/Os per second on a device while the block lasts."""
    with _limited(device, {f"{direction}_iops": iops for direction in _DIRECTIONS}):
        yield


@contextmanager
def slowed_alike(devices: Sequence[str], iops: int) -> Iterator[None]:
    """Let this process start so many I/Os per second on each of several devices while the block lasts."""
    with ExitStack() as stack:
        group = stack.enter_context(_entered())
        for device in devices:
            stack.enter_context(_limited_in(group, device, {f"{direction}_iops": iops for direction in _DIRECTIONS}))
        yield


@contextmanager
def without_reads(device: str) -> Iterator[None]:
    """Let no read of this process come back from a device while the block lasts, and all writes."""
    with _limited(device, {"read_bps": 1}):
        yield


@contextmanager
def _limited(device: str, limits: dict[str, int]) -> Iterator[None]:
    with _entered() as group, _limited_in(group, device, limits):
        yield


@contextmanager
def _limited_in(group: Path, device: str, limits: dict[str, int]) -> Iterator[None]:
    number = Path("/sys/block", Path(device).name, "dev").read_text().strip()
    _limit(group, number, limits)
    try:
        yield
    finally:
        _limit(group, number, dict.fromkeys(limits, 0))


@contextmanager
def _entered() -> Iterator[Path]:
    """Have this process in a group of its own while the block lasts."""
    group = _ROOT / f"lunscope-test-{os.getpid()}"
    before = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if ":blkio:" in line)
    home = _ROOT / before.split(":", 2)[2].lstrip("/")
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield group
    finally:
        (home / "cgroup.procs").write_text(str(os.getpid()))
        _remove(group)


def _remove(group: Path) -> None:
    """Remove a group once the last of its processes is gone, which may have been given up while its I/O hung."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            group.rmdir()
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline_s:
                raise
        time.sleep(0.05)


def _limit(group: Path, number: str, limits: dict[str, int]) -> None:
    for name, limit in limits.items():
        (group / f"blkio.throttle.{name}_device").write_text(f"{number} {limit}")
