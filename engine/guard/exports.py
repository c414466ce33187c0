"""Devices and files this host serves to others: NVMe target, LIO, SCST. They open without an exclusive claim."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

from engine.guard.roots import Roots
from engine.guard.sysblock import read_text

_ATTRIBUTES = (
    ("the NVMe target", "kernel/config/nvmet/subsystems/*/namespaces/*/device_path"),
    ("the SCSI target (LIO)", "kernel/config/target/core/*/*/udev_path"),
    ("the SCSI target (SCST)", "kernel/scst_tgt/devices/*/filename"),
)
"""Documentation/nvme, drivers/nvme/target/configfs.c; drivers/target/target_core_configfs.c; scst sysfs."""


@dataclass(frozen=True, slots=True)
class Exports:
    """Words such as "is exported by the NVMe target" by device number and by (st_dev, st_ino)."""

    devices: dict[int, str] = field(default_factory=dict)
    files: dict[tuple[int, int], str] = field(default_factory=dict)


def read_exports(roots: Roots) -> Exports:
    """Read what the kernel's targets export; nothing where they are not loaded."""
    exports = Exports()
    for server, pattern in _ATTRIBUTES:
        for attribute in roots.sysfs.glob(pattern):
            # SCST adds a [key] line to attributes that were set by hand.
            lines = (read_text(attribute) or "").splitlines()
            if not lines or not lines[0].startswith("/"):
                continue
            try:
                status = Path(lines[0]).stat()
            except OSError:
                continue
            if stat.S_ISBLK(status.st_mode):
                exports.devices[status.st_rdev] = f"is exported by {server}"
            else:
                exports.files[(status.st_dev, status.st_ino)] = f"is exported by {server}"
    return exports
