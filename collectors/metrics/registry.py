"""All levels: the families of each subject, in the order in which they are exported."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.metrics.cgroups import CGROUP_LEVEL
from collectors.metrics.disks import DISK_LEVEL
from collectors.metrics.hosts import HOST_LEVEL, ITSELF_LEVEL, TAPE_LEVEL
from collectors.metrics.latency import LATENCY_LEVEL, PORT_LATENCY_LEVEL
from collectors.metrics.nfs import NFS_LEVEL
from collectors.metrics.paths import PATH_LEVEL
from collectors.metrics.ports import PORT_LEVEL, TARGET_LEVEL
from collectors.metrics.states import STATE_LEVEL
from collectors.metrics.view import MetricLevel
from engine.errors import UsageError
from engine.text import safe_text, short_text

LEVELS: tuple[MetricLevel, ...] = (
    DISK_LEVEL,
    LATENCY_LEVEL,
    PATH_LEVEL,
    PORT_LEVEL,
    PORT_LATENCY_LEVEL,
    TARGET_LEVEL,
    STATE_LEVEL,
    CGROUP_LEVEL,
    TAPE_LEVEL,
    HOST_LEVEL,
    NFS_LEVEL,
)
"""Levels that can be chosen; ITSELF_LEVEL is always there."""
ALWAYS = ITSELF_LEVEL
ALL = "all"

DEFAULT_LEVELS = tuple(level.id for level in LEVELS if level.default)


def chosen_levels(names: Sequence[str]) -> tuple[MetricLevel, ...]:
    """Levels by their ids, in order of the registry; the default ones without any.

    Args:
        names: ids, or several separated by commas; "all" are all.

    Raises:
        UsageError: there is no such level.
    """
    wanted = [part.strip() for name in names for part in name.split(",")] or list(DEFAULT_LEVELS)
    known = {level.id for level in LEVELS}
    for name in wanted:
        if name not in {*known, ALL}:
            listed = ", ".join([*(level.id for level in LEVELS), ALL])
            raise UsageError(f"level '{safe_text(short_text(name))}': give {listed}")
    return tuple(level for level in LEVELS if ALL in wanted or level.id in wanted)
