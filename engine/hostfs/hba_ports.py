"""The HBA port that a device is reached by, and whether the depth of its queue may be set, as sysfs shows them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from engine.hostfs.kernel_files import read_text
from engine.hostfs.sysblock import BlockDevice, look_up

_SYSFS = Path("/sys")
_MEMBERS = tuple(re.compile(rf"/({name}\d+)/") for name in ("host", "nvme", "virtio"))


def port_of(node: str, sysfs: Path = _SYSFS) -> str:
    """Name the HBA port that the disk of a device node or file is reached by; empty where none is known.

    It is the first SCSI host on the way (that of a virtual port, NPIV, is below the physical one), the NVMe controller
    or the virtio device. SCSI hosts of one WWPN are one port (port_name of class/fc_host).
    """
    disk = _disk_of(node, sysfs)
    if disk is None:
        return ""
    found = (pattern.search(f"{disk.disk_folder}/") for pattern in _MEMBERS)
    member = next((match[1] for match in found if match), "")
    return (read_text(sysfs / "class/fc_host" / member / "port_name") if member else None) or member


def takes_queue_depth(node: str, sysfs: Path = _SYSFS) -> bool:
    """Whether the disk of a device node has a queue depth of its own that this process may set."""
    disk = _disk_of(node, sysfs)
    file = None if disk is None else disk.disk_folder / "device/queue_depth"
    try:
        # Root may not write what has no write bit either (kernfs), though access(2) says so.
        return file is not None and bool(file.stat().st_mode & 0o222) and os.access(file, os.W_OK)
    except OSError:
        return False


def _disk_of(node: str, sysfs: Path) -> BlockDevice | None:
    try:
        status = os.stat(node)  # noqa: PTH116 - a name as it was given
    except OSError:
        return None
    return look_up(sysfs, status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev)
