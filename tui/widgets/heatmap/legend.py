"""Texts of a heat map: its density scale, and the cell under the cursor."""

from __future__ import annotations

import math
from collections.abc import Iterator

from collectors.field import Unit
from collectors.session.time_format import clock_text
from tui.text.format import format_quantity
from tui.text.glyphs import Glyphs
from tui.widgets.heatmap.model import LEVELS, HeatPicture
from tui.widgets.heatmap.plot import P50, P99, PEAK

_NS_PER_MS = 1e6
_WIDTH = 5
LEAST_MS_NS = 999.5
"""Latencies from here on are shown in milliseconds, smaller ones in nanoseconds."""
PLAIN = -1
"""Owner of text without a level or line."""


def latency_text(latency_ns: float) -> str:
    """Milliseconds in at most five cells, with the unit unless a suffix gives it; below 0.001 in ns."""
    if 0 < latency_ns < LEAST_MS_NS:
        return f"{latency_ns:.0f}ns"
    text = format_quantity(latency_ns / _NS_PER_MS, Unit.MILLISECONDS, _WIDTH)
    return f"{text} ms" if text[-1].isdigit() else text


def legend(picture: HeatPicture, glyphs: Glyphs, *, lines: bool) -> Iterator[tuple[str, int]]:
    """Yield the I/Os of each glyph, and the glyphs of the lines, as runs with their owners."""
    yield "I/Os ", PLAIN
    shown = ""
    for level in range(1, LEVELS + 1):
        if glyphs.heat[level] != shown:
            shown = glyphs.heat[level]
            yield f"{shown} {_count(math.ceil(picture.least_of(level)))} ", level
    if lines:
        for glyph, name, owner in zip(glyphs.heat_lines, ("p50", "p99", "max"), (P50, P99, PEAK), strict=True):
            yield f" {glyph} {name}", owner


def cursor_text(picture: HeatPicture, column: int, row: int) -> str:
    """Text of a cell: its I/Os and the percentile of the column that it reaches; row 0 is the lowest."""
    columns, rows = picture.columns, picture.columns.rows
    ios, here = int(columns.ios[column]), int(columns.counts[column, row])
    band = f"{_moment(picture, column)}  {_ms(rows.low_ns[row])}-{latency_text(float(rows.high_ns[row]))}"
    if not ios:
        return f"{band}: no I/O"
    at_most = _percent(int(columns.at_most[column, row]) / ios)
    peak = latency_text(float(columns.peaks_ns[column]))
    return f"{band}: {_count(here)} of {_count(ios)} I/Os, {_percent(here / ios)} %, up to p{at_most}, peak {peak}"


def _moment(picture: HeatPicture, column: int) -> str:
    """End of a column; if it covers several seconds, also its begin."""
    columns = picture.columns
    end = clock_text(int(columns.ends_ns[column]))
    return f"{clock_text(int(columns.starts_ns[column]))}-{end[3:]}" if columns.seconds[column] >= 2 else end


def _ms(latency_ns: float) -> str:
    return latency_text(float(latency_ns)).removesuffix(" ms")


def _count(ios: int) -> str:
    return str(ios) if ios < 10_000 else format_quantity(float(ios), Unit.COUNT, _WIDTH - 1)


def _percent(share: float) -> str:
    """Percent; a value above 0 is never shown as 0, one below 100 never as 100."""
    if 0.99 < share < 1:
        return f"{min(int(share * 1e4) / 100, 99.99):g}"
    return format_quantity(100 * share, Unit.PERCENT, 4)
