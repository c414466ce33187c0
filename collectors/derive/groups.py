"""Sums over the paths of a LUN or a port: from what each path did, never from its averages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.derive.disk_interval import DiskInterval
from collectors.derive.growth import Values

_NOT_ADDED = frozenset({"elapsed_s", "looked_s", "looked_busy_s", "busy_s"})
"""Of the sums of one disk those that do not add up over several: time passes once for all of them."""

_SPOKEN_FOR = 0.9
"""Share of a group's I/Os that the in-flight sampler must have seen to speak for the queue time of all."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """What groups of rows did together; one row of an unknown amount makes its whole group unknown.

    `interval` has the sums of collectors.derive.disk_interval. Busy times of several rows may overlap, so the truth is
    between that of the busiest row, which is its `busy_s`, and `most_busy_s`.
    """

    interval: DiskInterval
    most_busy_s: Values


def group_sums(
    intervals: Iterable[DiskInterval],
    group_of_row: NDArray[np.intp],
    groups: int,
    elapsed_s: float,
    unknown_rows: NDArray[np.bool_],
) -> GroupSums:
    """Add up rows by group.

    Args:
        intervals: what rows did; those in none of them were idle.
        group_of_row: group of each row, -1 for none.
        groups: how many there are.
        elapsed_s: length of the interval.
        unknown_rows: rows whose counters stand still under load; their groups are unknown.
    """
    sums: dict[str, Values] = {}
    least_s, total_s = np.zeros(groups), np.zeros(groups)
    for interval in intervals:
        group = group_of_row[interval.at]
        ours = group >= 0
        group = group[ours]
        for quantity, values in interval.sums.items():
            if quantity not in _NOT_ADDED:
                added = np.bincount(group, values[ours], minlength=groups).astype(np.float64)
                sums[quantity] = added if quantity not in sums else sums[quantity] + added
        busy_s = interval.sums["busy_s"][ours]
        with np.errstate(invalid="ignore"):
            np.maximum.at(least_s, group, busy_s)
        total_s += np.bincount(group, busy_s, minlength=groups)
    sums = sums or {quantity: np.zeros(groups) for quantity in ("reads", "writes")}
    blind = np.zeros(groups, np.bool_)
    blind[group_of_row[unknown_rows & (group_of_row >= 0)]] = True
    for values in (*sums.values(), least_s, total_s):
        values[blind] = np.nan
    sums |= {
        "elapsed_s": np.full(groups, elapsed_s),
        "looked_s": np.zeros(groups),
        "looked_busy_s": np.zeros(groups),
        "busy_s": least_s,
    }
    if "paired_looks" in sums:
        spoken_for = sums["paired_ios"] >= _SPOKEN_FOR * (sums["reads"] + sums["writes"])
        sums["paired_looks"] = np.where(spoken_for, sums["paired_looks"], 0.0)
    return GroupSums(DiskInterval(slice(groups), sums, np.full(groups, np.nan)), np.minimum(total_s, elapsed_s))
