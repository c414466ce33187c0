"""What people call a device."""

from __future__ import annotations

from collectors.model import Device


def label_of(device: Device | None, otherwise: str) -> str:
    """Alias or dm name where there is one, else the kernel's name."""
    return otherwise if device is None else device.friendly_name or device.name
