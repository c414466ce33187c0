"""Device instances of all block devices; read again only where a name may denote another device."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from collectors.kernel.identity import DeviceInstance, read_device_instances, sysfs_name
from collectors.kernel.sysfs import number
from engine._native import is_sysfs, read_attributes

MADE_ONCE = re.compile(r"(sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme\d+(c\d+)?n\d+)")
"""Devices that keep their diskseq while they exist, if their medium is not removable. Others, such as loop, get a
new one with every medium or backing file while their entry in sysfs stays."""


class DeviceInstanceReader:
    """Reads device instances, among thousands only those with a new entry in SYSFS/block.

    The kernel never reuses the inode numbers of sysfs entries (kernfs_new_node, 64 bits from 5.5), and one listing
    gives the numbers of all entries: 20,000 devices take hundredths of a second instead of a quarter.
    """

    def __init__(self, sysfs: str, *, unique_inodes: bool | None = None) -> None:
        """Set the paths to read.

        Args:
            sysfs: mount point of sysfs.
            unique_inodes: whether inode numbers are never reused there; None: if it is a kernel's sysfs.
        """
        self._sysfs = sysfs
        self._unique = is_sysfs(sysfs) if unique_inodes is None else unique_inodes
        self._known: dict[str, tuple[int, DeviceInstance]] = {}

    def read(self, names: Sequence[str]) -> list[DeviceInstance]:
        """Return the instances of devices given by kernel name, in the same order; missing facts are None.

        Raises:
            OSError: SYSFS/block cannot be listed.
        """
        if not self._unique:
            return read_device_instances(self._sysfs, names)
        inodes = self._inodes()
        kept = {name: known[1] for name in names if (known := self._known.get(name)) and known[0] == inodes.get(name)}
        wanted = [name for name in names if name not in kept]
        fresh = dict(zip(wanted, read_device_instances(self._sysfs, wanted), strict=True))
        found = kept | fresh
        self._known = {name: (inodes[name], found[name]) for name in kept} | self._lasting(fresh, inodes)
        return [found[name] for name in names]

    def _inodes(self) -> dict[str, int]:
        with os.scandir(f"{self._sysfs}/block") as entries:
            return {entry.name.replace("!", "/"): entry.inode() for entry in entries}

    def _lasting(
        self, fresh: Mapping[str, DeviceInstance], inodes: Mapping[str, int]
    ) -> dict[str, tuple[int, DeviceInstance]]:
        """Select instances that stay unchanged until their entry is removed; an older listing may not have them yet."""
        names = [
            name
            for name, life in fresh.items()
            if life.diskseq is not None and life.size_bytes and name in inodes and MADE_ONCE.fullmatch(name)
        ]
        removable = read_attributes(f"{self._sysfs}/block", list(map(sysfs_name, names)), ["removable"])
        return {
            name: (inodes[name], fresh[name])
            for name, [text] in zip(names, removable, strict=True)
            if number(text) == 0
        }
