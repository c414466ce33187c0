"""What the kernel of this host serves to others: targets of NVMe, SCSI and USB, and folders of its NFS server.

Their paths are those of whoever set them up, so they are tried in every mount namespace.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from engine.hostfs.kernel_files import Roots, read_text, unescape_octal
from engine.hostfs.stored_file import StoredFile, found_by_name
from engine.hostfs.users import Users

_SERVERS = (
    ("is exported by the NVMe target", "kernel/config/nvmet/subsystems/*/namespaces/*/device_path"),
    ("is exported by the SCSI target (LIO)", "kernel/config/target/core/*/*/udev_path"),
    ("is exported by the SCSI target (LIO)", "kernel/config/target/core/fileio_*/*/info"),
    ("is exported by the SCSI target (SCST)", "kernel/scst_tgt/devices/*/filename"),
    ("is exported by a USB gadget", "kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file"),
    ("backs a zram device", "block/zram*/backing_dev"),
)
"""Words, and files of configfs and sysfs: drivers/nvme/target/configfs.c, drivers/target/target_core_configfs.c and
target_core_file.c, SCST, drivers/usb/gadget/function/f_mass_storage.c, drivers/block/zram/zram_drv.c."""
_NAMED = re.compile(r"(?:File: )?(/.*?)(?=  |\n|$)")
"""A path as all of the first line, or as LIO writes it among other things, with two blanks behind it."""
_FOLDER = re.compile(r"^(/\S*)[ \t]+(\S.*)$", re.MULTILINE)
"""A line of nfsd's table: the folder, and each of its clients with options in brackets (exports(5))."""
_FOR_WRITING = re.compile(r"[(,]rw[,)]")


class Exports(Struct):
    """What is served, by the words in which a refusal says so."""

    users: Users = field(default_factory=Users)
    unknown: list[str] = field(default_factory=list)
    """What is served under a path that leads nowhere, so that any device may be meant."""
    folders: dict[tuple[int, int], str] = field(default_factory=dict)
    """Folders that NFS clients may write to, by device and inode."""

    def above(self, file: StoredFile) -> str | None:
        """Name the folder with a file that NFS clients may write to; None if there is none."""
        if not self.folders or not file.path:
            return None
        path = os.readlink(file.path) if file.path.startswith("/proc/self/fd/") else file.path  # noqa: PTH115
        above = (found_by_name(str(folder), ("",)) for folder in Path(path).parents)
        numbers = ((status.device, status.inode) for found in above for status, _ in found)
        return next((self.folders[number] for number in numbers if number in self.folders), None)


def read_exports(roots: Roots, namespaces: Sequence[str]) -> Exports:
    """Read what is served; nothing where no server is loaded."""
    exports = Exports()
    for words, pattern in _SERVERS:
        for attribute in roots.sysfs.glob(pattern):
            if match := _NAMED.match(_told(attribute)):
                found = found_by_name(match[1], namespaces)
                for status, path in found:
                    exports.users.add(status, path, words)
                exports.unknown += [] if found else [f"{match[1]}, which {words}, cannot be found"]
    if (roots.procfs / "fs/nfsd").is_dir():
        for root in namespaces:
            exports.folders |= dict(_written_folders(root))
    return exports


def _told(attribute: Path) -> str:
    """Return what a file says from its path on; SCST adds a [key] line to attributes that were set by hand."""
    text = read_text(attribute) or ""
    return text[text.find("File: ") :] if attribute.name == "info" else text


def _written_folders(root: str) -> Iterator[tuple[tuple[int, int], str]]:
    """List the folders that the NFS server of a namespace lets clients write to (exportfs(8), fs/nfsd/export.c)."""
    for table in ("/var/lib/nfs/etab", "/proc/fs/nfsd/exports"):
        for path, clients in _FOLDER.findall(read_text(Path(root + table)) or ""):
            if _FOR_WRITING.search(clients):
                for status, _ in found_by_name(unescape_octal(path), (root,)):
                    yield (status.device, status.inode), unescape_octal(path)
