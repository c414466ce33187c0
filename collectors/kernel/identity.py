"""Identity of block devices: the kernel reuses names and numbers after hot-plug, keys of instances are unique."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine import _native
from engine.text import whole_number

SECTOR_BYTES = 512
"""Unit of `size` and of all sector counters, whatever the device (include/linux/blk_types.h)."""


class DeviceInstance(Struct, frozen=True):
    """Facts that distinguish successive devices of one name."""

    diskseq: int | None
    """Increases with every device and every change of medium or backing file; Linux 5.15 and later."""
    size_bytes: int | None


def sysfs_name(name: str) -> str:
    """Entry of a device in SYSFS/block, which cannot hold a slash."""
    return name.replace("/", "!")


def kernel_name(entry: str) -> str:
    """Name of a device by its entry in SYSFS/block."""
    return entry.replace("!", "/")


def storable_name(name: str) -> str:
    r"""Return a name that any file can store: bytes that are not UTF-8 become `\xNN`."""
    if name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def device_key(name: str, major: int, minor: int, diskseq: int | None) -> str:
    """Key of one device instance in tables and topology."""
    return f"{storable_name(name)}:{major}:{minor}#{'' if diskseq is None else diskseq}"


def number_of(key: str) -> tuple[int, int] | None:
    """Device number in a key made by `device_key`; None for other keys."""
    _, major, minor = ("::" + key.rpartition("#")[0]).rsplit(":", 2)
    numbers = whole_number(major), whole_number(minor)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def read_device_instances(sysfs: str, names: Sequence[str]) -> list[DeviceInstance]:
    """Return the instances of devices given by kernel name, in the same order; missing facts are None."""
    entries = [sysfs_name(name) for name in names]
    values = _native.read_attributes(str(Path(sysfs, "block")), entries, ["diskseq", "size"])
    return [DeviceInstance(_number(diskseq), _bytes(size)) for diskseq, size in values]


def _number(text: bytes | None) -> int | None:
    return None if text is None else whole_number(text.strip())


def _bytes(sectors: bytes | None) -> int | None:
    count = _number(sectors)
    return None if count is None else count * SECTOR_BYTES


class InstanceKeys:
    """Assigns keys to devices; without diskseq, a name that was absent gets a new key."""

    def __init__(self) -> None:
        self._present: set[str] = set()
        self._returns: dict[str, int] = {}

    def keys(
        self, names: Sequence[str], numbers: NDArray[np.uint32], incarnations: Sequence[DeviceInstance]
    ) -> tuple[str, ...]:
        """Return the keys of the devices present now, in order."""
        for name in self._present.difference(names):
            self._returns[name] = self._returns.get(name, 0) + 1
        self._present = set(names)
        return tuple(
            self._key(name, major, minor, incarnation.diskseq)
            for name, (major, minor), incarnation in zip(names, numbers.tolist(), incarnations, strict=True)
        )

    def _key(self, name: str, major: int, minor: int, diskseq: int | None) -> str:
        key = device_key(name, major, minor, diskseq)
        if diskseq is None and name in self._returns:
            return f"{key}r{self._returns[name]}"
        return key
