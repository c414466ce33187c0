"""Which path is sick or carries more than its part, in words; never more than the figures support."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.growth import Values, ratio
from collectors.device_names import label_of
from collectors.model import Frame, FrameTable, Rows
from collectors.topology.graph import Graph
from engine.text import safe_text

SICK_TIMES = 2.0
"""A path is sick when its I/Os take that many times what its peers' take, ..."""
SICK_MS = 1.0
"""... and at least that much longer: fast paths differ by microseconds without anything being wrong."""
LEAST_IOS = 20.0
"""I/Os of a path in the interval below which its mean is chance."""
UNEVEN = 2.0
"""A path carries too much when it has that many times its part of the I/Os, ..."""
UNEVEN_SHARE_PCT = 60.0
"""... and most of them."""

_EVEN_POLICIES = ("round-robin", "queue-length", "queue-depth")
"""Selectors that spread I/Os evenly over paths of one kind; by others (service-time, numa) a share says nothing."""

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class PathJudgement:
    """How the paths of a frame compare with their peers; every array has one value per row of its "paths" table.

    Compared are usable paths of one LUN and one access state only: a non-optimized path may be slower. Times are
    service times where all paths that are compared have them, else whole latencies.
    """

    sick_times: Values
    """How many times its peers' an I/O takes, NaN where the path is not sick."""
    uneven_times: Values
    """How many times its part the path carries, NaN where that is not too much."""
    by_service: NDArray[np.bool_]
    """Whether service times were compared."""

    @property
    def odd(self) -> Places:
        """Rows that are sick or carry too much."""
        return np.flatnonzero(~(np.isnan(self.sick_times) & np.isnan(self.uneven_times)))


@dataclass(frozen=True, slots=True, eq=False)
class _Peers:
    """Rows that may be compared, by group; one object as long as rows and graph stay."""

    at: Places
    group: Places
    """Group of each of `at`."""
    size: Values
    """Paths of each group, and below whether its policy spreads I/Os evenly."""
    even: NDArray[np.bool_]


def path_verdicts(frame: Frame) -> Iterator[str]:
    """Yield a line per odd path: "path sdc carries 61 % of mpatha and its S is 4.2x its peers'"."""
    judged = judge_paths(frame)
    if judged is not None:
        for row in judged.odd.tolist():
            yield odd_words(frame, judged, row)


def odd_words(frame: Frame, judged: PathJudgement, row: int) -> str:
    """Say in a line what is odd about a path, safe to print; empty where nothing is."""
    words = ""
    if not math.isnan(judged.uneven_times[row]):
        words += f", {judged.uneven_times[row]:.1f}x its part"
    if not math.isnan(judged.sick_times[row]):
        name = "S" if judged.by_service[row] else "await"
        words += f" and its {name} is {judged.sick_times[row]:.1f}x its peers'"
    if not words:
        return ""
    table, graph = frame.tables["paths"], frame.topology.graph
    path = graph.paths[_place_of_path(graph)[table.rows.keys[row]]]
    label = safe_text(label_of(frame.topology.devices.get(path.lun), path.lun))
    return f"path {safe_text(path.name)} carries {table.value('lun_share_pct', row):.0f} % of {label}{words}"


def judge_paths(frame: Frame) -> PathJudgement | None:
    """Compare all paths with their peers; None without paths or an interval."""
    table = frame.tables.get("paths")
    if table is None or math.isnan(frame.elapsed_s):
        return None
    peers = _peers(table.rows, frame.topology.graph)
    ios = table.columns["iops"][peers.at] * frame.elapsed_s
    by_service = _times_are_split(table, peers, ios)
    means = np.where(by_service, table.columns["service_ms"][peers.at], table.columns["await_ms"][peers.at])
    return PathJudgement(
        sick_times=_spread(table, peers, _sick(peers, ios, means)),
        uneven_times=_spread(table, peers, _uneven(peers, ios)),
        by_service=_spread(table, peers, by_service) > 0,
    )


@lru_cache(maxsize=4)
def _peers(rows: Rows, graph: Graph) -> _Peers:
    groups: dict[tuple[str, str, int | None], list[int]] = {}
    for path in graph.paths:
        if path.usable and path.key in rows.positions:
            groups.setdefault((path.lun, path.access, path.group), []).append(rows.positions[path.key])
    policies = {lun.key: lun.policy for lun in graph.luns}
    several = [(lun, members) for (lun, _, _), members in groups.items() if len(members) > 1]
    sizes = [len(members) for _, members in several]
    return _Peers(
        at=np.array([row for _, members in several for row in members], np.intp),
        group=np.repeat(np.arange(len(several)), sizes),
        size=np.array(sizes, np.float64),
        even=np.array([policies.get(lun, "") in _EVEN_POLICIES for lun, _ in several], np.bool_),
    )


@lru_cache(maxsize=4)
def _place_of_path(graph: Graph) -> dict[str, int]:
    return {path.key: place for place, path in enumerate(graph.paths)}


def _spread(table: FrameTable, peers: _Peers, values: NDArray[np.float64] | NDArray[np.bool_]) -> Values:
    """Put values of compared paths in their rows."""
    spread = np.full(len(table.rows), np.nan)
    spread[peers.at] = values
    return spread


def _sums(peers: _Peers, values: Values) -> Values:
    """Sum of each path's group."""
    return np.bincount(peers.group, values, minlength=len(peers.size)).astype(np.float64)[peers.group]


def _times_are_split(table: FrameTable, peers: _Peers, ios: Values) -> NDArray[np.bool_]:
    unsplit = (ios > 0) & np.isnan(table.columns["service_ms"][peers.at])
    split: NDArray[np.bool_] = (_sums(peers, unsplit.astype(np.float64)) == 0) & (_sums(peers, ios) > 0)
    return split


def _uneven(peers: _Peers, ios: Values) -> Values:
    total, size = _sums(peers, ios), peers.size[peers.group]
    share_pct = 100.0 * ratio(ios, total)
    with np.errstate(invalid="ignore"):
        uneven = peers.even[peers.group] & (total >= LEAST_IOS) & (share_pct >= UNEVEN_SHARE_PCT)
        uneven &= share_pct >= UNEVEN * 100.0 / size
    return np.where(uneven, share_pct * size / 100.0, np.nan)


def _sick(peers: _Peers, ios: Values, means: Values) -> Values:
    """Compare each path with all of its peers together; a path of an unknown amount leaves its whole group out."""
    with np.errstate(invalid="ignore"):
        counted = (ios >= LEAST_IOS) & ~np.isnan(means)
    counted_ios, time_ms = np.where(counted, ios, 0.0), np.where(counted, ios * means, 0.0)
    others_ios, others_ms = _sums(peers, counted_ios) - counted_ios, _sums(peers, time_ms) - time_ms
    # Whatever is counted has LEAST_IOS; less than half of that is what rounding leaves of a difference.
    others = ratio(np.where(others_ios > LEAST_IOS / 2, others_ms, np.nan), others_ios)
    with np.errstate(invalid="ignore"):
        sick = counted & (others > 0) & (means >= SICK_TIMES * others) & (means - others >= SICK_MS)
    sick &= ~np.isnan(_sums(peers, ios))
    return np.where(sick, ratio(means, others), np.nan)
