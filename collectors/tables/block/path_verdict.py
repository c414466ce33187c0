"""Paths that are slow or carry more than their part, in words; no claim goes beyond the figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio
from collectors.graph import Graph
from collectors.kernel.device_ids import label_of
from collectors.model import Frame, FrameTable, Rows, Tier
from engine.text import safe_text

_EVEN_POLICIES = ("round-robin", "queue-length", "queue-depth")
"""Path selectors that spread I/Os evenly over paths of one kind; with others (service-time, numa) shares may differ."""

Positions = NDArray[np.intp]


class Peers(Struct, frozen=True, eq=False):
    """Rows of a "paths" table that may be compared, by group; the same object until rows or graph change."""

    at: Positions
    group: Positions
    """Group of each row of `at`."""
    size: Values
    """Paths per group, and below whether its policy spreads I/Os evenly."""
    even: NDArray[np.bool_]
    rows: int
    """Rows of the table."""

    def sums(self, values: Values) -> Values:
        """Return for each row of `at` the sum over its group."""
        return np.bincount(self.group, values, minlength=len(self.size)).astype(np.float64)[self.group]

    def spread(self, values: NDArray[np.float64] | NDArray[np.bool_]) -> Values:
        """Expand values of `at` to all rows of the table, NaN elsewhere."""
        spread = np.full(self.rows, np.nan)
        spread[self.at] = values
        return spread


@lru_cache(maxsize=4)
def peers_of(rows: Rows, graph: Graph) -> Peers:
    """Group the rows of a "paths" table; paths without a peer are left out."""
    groups: dict[tuple[str, str, int | None], list[int]] = {}
    for path in graph.paths:
        if path.usable and path.key in rows.positions:
            groups.setdefault((path.lun, path.access, path.group), []).append(rows.positions[path.key])
    policies = {lun.key: lun.policy for lun in graph.luns}
    several = [(lun, members) for (lun, _, _), members in groups.items() if len(members) > 1]
    sizes = [len(members) for _, members in several]
    return Peers(
        at=np.array([row for _, members in several for row in members], np.intp),
        group=np.repeat(np.arange(len(several)), sizes),
        size=np.array(sizes, np.float64),
        even=np.array([policies.get(lun, "") in _EVEN_POLICIES for lun, _ in several], np.bool_),
        rows=len(rows),
    )


SICK_TIMES = 2.0
"""A path is slow if its I/Os take this many times as long as those of its peers, ..."""
SICK_MS = 1.0
"""... and at least this much longer: fast paths differ by microseconds without a fault."""
LEAST_IOS = 20.0
"""I/Os of a path in the interval below which its mean is not significant."""
UNEVEN = 2.0
"""A path carries too much if it has this many times its part of the I/Os, ..."""
UNEVEN_SHARE_PCT = 60.0
"""... and most of them."""
STALL_S = 0.9
"""A path is stalled if it has outstanding I/Os and completes none for at least this long, while its peers do, ..."""
_HELD_BUSY_PCT = 90.0
"""... throughout: exact figures give the time with I/Os outstanding, counters the number at both ends."""


class PathJudgement(Struct, frozen=True, eq=False):
    """Comparison of the paths of a frame with their peers; every array has one value per row of its "paths" table.

    Only usable paths of one LUN and one access state are compared: a non-optimized path may be slower. Times are
    service times where all compared paths have them, else whole latencies.
    """

    sick_times: Values
    """Ratio of the path's time per I/O to that of its peers, NaN if it is not slow; infinite if it completes none."""
    uneven_times: Values
    """Ratio of the path's I/Os to its part, NaN if that is not too much."""
    by_service: NDArray[np.bool_]
    """Whether service times were compared."""

    @property
    def odd(self) -> NDArray[np.intp]:
        """Rows that are slow or carry too much."""
        return np.flatnonzero(~(np.isnan(self.sick_times) & np.isnan(self.uneven_times)))


def path_verdicts(frame: Frame) -> Iterator[str]:
    """Yield a line per odd path: "path sdc carries 61 % of mpatha and its S is 4.2x its peers'"."""
    judged = judge_paths(frame)
    if judged is not None:
        for row in judged.odd.tolist():
            yield odd_words(frame, judged, row)


