"""The title line of a chart: what it shows, and each curve's name, pattern and value."""

from __future__ import annotations

import time
from collections.abc import Sequence

from collectors.fields import Unit
from tui.format import format_quantity
from tui.glyphs import Glyphs
from tui.safe import fit, safe_text, width_of

_VALUE_WIDTH = 5
_GAP = "  "


def heading(title: str, unit: Unit, inspected_ns: int | None) -> str:
    """Name a chart, its unit, and the moment that is inspected, if any."""
    moment = "" if inspected_ns is None else time.strftime(" at %H:%M:%S", time.localtime(inspected_ns / 1e9))
    return safe_text(title) + (f" {unit}" if unit else "") + moment


def title_runs(
    head: str, unit: Unit, curves: Sequence[tuple[str, float]], width: int, glyphs: Glyphs
) -> list[tuple[str, int | None]]:
    """Lay out the line as runs of text and curve number, None for the title itself; exactly `width` cells.

    `curves` are names and values, now or at the inspected moment. Where room is short, curves are left out from
    the end.
    """
    entries = [_entry(number, name, value, unit, glyphs) for number, (name, value) in enumerate(curves)]
    runs: list[tuple[str, int | None]] = [(fit(head, min(width, width_of(head)), glyphs.ellipsis), None)]
    room = width - width_of(runs[0][0])
    for number, entry in enumerate(entries):
        if width_of(entry) + len(_GAP) > room:
            break
        runs.append((_GAP + entry, number))
        room -= width_of(entry) + len(_GAP)
    if room:
        runs.append((" " * room, None))
    return runs


def _entry(number: int, name: str, value: float, unit: Unit, glyphs: Glyphs) -> str:
    sample = glyphs.curve_samples[number % len(glyphs.curve_samples)]
    return f"{sample} {safe_text(name)} {format_quantity(value, unit, _VALUE_WIDTH).rjust(_VALUE_WIDTH)}"
