"""Work on maps of the device mapper: dm-raid, mirrors, snapshots that merge; how full snapshots and thin pools are.

Formats: Documentation/admin-guide/device-mapper/dm-raid.rst, snapshot.rst, thin-provisioning.rst; dm-raid1.c and
dm-log.c for mirrors.
"""

from __future__ import annotations

from collections.abc import Iterator

from collectors.kernel.identity import SECTOR_BYTES
from collectors.kernel.mapped_targets import MappedTarget
from collectors.tables.background.schema import FILL, ArrayWork
from engine.text import whole_number

_MD_WORDS = {"recover": "recovery", "resync": "resync", "check": "check", "repair": "resync", "reshape": "reshape"}
"""Actions of dm-raid, in the words of /proc/mdstat."""
_REGION_AT = {"core": 2, "disk": 3}
"""Where the size of a region stands in the table of a mirror, by the type of its log."""
KINDS = ("raid", "mirror", "snapshot", "snapshot-merge", "thin-pool")


def mapped_work(target: MappedTarget, status: str) -> ArrayWork | None:
    """Return what is under way on a map; None where nothing is, or the format is unknown."""
    try:
        return next(_READERS[target.kind](target, status.split()), None)
    except (IndexError, ValueError):
        return None


def _raid(target: MappedTarget, words: list[str]) -> Iterator[ArrayWork]:
    """`raid1 2 AA 1024/2048 resync 0 0 -`: level, devices, their health, progress in sectors, action.

    The progress of raid10 is that of the array, not of one device.
    """
    action, (done, total) = _MD_WORDS.get(words[4]), _part(words[3])
    if action is not None:
        members = None if words[0].startswith("raid10") else _count(words[1])
        missing = words[2].count("D") + words[2].count("-")
        yield ArrayWork(
            target.name,
            action,
            done_bytes=done * SECTOR_BYTES,
            total_bytes=total * SECTOR_BYTES,
            members=members,
            missing_members=missing,
        )


def _mirror(target: MappedTarget, words: list[str]) -> Iterator[ArrayWork]:
    """`2 253:3 253:4 300/400 1 AA 1 core`: devices, regions in sync of all, health."""
    members, table = _count(words[0]), target.table.split()
    done, total = _part(words[1 + members])
    region_bytes = _count(table[_REGION_AT.get(table[0], len(table))]) * SECTOR_BYTES
    if done < total:
        missing = sum(letter != "A" for letter in words[3 + members])
        yield ArrayWork(
            target.name,
            "recovery",
            done_bytes=done * region_bytes,
            total_bytes=total * region_bytes,
            members=members,
            missing_members=missing,
        )


def _snapshot(target: MappedTarget, words: list[str]) -> Iterator[ArrayWork]:
    """`1024/204800 16`: sectors in use of the exceptions' store, and those of metadata; words where it is invalid."""
    used, total = _part(words[0])
    yield ArrayWork(target.name, FILL, done_bytes=used * SECTOR_BYTES, total_bytes=total * SECTOR_BYTES)


def _merge(target: MappedTarget, words: list[str]) -> Iterator[ArrayWork]:
    """Likewise; it is done when only metadata is in use."""
    (used, total), metadata = _part(words[0]), _count(words[1])
    free = total - max(used - metadata, 0)
    yield ArrayWork(target.name, "merge", done_bytes=free * SECTOR_BYTES, total_bytes=total * SECTOR_BYTES)


def _pool(target: MappedTarget, words: list[str]) -> Iterator[ArrayWork]:
    """`1 20/4096 300/1600 - rw ...`: transaction, blocks of metadata and of data in use; the table has their size."""
    used, total = _part(words[2])
    block_bytes = _count(target.table.split()[2]) * SECTOR_BYTES
    yield ArrayWork(target.name, FILL, done_bytes=used * block_bytes, total_bytes=total * block_bytes)


_READERS = {"raid": _raid, "mirror": _mirror, "snapshot": _snapshot, "snapshot-merge": _merge, "thin-pool": _pool}


def _part(word: str) -> tuple[int, int]:
    part, _, whole = word.partition("/")
    return _count(part), _count(whole)


def _count(word: str) -> int:
    value = whole_number(word)
    if value is None:
        raise ValueError(word)
    return value
