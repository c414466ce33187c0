"""Figures of groups of paths, merged as their fields say; what cannot be merged is missing."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio
from collectors.field import Combine, Field
from collectors.model import Frame, FrameTable, Rows, Tier
from collectors.paths.groups import GroupBy, PathGroups
from collectors.tables.block.fields import PATH_FIELDS, PORT_FIELDS

Codes = NDArray[np.uint8]

_SPOKEN_FOR = 0.9
"""Share of a group's I/Os with a known mean needed to give a mean of the group."""
_SAME_PCT = 0.5
"""Largest difference in percentage points of least and most busy time to show them as one figure."""
ONLY_OF_PORTS = tuple(field.id for field in PORT_FIELDS if field.id not in {one.id for one in PATH_FIELDS})
"""Fields of ports that paths do not have: errors of links, resets of controllers."""
_OF_A_TARGET = ("busy_pct", "busy_low_pct", "busy_high_pct")
_OF_A_PORT = ("busy_pct", "queue_limit", "limit_pct", *ONLY_OF_PORTS)
_OF_A_LUN = ("busy_pct",)


def roll_up(frame: Frame, groups: PathGroups, field_ids: Collection[str]) -> FrameTable:
    """Derive one row per group from the "paths" table of a frame; of its fields only those asked for.

    An unknown amount of one path makes that of its group unknown. Busy times of paths may overlap, so that of a group
    is a range, `busy_low_pct` to `busy_high_pct`; `busy_pct` is present if both are about equal, or if the frame has
    the union: for ports in "hbas" and "target_ports", for LUNs in "disks". Percentiles of a group cannot be derived
    from those of its paths.
    """
    paths = frame.tables["paths"]
    member = groups.group_of_row >= 0
    of = _Members(np.flatnonzero(member), groups.group_of_row[member], len(groups.rows))
    columns: dict[str, Values] = {}
    tiers: dict[str, Codes] = {}
    for field in PATH_FIELDS:
        values = paths.columns.get(field.id)
        if values is not None and field.id in field_ids:
            columns[field.id] = _rolled(field, values, paths, of)
            if field.id in paths.tiers:
                tiers[field.id] = _worst(paths.tiers[field.id], values, of, columns[field.id])
    low, high = of.largest(paths.columns["busy_pct"]), np.minimum(100.0, of.sum(paths.columns["busy_pct"]))
    columns |= {"busy_low_pct": low, "busy_high_pct": high, "paths": of.sum(np.ones(len(paths.rows)))}
    with np.errstate(invalid="ignore"):
        columns["busy_pct"] = np.where(high - low <= _SAME_PCT, low, np.nan)
    return _with_own(frame, groups, FrameTable(groups.rows, columns, tiers))


class _Members:
    """Rows of each group."""

    def __init__(self, at: NDArray[np.intp], group: NDArray[np.intp], count: int) -> None:
        self.at = at
        self._group = group
        self._count = count

    def sum(self, values: Values) -> Values:
        return np.bincount(self._group, values[self.at], minlength=self._count).astype(np.float64)

    def largest(self, values: Values) -> Values:
        """Maximum per group, NaN without values."""
        found = np.full(self._count, np.nan)
        np.fmax.at(found, self._group, values[self.at])
        return found


def _rolled(field: Field, values: Values, paths: FrameTable, of: _Members) -> Values:
    match field.combined:
        case Combine.MEAN:
            return _mean(values, paths.columns[field.per], of)
        case Combine.LARGEST:
            return of.largest(values)
        case Combine.SUM:
            return of.sum(values)
    return of.sum(np.full(len(values), np.nan))


def _mean(values: Values, ios: Values, of: _Members) -> Values:
    """Weight means by their I/Os; missing if too many I/Os have no mean."""
    known = ~np.isnan(values)
    spoken, total = of.sum(np.where(known, ios, 0.0)), of.sum(ios)
    mean = ratio(of.sum(np.where(known, values * ios, 0.0)), spoken)
    with np.errstate(invalid="ignore"):
        return np.where(spoken >= _SPOKEN_FOR * total, mean, np.nan)


def _worst(codes: Codes, values: Values, of: _Members, rolled: Values) -> Codes:
    """Tier of a group: the lowest tier of its figures; what is at least so much lies just below what is exact."""
    worth = np.where(np.isnan(values), np.nan, -_RANKS[codes])
    worst = -of.largest(worth)
    known = ~(np.isnan(worst) | np.isnan(rolled))
    return np.where(known, _OF_RANK[np.where(known, worst, 0).astype(np.intp)], np.uint8(Tier.NONE)).astype(np.uint8)


_BY_WORTH = (Tier.NONE, Tier.KERNEL, Tier.SAMPLED, Tier.AT_LEAST, Tier.EXACT)
_OF_RANK = np.array(_BY_WORTH, np.uint8)
_RANKS = np.argsort(_OF_RANK).astype(np.float64)


def _with_own(frame: Frame, groups: PathGroups, rolled: FrameTable) -> FrameTable:
    """Add figures that the frame has for a port or LUN itself and that no sum of its paths gives."""
    names = {
        GroupBy.PORT: ("hbas", _OF_A_PORT),
        GroupBy.TARGET: ("target_ports", _OF_A_TARGET),
        GroupBy.LUN: ("disks", _OF_A_LUN),
    }
    table_name, field_ids = names.get(groups.by, ("", ()))
    own = frame.tables.get(table_name)
    if own is None or not len(own.rows):
        return rolled
    at = np.array([own.rows.positions.get(key, -1) for key in groups.of], np.intp)
    columns, tiers = dict(rolled.columns), dict(rolled.tiers)
    for field_id in field_ids:
        if field_id in own.columns:
            values = np.where(at >= 0, own.columns[field_id][at], np.nan)
            known = ~np.isnan(values)
            columns[field_id] = np.where(known, values, columns.get(field_id, np.full(len(at), np.nan)))
            if field_id in own.tiers and field_id in tiers:
                tiers[field_id] = np.where(known, own.tiers[field_id][at], tiers[field_id]).astype(np.uint8)
    return FrameTable(rolled.rows, columns, tiers)


def joined(rows: Rows, groups: FrameTable, paths: FrameTable, field_ids: tuple[str, ...]) -> FrameTable:
    """Join groups and their paths in one table, groups first; a path's busy range is its busy time.

    Args:
        rows: rows of the joined table: those of the groups, then those of the paths.
        groups: result of `roll_up`.
        paths: the "paths" table of the same frame.
        field_ids: columns of the result.
    """
    columns, tiers = {}, {}
    for field_id in field_ids:
        columns[field_id] = np.concatenate((_column(groups, field_id), _column(paths, field_id)))
        if field_id in groups.tiers and field_id in paths.tiers:
            tiers[field_id] = np.concatenate((groups.tiers[field_id], paths.tiers[field_id]))
    return FrameTable(rows, columns, tiers)


def _column(table: FrameTable, field_id: str) -> Values:
    return table.columns.get(field_id, np.full(len(table.rows), np.nan))
