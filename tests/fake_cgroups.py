"""Writes trees of control groups as both versions of the kernel's interface show them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

_KEYS = ("rbytes", "wbytes", "rios", "wios", "dbytes", "dios")


class FakeCgroups:
    """A hierarchy of cgroup v2 below SYSFS/fs/cgroup; `put` makes a group or changes its counters."""

    def __init__(self, sysfs: Path, controllers: str = "cpuset cpu io memory") -> None:
        self.root = sysfs / "fs/cgroup"
        self.root.mkdir(parents=True)
        (self.root / "cgroup.controllers").write_text(f"{controllers}\n")

    def put(
        self,
        path: str,
        devices: Mapping[str, tuple[int, ...]],
        *,
        more: str = "",
        stalled_us: tuple[int, int] | None = (0, 0),
        limits: str | None = None,
    ) -> None:
        """Write the files of a group; counters in the order of `io.stat`, `more` behind each line."""
        folder = self.root / path.strip("/")
        folder.mkdir(exist_ok=True)
        (folder / "io.stat").write_text(
            "".join(f"{name} {_numbers(counts)}{more}\n" for name, counts in devices.items())
        )
        if stalled_us is not None:
            lines = zip(("some", "full"), stalled_us, strict=True)
            text = "".join(f"{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n" for kind, total in lines)
            (folder / "io.pressure").write_text(text)
        if limits is not None:
            (folder / "io.max").write_text(limits)

    def remove(self, path: str) -> None:
        """Remove a group."""
        shutil.rmtree(self.root / path.strip("/"))


def put_blkio(
    sysfs: Path, path: str, devices: Mapping[str, tuple[int, int, int, int]], suffix: str = "_recursive"
) -> Path:
    """Write the counters of a group of cgroup v1: bytes and I/Os read, bytes and I/Os written."""
    folder = sysfs / "fs/cgroup/blkio" / path.strip("/")
    folder.mkdir(parents=True, exist_ok=True)
    for name, first in (("io_service_bytes", 0), ("io_serviced", 1)):
        lines = "".join(_kinds(device, counts[first], counts[first + 2]) for device, counts in devices.items())
        total = sum(counts[first] + counts[first + 2] for counts in devices.values())
        (folder / f"blkio.throttle.{name}{suffix}").write_text(f"{lines}Total {total}\n")
    return folder


def _kinds(device: str, read: int, written: int) -> str:
    kinds = {"Read": read, "Write": written, "Sync": read, "Async": written, "Discard": 0, "Total": read + written}
    return "".join(f"{device} {kind} {count}\n" for kind, count in kinds.items())


def _numbers(counts: tuple[int, ...]) -> str:
    padded = (*counts, *(0,) * (len(_KEYS) - len(counts)))
    return " ".join(f"{key}={count}" for key, count in zip(_KEYS, padded, strict=True))
