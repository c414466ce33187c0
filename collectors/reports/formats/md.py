"""A document as Markdown (GitHub's): tables stay tables, charts become lines of block characters with their range."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import assert_never

from collectors.reports.documents.content import (
    Block,
    Bullets,
    Charts,
    Document,
    DocumentTable,
    DrawnAxis,
    DrawnChart,
    Facts,
    Paragraph,
)
from collectors.reports.documents.scale import short_number, time_label
from collectors.reports.formats.registry import HTML_MARK, Format
from engine.text import safe_text

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!$^]")
_LINKS = re.compile(r"@|:(?=/)|(?<=www)\.", re.IGNORECASE)
_STARTS = re.compile(r"^(\s*)([-+=]+|\d+[.)])(?=\s|$)")
_BLOCKS = "▁▂▃▄▅▆▇█"
_CELLS = 60


def markdown_lines(document: Document) -> Iterator[str]:
    """Yield the lines of the file, without line ends."""
    yield HTML_MARK
    yield f"# {_escaped(document.title)}"
    yield ""
    yield _line(document.lead)
    for section in document.filled():
        yield ""
        yield f"## {_escaped(section.title)}"
        for block in section.whole:
            yield ""
            yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Facts():
            yield from (f"- {_line(name)}: {_escaped(value)}" for name, value in block.rows)
        case Bullets():
            yield from (f"- {_line(line)}" for line in block.whole)
        case Paragraph():
            yield f"**{_escaped(block.text)}**" if block.important else _line(block.text)
        case DocumentTable():
            yield from _grid(block)
        case Charts():
            yield from _charts(block)
        case _:
            assert_never(block)


def _grid(grid: DocumentTable) -> Iterator[str]:
    if grid.title:
        yield f"### {_escaped(grid.title)}"
        yield ""
    titles = (f"{name} ({unit})" if unit else name for name, unit in grid.head)
    yield f"| {' | '.join(_escaped(title) or ' ' for title in titles)} |"
    yield f"|{'|'.join('---' if at < grid.texts or not grid.head[at][0] else '--:' for at in range(len(grid.head)))}|"
    for row in grid.rows:
        yield f"| {' | '.join(map(_escaped, row))} |"
    if grid.note:
        yield ""
        yield _line(grid.note)


def _charts(charts: Charts) -> Iterator[str]:
    if charts.title:
        yield f"### {_escaped(charts.title)}"
        yield ""
    # Four spaces and no fence: a text that holds one could otherwise end the block.
    for chart in charts.charts:
        lines = list(_chart(chart))
        if lines:
            yield f"    {safe_text(chart.title)}{f', {safe_text(chart.unit)}' if chart.unit else ''}"
            yield from (f"    {line}" for line in lines)
            yield ""


def _chart(chart: DrawnChart) -> Iterator[str]:
    known = [value for curve in chart.curves for value in curve.y if math.isfinite(value)]
    if not known:
        return
    top = max(known)
    width = max(len(safe_text(curve.name)) for curve in chart.curves)
    for curve in chart.curves:
        values = [value for value in curve.y if math.isfinite(value)]
        if values:
            least, largest = short_number(min(values), chart.unit), short_number(max(values), chart.unit)
            yield f"{safe_text(curve.name):<{width}} {_bars(curve.y, top)} {least} to {largest}"
    across = [value for curve in chart.curves for value in curve.x]
    ends = (_axis(chart, min(across)), _axis(chart, max(across)))
    title = f" {safe_text(chart.axis_title)}" if chart.axis_title else ""
    yield f"{'':<{width}} from {ends[0]} to {ends[1]}{title}"


def _axis(chart: DrawnChart, value: float) -> str:
    return time_label(value, chart.start_ns) if chart.axis is DrawnAxis.TIME else short_number(value)


def _bars(values: tuple[float, ...], top: float) -> str:
    """Draw values in at most `_CELLS` characters, each the largest of its part; a gap is a space."""
    per_cell = max(math.ceil(len(values) / _CELLS), 1)
    cells = []
    for start in range(0, len(values), per_cell):
        known = [value for value in values[start : start + per_cell] if math.isfinite(value)]
        share = max(known) / top if known and top > 0 else 0.0
        cells.append(_BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)] if known else " ")
    return "".join(cells)


def _escaped(text: str) -> str:
    """Write plain text so that nothing in it has an effect, links of plain addresses and mentions included."""
    marked = _SPECIAL.sub(lambda found: f"\\{found[0]}", safe_text(text))
    return _LINKS.sub(lambda found: f"&#{ord(found[0])};", marked)


def _line(text: str) -> str:
    """Write the text of a whole line: what would make it a list or a heading has no effect either."""
    return _STARTS.sub(lambda found: f"{found[1]}{found[2][:-1]}\\{found[2][-1]}", _escaped(text))


FORMAT = Format("md", "The same as Markdown.", HTML_MARK, markdown_lines)
