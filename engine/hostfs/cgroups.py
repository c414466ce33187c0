"""Where the kernel keeps the control groups that limit and count I/O."""

from __future__ import annotations

from pathlib import Path


def unified_root(sysfs: Path) -> Path | None:
    """Find the hierarchy of cgroup v2 that has the io controller; None where it has none."""
    base = sysfs / "fs" / "cgroup"
    for root in (base, base / "unified"):
        try:
            controllers = (root / "cgroup.controllers").read_bytes()
        except OSError:
            continue
        if b"io" in controllers.split():
            return root
    return None


def blkio_root(sysfs: Path) -> Path:
    """Name the hierarchy of the blkio controller of cgroup v1, where systemd mounts it; it need not be there."""
    return sysfs / "fs" / "cgroup" / "blkio"
