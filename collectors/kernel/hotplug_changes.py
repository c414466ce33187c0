"""Changes of disks between two snapshots, and their event texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from collectors.kernel.identity import DeviceInstance, storable_name, sysfs_name
from collectors.kernel.sysfs import text
from collectors.kernel.uevents import UnitAttention
from engine._native import read_attributes

MOST_EVENTS = 32
"""More changes than this at once (a port with its thousand paths) are reported in one event."""


class DiskChange(StrEnum):
    """Kind of change of a disk."""

    ADDED = "added"
    REMOVED = "removed"
    REPLACED = "replaced"
    RESIZED = "resized"


class Change(Struct, frozen=True):
    """One changed disk."""

    action: DiskChange
    name: str
    size_bytes: int | None


def changes_between(before: Mapping[str, DeviceInstance], now: Mapping[str, DeviceInstance]) -> list[Change]:
    """Compare two snapshots, by name."""
    changes = []
    for name in sorted(before.keys() | now.keys()):
        action = _action(before.get(name), now.get(name))
        if action is not None:
            there = now.get(name) or before[name]
            changes.append(Change(action, name, there.size_bytes))
    return changes


def _action(before: DeviceInstance | None, now: DeviceInstance | None) -> DiskChange | None:
    if before is None:
        return DiskChange.ADDED
    if now is None:
        return DiskChange.REMOVED
    if before.diskseq != now.diskseq:
        return DiskChange.REPLACED
    return DiskChange.RESIZED if before.size_bytes != now.size_bytes else None


def describe(sysfs: str, changes: Sequence[Change]) -> Iterator[tuple[str, dict[str, str | int]]]:
    """Yield text and data of an event per change, or of one event for very many."""
    if len(changes) > MOST_EVENTS:
        counts = Counter(str(change.action) for change in changes)
        yield "disks: " + ", ".join(f"{count:,} {action}" for action, count in counts.items()), dict(counts)
        return
    for change in changes:
        about = "" if change.action is DiskChange.REMOVED else f" ({_about(sysfs, change)})"
        data: dict[str, str | int] = {"name": storable_name(change.name), "action": str(change.action)}
        if change.size_bytes is not None:
            data["size_bytes"] = change.size_bytes
        yield f"disk {storable_name(change.name)} {change.action}{about}", data


_LUN_SET = "REPORTED_LUNS_DATA_HAS_CHANGED"


def describe_attentions(found: Sequence[UnitAttention]) -> Iterator[tuple[str, dict[str, str | int]]]:
    """Yield text and data of an event for each thing that a SCSI target or device has said, or of one for very many.

    Each device of a target says that the LUN set has changed: it is said once for a target.
    """
    said: dict[tuple[str, str], str] = {}
    for address, change in found:
        name = address.rpartition(":")[0] if change == _LUN_SET else address
        said.setdefault((name, change), address)
    if len(said) > MOST_EVENTS:
        counts = Counter(_words(change) for _, change in said)
        yield "SCSI devices: " + ", ".join(f"{count:,} say {words}" for words, count in counts.items()), dict(counts)
        return
    for (name, change), address in said.items():
        data: dict[str, str | int] = {"name": address, "action": _words(change)}
        if change == _LUN_SET:
            host, _, rest = name.partition(":")
            fix = f"echo '{rest.replace(':', ' ')} -' > /sys/class/scsi_host/host{host}/scan finds new ones"
            yield f"the LUN set of SCSI target {name} has changed: {fix}", data
        else:
            yield f"SCSI device {name} says {_words(change)}", data


def _words(change: str) -> str:
    return change.replace("_", " ").lower()


def _about(sysfs: str, change: Change) -> str:
    """Size, then model or backing file."""
    try:
        [[model, backing_file]] = read_attributes(
            str(Path(sysfs, "block")), [sysfs_name(change.name)], ["device/model", "loop/backing_file"]
        )
    except OSError:
        model = backing_file = None
    parts = ["size unknown" if change.size_bytes is None else size_text(change.size_bytes)]
    if text(model):
        parts.append(f"model {text(model)}")
    if text(backing_file):
        parts.append(f"over {text(backing_file)}")
    return ", ".join(parts)


def size_text(size_bytes: int) -> str:
    """Format a size with a binary unit: "64 MiB", "1.5 TiB"."""
    amount = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} PiB"
