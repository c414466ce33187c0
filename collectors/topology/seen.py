"""Cached facts of block devices and partitions, so that a change of one device needs reading of that one only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from collectors.kernel.device_ids import NO_IDS, TargetIds, target_ids
from collectors.kernel.devices import (
    STACKED,
    Attributes,
    UdevLookup,
    device_kind,
    device_of,
    is_of,
    read_devices,
    with_udev,
)
from collectors.kernel.identity import SECTOR_BYTES, kernel_name, storable_name, sysfs_name
from collectors.kernel.sysfs import NOWHERE, SysfsLocation, flag, location_of, number, text
from collectors.model import Device, Rows
from engine._native import read_attributes
from engine.hostfs.kernel_files import entries_of, link_target, major_minor
from engine.replacing import replace


class Partition(Struct, frozen=True):
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
        Partition(storable_name(kernel_name(entry)), _disk(folder, entry), major_minor(text(dev)), _bytes(number(size)))
        for entry, (size, dev, is_partition) in found
        if is_partition is not None
    ]


def _disk(folder: Path, entry: str) -> str:
    """Name the disk by the link of its partition, which leads to a folder of the disk's."""
    link = link_target(folder / entry)
    return storable_name(kernel_name(link.rsplit("/", 2)[-2])) if link.count("/") > 1 else ""


def _bytes(sectors: int | None) -> int | None:
    return None if sectors is None else sectors * SECTOR_BYTES


def partitions_by_name(partitions: Iterable[Partition], keys: Mapping[str, str]) -> dict[str, str]:
    """Key of each partition: that of its disk and its own name behind it."""
    return {part.name: f"{keys.get(part.disk, part.disk)}/{part.name}" for part in partitions}


class DeviceRecord(Struct, frozen=True):
    """One device: its facts, its location, and its state as a path."""

    device: Device
    location: SysfsLocation
    address: str
    """H:C:T:L of a SCSI device."""
    state: str
    access: str
    preferred: bool | None
    group: int | None
    namespace: str
    level: str
    """RAID level of md."""
    far: TargetIds = NO_IDS
    """The port of the storage it was reached through."""
    timeout_ms: int | None = None
    """Time after which a command is aborted."""
    eh_timeout_s: int | None = None


class DeviceRecords:
    """Reads new and announced devices; all others are cached."""

    def __init__(self, sysfs: str, udev: UdevLookup | None = None) -> None:
        """Set the path to read; `udev` returns facts that sysfs lacks."""
        self._sysfs = sysfs
        self._udev = udev
        self._records: dict[str, DeviceRecord] = {}

    @property
    def known(self) -> Mapping[str, DeviceRecord]:
        """Cached devices, by key."""
        return self._records

    def update(self, rows: Rows, changed: frozenset[str] | None) -> dict[str, DeviceRecord]:
        """Update the cache and return the records of the rows, by key.

        Args:
            rows: rows of the present devices.
            changed: names of devices to read again; None for all.
        """
        old = {} if changed is None else self._records
        everyone = list(zip(rows.keys, rows.names, strict=True))
        fresh = [(key, name) for key, name in everyone if key not in old or (changed is not None and name in changed)]
        slaves = {key: one.device.slaves for key, one in old.items() if one.device.slaves}
        slaves |= {key: _slaves(self._sysfs, name) for key, name in fresh if device_kind(name) in STACKED}
        holders = _holders((name, slaves.get(key, ())) for key, name in everyone)
        read = self._read(fresh, slaves, holders)
        self._records = {
            key: read[key] if key in read else _held_by(old[key], holders.get(name, ())) for key, name in everyone
        }
        return self._records

    def _read(
        self,
        wanted: list[tuple[str, str]],
        slaves: Mapping[str, tuple[str, ...]],
        holders: Mapping[str, tuple[str, ...]],
    ) -> dict[str, DeviceRecord]:
        attributes = read_devices(self._sysfs, [name for _, name in wanted])
        ours = {key for key, name in wanted if is_of(key, attributes[name])}
        devices = {}
        for key, name in wanted:
            # The name may already be that of another device, which has its own row, or be unused.
            found = attributes[name] if key in ours else dict.fromkeys(attributes[name])
            devices[key] = device_of(key, name, found, slaves=slaves.get(key, ()), holders=holders.get(name, ()))
        if self._udev is not None:
            devices = with_udev(devices, self._udev)
        return {
            key: self._record_of(devices[key], attributes[name]) if key in ours else _vanished(devices[key])
            for key, name in wanted
        }

    def _record_of(self, device: Device, found: Attributes) -> DeviceRecord:
        entry = sysfs_name(device.name)
        link = link_target(f"{self._sysfs}/block/{entry}")
        return _record_of(device, found, *location_of(storable_name(link), entry))


def _record_of(device: Device, found: Attributes, location: SysfsLocation, address: str) -> DeviceRecord:
    # For NVMe device/state is that of the subsystem or controller, which is read once for all its paths.
    state = text(found["device/state"]) if address else ""
    return DeviceRecord(
        device=device,
        location=location,
        address=address,
        state=state,
        access=text(found["device/access_state"]) or text(found["ana_state"]),
        preferred=flag(found["device/preferred_path"]),
        group=number(found["ana_grpid"]),
        namespace=text(found["nsid"]),
        level=text(found["md/level"]),
        far=target_ids(found["device/vpd_pg83"]),
        timeout_ms=_timeout_ms(found),
        eh_timeout_s=number(found["device/eh_timeout"]),
    )


def _timeout_ms(found: Attributes) -> int | None:
    timeout_s = number(found["device/timeout"])
    return number(found["queue/io_timeout"]) if timeout_s is None else 1000 * timeout_s


def _vanished(device: Device) -> DeviceRecord:
    return DeviceRecord(
        device, NOWHERE, address="", state="", access="", preferred=None, group=None, namespace="", level=""
    )


def _slaves(sysfs: str, name: str) -> tuple[str, ...]:
    entries = entries_of(f"{sysfs}/block/{sysfs_name(name)}/slaves")
    return tuple(sorted(storable_name(kernel_name(entry)) for entry in entries))


def _holders(slaves: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Names of the devices built on each."""
    holders: dict[str, tuple[str, ...]] = {}
    for name, its_slaves in slaves:
        for slave in its_slaves:
            holders[slave] = tuple(sorted((*holders.get(slave, ()), name)))
    return holders


def _held_by(one: DeviceRecord, holders: tuple[str, ...]) -> DeviceRecord:
    if one.device.holders == holders:
        return one
    return replace(one, device=replace(one.device, holders=holders))
