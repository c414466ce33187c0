"""Display names of devices."""

from __future__ import annotations

from pathlib import PurePosixPath

from collectors.model import Device


def label_of(device: Device | None, otherwise: str) -> str:
    """Return the alias or dm name if there is one, else the kernel name."""
    return otherwise if device is None else device.friendly_name or device.name


def both_names(device: Device) -> str:
    """Return the kernel name followed by the operator's name; for a backing file its last part."""
    other = PurePosixPath(device.friendly_name).name
    return device.name if other in {"", device.name} else f"{device.name} {other}"
