"""A device that is slow or stalls: the kernel's block throttle lets few I/Os through to it (cgroup v1)."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_ROOT = Path("/sys/fs/cgroup/blkio")
_LIMITS = ("read", "write")


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
    number = Path("/sys/block", Path(device).name, "dev").read_text().strip()
    group = _ROOT / f"lunscope-test-{os.getpid()}"
    before = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if ":blkio:" in line)
    home = _ROOT / before.split(":", 2)[2].lstrip("/")
    group.mkdir()
    try:
        _limit(group, number, iops)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        _limit(group, number, 0)
        (home / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def _limit(group: Path, number: str, iops: int) -> None:
    for direction in _LIMITS:
        (group / f"blkio.throttle.{direction}_iops_device").write_text(f"{number} {iops}")
