"""Partitions, which sysfs lists only in the class of all block devices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from collectors.kernel.identity import SECTOR_BYTES, kernel_name, storable_name
from collectors.kernel.sysfs import number, text
from engine._native import read_attributes
from engine.text import whole_number


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a disk."""

    name: str
    disk: str
    """Kernel name of the disk it is part of."""
    number: tuple[int, int] | None
    """Major and minor."""
    size_bytes: int | None


def read_partitions(sysfs: str, disks: Iterable[str]) -> list[Partition]:
    """All partitions, by kernel name; none where sysfs cannot be listed.

    Args:
        sysfs: where sysfs is mounted.
        disks: kernel names of devices that are no partitions.
    """
    folder = Path(sysfs, "class/block")
    try:
        entries = sorted(set(os.listdir(folder)) - {name.replace("/", "!") for name in disks})  # noqa: PTH208
        entries = [entry for entry in entries if not os.path.lexists(Path(sysfs, "block", entry))]
        values = read_attributes(str(folder), entries, ("size", "dev", "partition"))
    except OSError:
        return []
    found = zip(entries, values, strict=True)
    return [
        Partition(storable_name(kernel_name(entry)), _disk(folder, entry), _number(text(dev)), _bytes(number(size)))
        for entry, (size, dev, is_partition) in found
        if is_partition is not None
    ]


def _disk(folder: Path, entry: str) -> str:
    """Name the disk by the link of its partition, which leads to a folder of the disk's."""
    try:
        link = os.readlink(folder / entry)  # noqa: PTH115 text, not a Path
    except OSError:
        return ""
    return storable_name(kernel_name(link.rsplit("/", 2)[-2])) if link.count("/") > 1 else ""


def _number(dev: str) -> tuple[int, int] | None:
    major, _, minor = dev.partition(":")
    numbers = whole_number(major), whole_number(minor)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _bytes(sectors: int | None) -> int | None:
    return None if sectors is None else sectors * SECTOR_BYTES


def partitions_by_name(partitions: Iterable[Partition], keys: Mapping[str, str]) -> dict[str, str]:
    """Key of each partition: that of its disk and its own name behind it."""
    return {part.name: f"{keys.get(part.disk, part.disk)}/{part.name}" for part in partitions}
