"""The title line of a chart: what it shows, and each curve's name, pattern and value."""

from __future__ import annotations

import time
from collections.abc import Sequence

from collectors.field import Unit
from tui.text.format import format_quantity
from tui.text.glyphs import Glyphs
from tui.text.safe import cell_text, fit, width_of

_VALUE_WIDTH = 5


def heading(title: str, unit: Unit, inspected_ns: int | None) -> str:
    """Name a chart, its unit, and the moment that is inspected, if any."""
    moment = "" if inspected_ns is None else time.strftime(" at %H:%M:%S", time.localtime(inspected_ns / 1e9))
    return cell_text(title) + (f" {unit}" if unit else "") + moment


def title_runs(
    head: str, unit: Unit, curves: Sequence[tuple[str, float]], width: int, glyphs: Glyphs
) -> list[tuple[str, int | None]]:
    """Lay out the line as runs of text and curve number, None for the heading; exactly `width` cells.

    `curves` are names and values, now or at the inspected moment. Where room is short the spaces that keep values
    in place are given up first, then curves from the end.
    """
    runs: list[tuple[str, int | None]] = [(fit(head, min(width, width_of(head)), glyphs.ellipsis), None)]
    room = width - width_of(runs[0][0])
    entries = _entries(curves, unit, glyphs, value_width=_VALUE_WIDTH, gap="  ")
    if sum(map(width_of, entries)) > room:
        entries = _entries(curves, unit, glyphs, value_width=0, gap=" ")
    for number, entry in enumerate(entries):
        if width_of(entry) > room:
            break
        runs.append((entry, number))
        room -= width_of(entry)
    return [*runs, (" " * room, None)] if room else runs


def _entries(
    curves: Sequence[tuple[str, float]], unit: Unit, glyphs: Glyphs, *, value_width: int, gap: str
) -> list[str]:
    """Write what the legend says of each curve."""
    samples = glyphs.curve_samples
    return [
        f"{gap}{samples[number % len(samples)]} {cell_text(name)} "
        f"{format_quantity(value, unit, _VALUE_WIDTH).rjust(value_width)}"
        for number, (name, value) in enumerate(curves)
    ]
