"""Which path is sick or carries more than its part, in words; never more than the figures support."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from collectors.device_names import label_of
from collectors.model import Frame, FrameTable
from collectors.topology.graph import Lun, Path
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


@dataclass(frozen=True, slots=True)
class _Side:
    """What one path, or all its peers together, took."""

    ios: float
    time_ms: float

    @property
    def mean_ms(self) -> float:
        return self.time_ms / self.ios if self.ios > 0 else math.nan


def path_verdicts(frame: Frame) -> Iterator[str]:
    """Yield a line per path that is not like its peers: "path sdc carries 61 % of mpatha and its S is 4.2x its peers'".

    Compared are paths of one access state only: a non-optimized path may be slower. Times are service times where all
    paths of the LUN have them, else whole latencies.
    """
    table = frame.tables.get("paths")
    if table is None or math.isnan(frame.elapsed_s):
        return
    graph = frame.topology.graph
    for lun in graph.luns:
        groups: dict[str, list[Path]] = {}
        for place in graph.paths_of[lun.key]:
            path = graph.paths[place]
            if path.usable and path.key in table.rows.positions:
                groups.setdefault(f"{path.access}/{path.group}", []).append(path)
        for paths in groups.values():
            if len(paths) > 1:
                yield from _compare(frame, table, lun, paths)


def _compare(frame: Frame, table: FrameTable, lun: Lun, paths: list[Path]) -> Iterator[str]:
    rows = [table.rows.positions[path.key] for path in paths]
    field_id, name = _measure(table, rows)
    ios = np.array([table.value("iops", row) * frame.elapsed_s for row in rows])
    means = np.array([table.value(field_id, row) for row in rows])
    if np.isnan(ios).any():
        return
    for place, path in enumerate(paths):
        peers = [other for other in range(len(paths)) if other != place]
        words = [*_uneven(lun, ios, place), *_sick(ios, means, place, peers, name)]
        if words:
            label = safe_text(label_of(frame.topology.devices.get(lun.key), lun.name))
            share = 100.0 * ios[place] / ios.sum()
            yield f"path {safe_text(path.name)} carries {share:.0f} % of {label}" + "".join(words)


def _measure(table: FrameTable, rows: list[int]) -> tuple[str, str]:
    busy = [row for row in rows if table.value("iops", row) > 0]
    split = all(not math.isnan(table.value("service_ms", row)) for row in busy)
    return ("service_ms", "S") if split and busy else ("await_ms", "await")


def _uneven(lun: Lun, ios: np.ndarray[tuple[int], np.dtype[np.float64]], place: int) -> Iterator[str]:
    share_pct = 100.0 * ios[place] / ios.sum() if ios.sum() >= LEAST_IOS else 0.0
    even = lun.policy in _EVEN_POLICIES
    if even and share_pct >= UNEVEN_SHARE_PCT and share_pct >= UNEVEN * 100.0 / len(ios):
        yield f", {share_pct * len(ios) / 100.0:.1f}x its part"


def _sick(
    ios: np.ndarray[tuple[int], np.dtype[np.float64]],
    means: np.ndarray[tuple[int], np.dtype[np.float64]],
    place: int,
    peers: list[int],
    name: str,
) -> Iterator[str]:
    counted = [peer for peer in peers if ios[peer] >= LEAST_IOS and not math.isnan(means[peer])]
    others = _Side(float(ios[counted].sum()), float((ios[counted] * means[counted]).sum()))
    if ios[place] < LEAST_IOS or math.isnan(means[place]) or math.isnan(others.mean_ms) or others.mean_ms <= 0:
        return
    if means[place] >= SICK_TIMES * others.mean_ms and means[place] - others.mean_ms >= SICK_MS:
        yield f" and its {name} is {means[place] / others.mean_ms:.1f}x its peers'"
