"""Sums of all disks over an interval, computed once for all users."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from collectors.derive.disk_interval import DiskInterval, disk_intervals
from collectors.derive.inflight_samples import GroupSamples, group_samples
from collectors.model import Sample
from collectors.subject import interval_s
from collectors.tables.block.derive.traced import Traced, traced
from collectors.tables.block.schema import DISK, GROUP


@dataclass(frozen=True, slots=True, eq=False)
class BlockInterval:
    """Sums of the raw tables of disks, groups and tracepoints over an interval; the arrays are never modified."""

    moved: Sequence[DiskInterval]
    sampled_groups: GroupSamples
    traced: Traced | None


@functools.lru_cache(maxsize=1)
def block_interval(previous: Sample | None, current: Sample) -> BlockInterval:
    """Compute the sums between two samples with a disk table; the last result is cached.

    A report derives the frame of an interval and adds the same interval to its averages.
    """
    elapsed_s = interval_s(previous, current)
    before = {} if previous is None else previous.tables
    moved = disk_intervals(before.get(DISK.name), current.tables[DISK.name], elapsed_s, current.topology.host.long_bits)
    sampled_groups = group_samples(before.get(GROUP.name), current.tables.get(GROUP.name), elapsed_s)
    return BlockInterval(tuple(moved), sampled_groups, traced(previous, current))
