"""Attributes of a device as text."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.kernel.device_ids import plain_wwid
from collectors.model import Device
from engine.job.sizes import format_size
from engine.text import safe_text

UNKNOWN = "-"


def facts_of(device: Device) -> Iterator[tuple[str, str]]:
    """Title and value of each attribute, safe to print; "-" if unknown."""
    yield "name", _text(device.name)
    yield "alias", _text(device.friendly_name)
    yield "kind", _text(device.kind)
    yield "model", _text(" ".join(word for word in (device.vendor, device.model) if word))
    yield "serial", _text(device.serial)
    yield "id", _text(device.persistent_id)
    if (wwid := plain_wwid(device.persistent_id)) != device.persistent_id:
        yield "wwid", _text(wwid)
    yield "number", f"{device.major}:{device.minor}, sequence {_number(device.diskseq)}"
    yield "size", UNKNOWN if device.size_bytes is None else format_size(device.size_bytes)
    yield "blocks", f"logical {_number(device.logical_block_bytes)}, physical {_number(device.physical_block_bytes)}"
    depth = "n/a" if device.queue_limit is None else device.queue_limit
    yield "limits", f"nr_requests {_number(device.nr_requests)}, queue_depth {depth}"
    yield "scheduler", _text(device.scheduler)
    yield "write cache", _text(device.write_cache)
    yield "flags", ", ".join(_flags(device)) or UNKNOWN
    yield "built on", _text(" ".join(device.slaves))
    yield "used by", _text(" ".join(device.holders))


def _flags(device: Device) -> Iterator[str]:
    if device.rotational is not None:
        yield "rotating" if device.rotational else "solid state"
    if device.read_only:
        yield "read only"
    if device.removable:
        yield "removable"
    if device.bio_based:
        yield "bio-based: has no request queue, only total time is known"
    if device.iostats is False:
        yield "iostats OFF: its numbers do not move"


def _text(text: str) -> str:
    return safe_text(text) if text else UNKNOWN


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)
