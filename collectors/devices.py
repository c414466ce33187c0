"""Static facts of block devices, read from sysfs when the topology changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from collectors.device_ids import persistent_id, serial
from collectors.identity import SECTOR_BYTES, printable, sysfs_name
from collectors.model import Device, Rows
from collectors.sysfs_text import flag, number, text
from collectors.udev_facts import UdevLookup, look_up, with_udev
from engine._native import read_attributes

Attributes = Mapping[str, bytes | None]

ATTRIBUTES = (
    "size",
    "diskseq",
    "removable",
    "ro",
    "hidden",
    "queue/rotational",
    "queue/scheduler",
    "queue/logical_block_size",
    "queue/physical_block_size",
    "queue/nr_requests",
    "queue/write_cache",
    "queue/iostats",
    "mq/0/nr_tags",
    "device/model",
    "device/vendor",
    "device/queue_depth",
    "device/wwid",
    "device/serial",
    "device/vpd_pg80",
    "serial",
    "wwid",
    "nguid",
    "uuid",
    "eui",
    "dm/name",
    "dm/uuid",
    "md/uuid",
    "loop/backing_file",
)
"""Below SYSFS/block/X (Documentation/ABI/stable/sysfs-block); most devices have about half of them."""

_KINDS = (
    (re.compile(r"nvme\d+c\d+n\d+"), "nvme-path"),
    (re.compile(r"dm-\d+"), "dm"),
    (re.compile(r"md\d+|md_.*"), "md"),
    (re.compile(r"sr\d+"), "cdrom"),
    (re.compile(r"(loop|zram|ram|nbd|rbd|drbd|bcache|zd)\d+"), ""),
)
_STACKED = frozenset({"dm", "md", "bcache", "drbd"})
_THREADS = 4
_KEY = re.compile(r":(\d+):(\d+)#(\d*)")


def scan_devices(sysfs: str, rows: Rows, udev: UdevLookup = look_up) -> dict[str, Device]:
    """Facts of the devices of a DISK table, by key; one that has vanished has its names and numbers only.

    The udev database is asked for what this host's sysfs does not tell.
    """
    entries = [sysfs_name(name) for name in rows.names]
    try:
        values = read_attributes(str(Path(sysfs, "block")), entries, ATTRIBUTES, threads=_THREADS)
    except OSError:
        return {}
    devices = {}
    for key, name, found in zip(rows.keys, rows.names, values, strict=True):
        devices[key] = _device(key, name, dict(zip(ATTRIBUTES, found, strict=True)))
    if Path(sysfs) == Path("/sys"):
        devices = with_udev(devices, udev)
    return _with_relations(sysfs, devices)


def device_kind(name: str) -> str:
    """Tell what a device is by its kernel name: disk, loop, dm, md, nvme-path, ..."""
    for pattern, kind in _KINDS:
        match = pattern.fullmatch(name)
        if match:
            return kind or match[1]
    return "disk"


def _device(key: str, name: str, found: Attributes) -> Device:
    major, minor, diskseq = _numbers(key)
    if number(found["diskseq"]) != diskseq:
        # Another device has the name already; its own row is about to come.
        found = dict.fromkeys(found)
    sectors = number(found["size"])
    return Device(
        key=key,
        name=name,
        kind=device_kind(name),
        major=major,
        minor=minor,
        diskseq=diskseq,
        persistent_id=persistent_id(found),
        size_bytes=None if sectors is None else sectors * SECTOR_BYTES,
        model=text(found["device/model"]),
        vendor=text(found["device/vendor"]),
        serial=serial(found),
        rotational=flag(found["queue/rotational"]),
        scheduler=_scheduler(found["queue/scheduler"]),
        logical_block_bytes=number(found["queue/logical_block_size"]),
        physical_block_bytes=number(found["queue/physical_block_size"]),
        nr_requests=number(found["queue/nr_requests"]),
        queue_limit=number(found["device/queue_depth"]),
        write_cache=text(found["queue/write_cache"]),
        iostats=flag(found["queue/iostats"]),
        read_only=flag(found["ro"]),
        removable=flag(found["removable"]),
        bio_based=_is_bio_based(found),
        friendly_name=text(found["dm/name"]) or text(found["loop/backing_file"]),
    )


def _numbers(key: str) -> tuple[int, int, int | None]:
    """Numbers out of a key; see collectors.identity.device_key."""
    match = _KEY.search(key)
    if match is None:
        return 0, 0, None
    return int(match[1]), int(match[2]), int(match[3]) if match[3] else None


def _scheduler(value: bytes | None) -> str:
    """Pick the one in use: "none [mq-deadline] kyber"."""
    words = text(value)
    chosen = re.search(r"\[([^\]]+)\]", words)
    return chosen[1] if chosen else words


def _is_bio_based(found: Attributes) -> bool:
    """No hardware queue and no scheduler to choose: the driver takes bios (dm, md, zram, NVMe multipath heads).

    Before Linux 5.0 drivers without `mq` could have a request queue; its scheduler stands in brackets.
    """
    has_queue = found["queue/logical_block_size"] is not None
    return has_queue and found["mq/0/nr_tags"] is None and "[" not in text(found["queue/scheduler"])


def _with_relations(sysfs: str, devices: dict[str, Device]) -> dict[str, Device]:
    """Add slaves of stacked devices, and the holders these are to whole disks."""
    slaves = {key: _slaves(sysfs, device.name) for key, device in devices.items() if device.kind in _STACKED}
    holders: dict[str, list[str]] = {}
    for key, names in slaves.items():
        for name in names:
            holders.setdefault(name, []).append(devices[key].name)
    changed = {
        key: replace(device, slaves=slaves.get(key, ()), holders=tuple(sorted(holders.get(device.name, ()))))
        for key, device in devices.items()
        if key in slaves or device.name in holders
    }
    return devices | changed


def _slaves(sysfs: str, name: str) -> tuple[str, ...]:
    return _listing(Path(sysfs, "block", sysfs_name(name), "slaves"))


def _listing(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(printable(entry.name.replace("!", "/")) for entry in folder.iterdir()))
    except OSError:
        return ()