def odd_words(frame: Frame, judged: PathJudgement, row: int) -> str:
    """Describe what is wrong with a path in one line, safe to print; empty if nothing is."""
    stalled = math.isinf(judged.sick_times[row])
    words = _stall_words(frame, row) if stalled else ""
    if not math.isnan(judged.uneven_times[row]):
        words += f", {judged.uneven_times[row]:.1f}x its part"
    if not (stalled or math.isnan(judged.sick_times[row])):
        name = "S" if judged.by_service[row] else "await"
        words += f" and its {name} is {judged.sick_times[row]:.1f}x its peers'"
    if not words:
        return ""
    table, graph = frame.tables["paths"], frame.topology.graph
    path = graph.paths[_path_positions(graph)[table.rows.keys[row]]]
    label = safe_text(label_of(frame.topology.devices.get(path.lun), path.lun))
    return f"path {safe_text(path.name)} carries {table.value('lun_share_pct', row):.0f} % of {label}{words}"


def _stall_words(frame: Frame, row: int) -> str:
    held = frame.tables["paths"].value("in_flight", row)
    what = "1 I/O is" if round(held) == 1 else f"{held:.0f} I/Os are"
    return f": {what} outstanding and none completed in {frame.elapsed_s:.1f} s, while its peers work"


def judge_paths(frame: Frame) -> PathJudgement | None:
    """Compare all paths with their peers; None without paths or without an interval."""
    table = frame.tables.get("paths")
    if table is None or math.isnan(frame.elapsed_s):
        return None
    peers = peers_of(table.rows, frame.topology.graph)
    ios = table.columns["iops"][peers.at] * frame.elapsed_s
    by_service = _times_are_split(table, peers, ios)
    means = np.where(by_service, table.columns["service_ms"][peers.at], table.columns["await_ms"][peers.at])
    return PathJudgement(
        sick_times=peers.spread(np.where(_stalled(table, peers, frame.elapsed_s), np.inf, _sick(peers, ios, means))),
        uneven_times=peers.spread(_uneven(peers, ios)),
        by_service=peers.spread(by_service) > 0,
    )


@lru_cache(maxsize=4)
def _path_positions(graph: Graph) -> dict[str, int]:
    return {path.key: position for position, path in enumerate(graph.paths)}


def _times_are_split(table: FrameTable, peers: Peers, ios: Values) -> NDArray[np.bool_]:
    unsplit = (ios > 0) & np.isnan(table.columns["service_ms"][peers.at])
    split: NDArray[np.bool_] = (peers.sums(unsplit.astype(np.float64)) == 0) & (peers.sums(ios) > 0)
    return split


def _stalled(table: FrameTable, peers: Peers, elapsed_s: float) -> NDArray[np.bool_]:
    """Find paths with outstanding I/Os that complete none while others of their LUN do."""
    ios, held = table.columns["iops"][peers.at] * elapsed_s, table.columns["in_flight"][peers.at]
    with np.errstate(invalid="ignore"):
        stalled: NDArray[np.bool_] = (ios == 0) & (held >= 1.0) & (elapsed_s >= STALL_S)
        exact = table.tiers["busy_pct"][peers.at] == Tier.EXACT
        stalled &= ~exact | (table.columns["busy_pct"][peers.at] >= _HELD_BUSY_PCT)
        return stalled & (peers.sums(ios) >= LEAST_IOS)


def _uneven(peers: Peers, ios: Values) -> Values:
    total, size = peers.sums(ios), peers.size[peers.group]
    share_pct = 100.0 * ratio(ios, total)
    with np.errstate(invalid="ignore"):
        uneven = peers.even[peers.group] & (total >= LEAST_IOS) & (share_pct >= UNEVEN_SHARE_PCT)
        uneven &= share_pct >= UNEVEN * 100.0 / size
    return np.where(uneven, share_pct * size / 100.0, np.nan)


def _sick(peers: Peers, ios: Values, means: Values) -> Values:
    """Compare each path with all of its peers together; a path with an unknown amount excludes its whole group."""
    with np.errstate(invalid="ignore"):
        counted = (ios >= LEAST_IOS) & ~np.isnan(means)
    counted_ios, time_ms = np.where(counted, ios, 0.0), np.where(counted, ios * means, 0.0)
    others_ios, others_ms = peers.sums(counted_ios) - counted_ios, peers.sums(time_ms) - time_ms
    # Every counted path has at least LEAST_IOS; less than half of that is a rounding error of the difference.
    others = ratio(np.where(others_ios > LEAST_IOS / 2, others_ms, np.nan), others_ios)
    with np.errstate(invalid="ignore"):
        sick = counted & (others > 0) & (means >= SICK_TIMES * others) & (means - others >= SICK_MS)
    sick &= ~np.isnan(peers.sums(ios))
    return np.where(sick, ratio(means, others), np.nan)
