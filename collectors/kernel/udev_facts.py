"""Facts from udev that sysfs lacks: the full model and the serial of ATA disks, and WWNs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from collectors.kernel.identity import sysfs_name
from collectors.model import Device

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
