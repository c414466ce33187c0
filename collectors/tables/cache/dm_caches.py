"""dm-cache and dm-writecache from the device mapper. Needs root; read-only.

Formats: Documentation/admin-guide/device-mapper/cache.rst and writecache.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from collectors.kernel.identity import SECTOR_BYTES
from collectors.kernel.mapped_targets import MappedTarget, MappedTargets
from collectors.model import Rows
from collectors.tables.cache.schema import CacheEntry, cache_key
from engine.text import whole_number

_TARGETS = {"cache": "dm-cache", "writecache": "dm-writecache"}
_MODES = ("writeback", "writethrough", "passthrough")


def parse_cache(status: str) -> tuple[str, dict[str, int]]:
    """Parse the status of dm-cache: its mode and the raw values; the word Fail means that it is switched off.

    `md_block used/total cache_block used/total read_hits read_misses write_hits write_misses demotions promotions
    dirty #features f... #core a... policy #args a... rw|ro needs_check|-`; block sizes in sectors.

    Raises:
        ValueError: an unknown format.
    """
    words = status.split()
    if words[:1] == ["Fail"]:
        return "", {"failed": 1}
    if len(words) < 12:
        raise ValueError(status)
    metadata_block, block = (_count(words[at]) * SECTOR_BYTES for at in (0, 2))
    metadata_used, metadata_size = map(_count, words[1].split("/"))
    used, size = map(_count, words[3].split("/"))
    names = ("read_hits", "read_misses", "write_hits", "write_misses", "demotions", "promotions")
    features = words[12 : 12 + _count(words[11])]
    mode = next((word for word in features if word in _MODES), "")
    return mode, {
        **dict(zip(names, map(_count, words[4:10]), strict=True)),
        "dirty_bytes": _count(words[10]) * block,
        "used_bytes": used * block,
        "size_bytes": size * block,
        "metadata_used_bytes": metadata_used * metadata_block,
        "metadata_size_bytes": metadata_size * metadata_block,
        "failed": int("needs_check" in words[-1:]),
    }


def parse_writecache(status: str, block_bytes: int) -> dict[str, int]:
    """Parse the status of dm-writecache: 14 fields, the first four before Linux 5.15.

    Kernels count requests in the fields 5 to 11; blocks since Linux 6.0, and in stable kernels that have the change.

    Raises:
        ValueError: an unknown format.
    """
    words = [_count(word) for word in status.split()]
    if len(words) < 4:
        raise ValueError(status)
    error, blocks, free, writeback = words[:4]
    values = {
        "failed": int(error != 0),
        "size_bytes": blocks * block_bytes,
        "used_bytes": max(0, blocks - free) * block_bytes,
        "dirty_bytes": max(0, blocks - free) * block_bytes,
        "writeback_bytes": writeback * block_bytes,
    }
    return values if len(words) < 14 else values | _writecache_counts(words[4:14])


def _writecache_counts(words: list[int]) -> dict[str, int]:
    reads, read_hits, _, uncommitted, committed, bypassed, allocated, blocked, flushes, discards = words
    return {
        "read_hits": read_hits,
        "read_misses": max(0, reads - read_hits),
        "write_hits": uncommitted + committed,
        "write_misses": allocated,
        "write_bypasses": bypassed,
        "blocked": blocked,
        "flushes": flushes,
        "discards": discards,
    }


def writecache_block_bytes(table: str) -> int:
    """Read the block size from the table of dm-writecache: `p|s origin cache block_size ...`.

    Raises:
        ValueError: an unknown format.
    """
    words = table.split()
    if len(words) < 4:
        raise ValueError(table)
    return _count(words[3])


def _count(word: str) -> int:
    value = whole_number(word)
    if value is None:
        raise ValueError(word)
    return value


class MappedCaches:
    """Reads the status of the maps that are caches at every tick."""

    def __init__(self, targets: MappedTargets) -> None:
        self._targets = targets

    @classmethod
    def of_host(cls, sysfs: str) -> MappedCaches | None:
        """Return the reader; None without the rights, or if `sysfs` is not of the running kernel."""
        targets = MappedTargets.of_host(sysfs, _TARGETS)
        return None if targets is None else cls(targets)

    def entries(self, disks: Rows) -> Iterator[CacheEntry]:
        """Yield the caches among these disks; one that vanished meanwhile, or has another format, is left out."""
        for target, status in self._targets.states(disks):
            entry = cache_entry(target, status)
            if entry is not None:
                yield entry

    def close(self) -> None:
        """Close the control device."""
        self._targets.close()


def cache_entry(target: MappedTarget, status: str) -> CacheEntry | None:
    """Make the row of a cache from its status; None if its format is unknown."""
    kind = _TARGETS[target.kind]
    try:
        mode, values = parse_cache(status) if kind == "dm-cache" else ("", _writecache(target, status))
    except ValueError:
        return None
    return CacheEntry(cache_key(kind, target.key), " ".join(filter(None, (target.name, kind, mode))), values)


def _writecache(target: MappedTarget, status: str) -> dict[str, int]:
    return parse_writecache(status, writecache_block_bytes(target.table))
