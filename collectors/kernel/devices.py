"""Static facts of block devices, from sysfs attributes and udev."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from collectors.kernel.device_ids import persistent_id, serial, vendor_name
from collectors.kernel.identity import SECTOR_BYTES, sysfs_name
from collectors.kernel.sysfs import flag, number, text
from collectors.model import Device
from engine._native import read_attributes
from engine.replacing import replace

UdevLookup: TypeAlias = Callable[[Sequence[str]], Mapping[str, Mapping[str, str]]]
"""Properties of devices by kernel name; names without properties may be missing."""


def with_udev(devices: Mapping[str, Device], udev: UdevLookup) -> dict[str, Device]:
    """Complete facts of disks that are incomplete in sysfs."""
    poor = {key: device for key, device in devices.items() if _is_poor(device)}
    found = udev([device.name for device in poor.values()]) if poor else {}
    completed = {key: _complete(device, found[device.name]) for key, device in poor.items() if device.name in found}
    return {**devices, **completed}


def read_udev_properties(names: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Read properties from libudev; none if there is no libudev or udevd never ran."""
    try:
        import pyudev  # noqa: PLC0415 loads libudev, which a host may not have

        context = pyudev.Context()
    except (ImportError, OSError):
        return {}
    found: dict[str, Mapping[str, str]] = {}
    for name in names:
        try:
            device = pyudev.Devices.from_name(context, "block", sysfs_name(name))
            found[name] = {key: str(value) for key, value in device.properties.items() if key.startswith("ID_")}
        except (pyudev.DeviceNotFoundError, OSError, UnicodeDecodeError):
            continue
    return found


def _is_poor(device: Device) -> bool:
    """Whether udev may know more: ATA models are cut to the 16 bytes of a SCSI inquiry, or there is no identity."""
    return device.kind == "disk" and (device.vendor == "ATA" or not device.persistent_id)


def _complete(device: Device, properties: Mapping[str, str]) -> Device:
    model = properties.get("ID_MODEL", "").replace("_", " ").strip()
    longer = model if len(model) > len(device.model) else device.model
    serial = device.serial or properties.get("ID_SERIAL_SHORT", "")
    identity = device.persistent_id or properties.get("ID_WWN", "") or serial
    return replace(device, model=longer, serial=serial, persistent_id=identity)


Attributes = Mapping[str, bytes | None]

_COMMON = (
    "size",
    "diskseq",
    "removable",
    "ro",
    "queue/rotational",
    "queue/scheduler",
    "queue/logical_block_size",
    "queue/physical_block_size",
    "queue/nr_requests",
    "queue/read_ahead_kb",
    "queue/max_sectors_kb",
    "queue/max_hw_sectors_kb",
    "queue/max_segments",
    "queue/write_cache",
    "queue/iostats",
    "mq/0/nr_tags",
    "device/model",
    "device/vendor",
    "device/queue_depth",
    "device/wwid",
    "device/vpd_pg80",
    "device/vpd_pg83",
    "device/state",
    "device/access_state",
    "device/preferred_path",
    "device/timeout",
    "device/eh_timeout",
)
_OF_OTHERS = (
    "device/serial",
    "serial",
    "wwid",
    "nguid",
    "uuid",
    "eui",
    "dm/name",
    "dm/uuid",
    "md/uuid",
    "md/level",
    "md/chunk_size",
    "queue/chunk_sectors",
    "queue/minimum_io_size",
    "queue/virt_boundary_mask",
    "loop/backing_file",
    "ana_state",
    "ana_grpid",
    "nsid",
    "queue/io_timeout",
)
"""Attributes that SCSI disks never have: trying to read them from thousands of disks would take half a second."""

ATTRIBUTES = (*_COMMON, *_OF_OTHERS)
"""Attributes below SYSFS/block/X (Documentation/ABI/stable/sysfs-block); most devices have about half of them."""

HIDDEN_PATH = "nvme-path"
"""Kind of a path of NVMe multipath, which has no device node (drivers/nvme/host/multipath.c, GENHD_FL_HIDDEN)."""

_SCSI_DISK = re.compile(r"sd[a-z]+")
_KINDS = (
    (re.compile(r"nvme\d+c\d+n\d+"), HIDDEN_PATH),
    (re.compile(r"dm-\d+"), "dm"),
    (re.compile(r"md\d+|md_.*"), "md"),
    (re.compile(r"sr\d+"), "cdrom"),
    (re.compile(r"(loop|zram|ram|nbd|rbd|drbd|bcache|zd)\d+"), ""),
)
STACKED = frozenset({"dm", "md", "bcache", "drbd"})
"""Kinds that may be built on other devices."""
_THREADS = 4
_KEY = re.compile(r":(\d{1,20}):(\d{1,20})#(\d{0,20})", re.ASCII)


