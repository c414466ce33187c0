"""What shows of each widget of a layout, behind those in front of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from textual.geometry import Region
from textual.widget import Widget

Places = Mapping[Widget, tuple[Region, Region]]
"""Region and clip of each visible widget, from front to back."""
Run = tuple[int, int]
"""Columns, the end exclusive."""


def uncovered_parts(places: Places, screen: Region) -> dict[Widget, list[Region]]:
    """Return what shows of each widget as rectangles that do not overlap; none of one that is covered.

    Lines between which no widget begins or ends are looked at together: most layouts have some twenty such bands.
    """
    shown = {widget: region.intersection(clip).intersection(screen) for widget, (region, clip) in places.items()}
    edges = sorted({y for region in shown.values() for y in (region.y, region.bottom)})
    free: list[list[Run]] = [[(screen.x, screen.right)] for _ in edges]
    parts: dict[Widget, list[Region]] = {widget: [] for widget in places}
    for widget, region in shown.items():
        if not region:
            continue
        for band in range(bisect_left(edges, region.y), bisect_left(edges, region.bottom)):
            taken, free[band] = _split(free[band], region.x, region.right)
            _add(parts[widget], taken, edges[band], edges[band + 1])
    return parts


def _split(runs: Sequence[Run], start: int, end: int) -> tuple[list[Run], list[Run]]:
    """Split runs into what is from `start` to `end`, and the rest."""
    taken: list[Run] = []
    left: list[Run] = []
    for first, last in runs:
        if last <= start or first >= end:
            left.append((first, last))
            continue
        taken.append((max(first, start), min(last, end)))
        if first < start:
            left.append((first, start))
        if last > end:
            left.append((end, last))
    return taken, left


def _add(parts: list[Region], runs: Sequence[Run], top: int, bottom: int) -> None:
    """Add the runs of a band; one that continues the last rectangle makes it higher."""
    for first, last in runs:
        continues = parts and (parts[-1].x, parts[-1].right, parts[-1].bottom) == (first, last, top)
        start = parts.pop().y if continues else top
        parts.append(Region.from_corners(first, start, last, bottom))
