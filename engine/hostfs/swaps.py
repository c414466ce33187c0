"""Active swap: devices by number, files by inode."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

from engine.hostfs.kernel_files import Roots, unescape_octal
from engine.hostfs.sysblock import read_text


@dataclass(frozen=True, slots=True)
class Swaps:
    """What the kernel swaps to."""

    devices: frozenset[int] = field(default_factory=frozenset)
    files: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    """(st_dev, st_ino) of each swap file."""


def read_swaps(roots: Roots) -> Swaps:
    """Read /proc/swaps (proc(5)); a kernel without it has no swap."""
    devices, files = set(), set()
    for line in (read_text(roots.procfs / "swaps") or "").splitlines()[1:]:
        path = unescape_octal(line.split()[0])
        # A path is that of the namespace that called swapon, mostly that of process 1: try both.
        for root in ("", f"{roots.procfs}/1/root"):
            try:
                status = Path(root + path).stat()
            except OSError:
                continue
            if stat.S_ISBLK(status.st_mode):
                devices.add(status.st_rdev)
            else:
                files.add((status.st_dev, status.st_ino))
    return Swaps(frozenset(devices), frozenset(files))
