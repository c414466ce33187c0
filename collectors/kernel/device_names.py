"""What people call a device."""

from __future__ import annotations

from pathlib import PurePosixPath

from collectors.model import Device


def label_of(device: Device | None, otherwise: str) -> str:
    """Alias or dm name where there is one, else the kernel's name."""
    return otherwise if device is None else device.friendly_name or device.name


def both_names(device: Device) -> str:
    """Write the kernel's name, then what the operator calls the device, of a file its last part."""
    other = PurePosixPath(device.friendly_name).name
    return device.name if other in {"", device.name} else f"{device.name} {other}"
