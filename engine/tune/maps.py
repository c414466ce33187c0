"""Tunables of maps of the device mapper.

Documentation/admin-guide/device-mapper: dm-queue-length.rst, dm-service-time.rst, cache.rst, cache-policies.rst.
"""

from __future__ import annotations

from engine.tune.map_values import CacheArgument, PathSelector
from engine.tune.multipath_table import canonical_selectors
from engine.tune.tunable import Tunable, TunedKind, between, fixed

_SELECTOR = PathSelector()


def _policy(key: str, what: str) -> Tunable:
    return Tunable(
        f"dm_cache.{key}",
        TunedKind.DISK,
        f"dm/{key}",
        f"mq: {what}; ignored since Linux 4.6",
        legal=between(0),
        computed=CacheArgument(key),
    )


MAPS = (
    Tunable(
        "path_selector",
        TunedKind.DISK,
        "dm/path_selector",
        "path of each I/O within a group of a multipath map",
        legal=_SELECTOR.legal,
        default=fixed("service-time 0"),
        computed=_SELECTOR,
        canonical=canonical_selectors,
    ),
    Tunable(
        "dm_cache.migration_threshold",
        TunedKind.DISK,
        "dm/migration_threshold",
        "dm-cache: most data migrated at a time",
        "sectors",
        legal=between(0),
        default=fixed("2048"),
        computed=CacheArgument("migration_threshold"),
    ),
    _policy("sequential_threshold", "I/Os of a sequence"),
    _policy("random_threshold", "I/Os that end one"),
    _policy("discard_promote_adjustment", "for discards"),
    _policy("read_promote_adjustment", "for reads"),
    _policy("write_promote_adjustment", "for writes"),
)
"""The files are names only: sysfs does not have them."""