def read_devices(sysfs: str, names: Sequence[str]) -> dict[str, Attributes]:
    """Attributes of devices by kernel name; None where an attribute is missing or the device has vanished."""
    scsi = [name for name in names if _SCSI_DISK.fullmatch(name)]
    others = sorted(set(names).difference(scsi))
    return _read(sysfs, scsi, _COMMON) | _read(sysfs, others, ATTRIBUTES)


def _read(sysfs: str, names: Sequence[str], attributes: Sequence[str]) -> dict[str, Attributes]:
    nothing = dict.fromkeys(ATTRIBUTES)
    try:
        values = read_attributes(f"{sysfs}/block", list(map(sysfs_name, names)), attributes, threads=_THREADS)
    except OSError:
        return dict.fromkeys(names, nothing)
    return {
        name: nothing | dict(zip(attributes, found, strict=True)) for name, found in zip(names, values, strict=True)
    }


def is_of(key: str, found: Attributes) -> bool:
    """Whether the attributes are of this device instance, and not of another device that already has its name."""
    return number(found["diskseq"]) == _numbers(key)[2]


def device_kind(name: str) -> str:
    """Kind of a device by its kernel name: disk, loop, dm, md, nvme-path, ..."""
    for pattern, kind in _KINDS:
        match = pattern.fullmatch(name)
        if match:
            return kind or match[1]
    return "disk"


def device_of(
    key: str, name: str, found: Attributes, *, slaves: tuple[str, ...] = (), holders: tuple[str, ...] = ()
) -> Device:
    """Facts of one device from its attributes, and its related devices by kernel name."""
    major, minor, diskseq = _numbers(key)
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
        vendor=vendor_name(text(found["device/vendor"])),
        serial=serial(found),
        rotational=flag(found["queue/rotational"]),
        scheduler=_scheduler(found["queue/scheduler"]),
        logical_block_bytes=number(found["queue/logical_block_size"]),
        physical_block_bytes=number(found["queue/physical_block_size"]),
        nr_requests=number(found["queue/nr_requests"]),
        queue_limit=number(found["device/queue_depth"]),
        read_ahead_kb=number(found["queue/read_ahead_kb"]),
        max_sectors_kb=number(found["queue/max_sectors_kb"]),
        max_hw_sectors_kb=number(found["queue/max_hw_sectors_kb"]),
        max_segments=number(found["queue/max_segments"]),
        chunk_kb=_chunk_kb(name, found),
        virt_boundary_mask=number(found["queue/virt_boundary_mask"]),
        write_cache=text(found["queue/write_cache"]),
        iostats=flag(found["queue/iostats"]),
        read_only=flag(found["ro"]),
        removable=flag(found["removable"]),
        bio_based=_is_bio_based(found),
        friendly_name=text(found["dm/name"]) or text(found["loop/backing_file"]),
        holders=holders,
        slaves=slaves,
    )


def _numbers(key: str) -> tuple[int, int, int | None]:
    """Parse the numbers in a key; see collectors.kernel.identity.device_key."""
    match = _KEY.search(key)
    if match is None:
        return 0, 0, None
    return int(match[1]), int(match[2]), int(match[3]) if match[3] else None


def _scheduler(value: bytes | None) -> str:
    """Return the scheduler in use, the one in brackets: "none [mq-deadline] kyber"."""
    words = text(value)
    chosen = re.search(r"\[([^\]]+)\]", words)
    return chosen[1] if chosen else words


def _chunk_kb(name: str, found: Attributes) -> int | None:
    """Return the chunk of a device in units of 1024 bytes; None for one without."""
    sectors, of_array = number(found["queue/chunk_sectors"]), number(found["md/chunk_size"])
    smallest, block = number(found["queue/minimum_io_size"]), number(found["queue/physical_block_size"])
    of_map = smallest if device_kind(name) == "dm" and smallest and block and smallest > block else None
    size_bytes = (sectors or 0) * SECTOR_BYTES or of_array or of_map
    return size_bytes // 1024 if size_bytes else None


def _is_bio_based(found: Attributes) -> bool:
    """Whether the driver takes bios: no hardware queue and no scheduler (dm, md, zram, NVMe multipath heads).

    Before Linux 5.0 drivers without `mq` could have a request queue; its scheduler is in brackets.
    """
    has_queue = found["queue/logical_block_size"] is not None
    return has_queue and found["mq/0/nr_tags"] is None and "[" not in text(found["queue/scheduler"])
