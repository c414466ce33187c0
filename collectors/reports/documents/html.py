"""A document as one HTML file that needs nothing else: no script, no resource, its style inside."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import assert_never

from collectors.reports.documents.content import (
    Block,
    Bullets,
    Charts,
    Document,
    DocumentTable,
    DrawnChart,
    Facts,
    Form,
    Paragraph,
    Section,
)
from collectors.reports.documents.style import STYLE
from collectors.reports.documents.svg import svg_of
from engine.text import safe_text

MARK = "<!-- lunscope report -->"
"""Mark in the first lines of every file, so that only such files are overwritten."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Nothing is loaded or run, whatever a name in a recording holds."""


def html_lines(document: Document) -> Iterator[str]:
    """Yield the lines of the file, without line ends."""
    yield "<!DOCTYPE html>"
    yield MARK
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
    yield f"<title>{_escaped(document.title)}</title>"
    yield f"<style>{STYLE}</style></head><body><main>"
    yield f"<header><h1>{_escaped(document.title)}</h1><p>{_escaped(document.lead)}</p></header>"
    for section in document.filled():
        yield from _section(section)
    yield "</main></body></html>"


def _section(section: Section) -> Iterator[str]:
    yield f"<section><h2>{_escaped(section.title)}</h2>"
    for block in section.blocks:
        yield from _block(block)
    yield "</section>"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Facts():
            rows = "".join(f"<dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd>" for name, value in block.rows)
            yield f"<dl>{rows}</dl>"
        case Bullets():
            yield f"<ul>{''.join(f'<li>{_escaped(line)}</li>' for line in block.lines)}</ul>"
        case Paragraph():
            kind = ' class="answer"' if block.important else ""
            yield f"<p{kind}>{_escaped(block.text)}</p>"
        case DocumentTable():
            yield from _grid(block)
        case Charts():
            yield from _charts(block)
        case _:
            assert_never(block)


def _grid(grid: DocumentTable) -> Iterator[str]:
    title = f"<h3>{_escaped(grid.title)}</h3>" if grid.title else ""
    label = _escaped(grid.title or "table")
    yield f'{title}<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table><thead><tr>'
    for at, (name, unit) in enumerate(grid.head):
        yield f"<th{_kind(grid, at)}>{_escaped(name)}<span>{_escaped(unit)}</span></th>"
    yield "</tr></thead><tbody>"
    for row in grid.rows:
        cells = (f"<td{_kind(grid, at)}>{_escaped(cell)}</td>" for at, cell in enumerate(row))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    if grid.note:
        yield f'<p class="note">{_escaped(grid.note)}</p>'


def _kind(grid: DocumentTable, at: int) -> str:
    return "" if at < grid.texts or not grid.head[at][0] else ' class="n"'


def _charts(charts: Charts) -> Iterator[str]:
    drawn = [figure for chart in charts.charts if (figure := _figure(chart))]
    if drawn:
        yield f"<h3>{_escaped(charts.title)}</h3>" if charts.title else ""
        yield f'<div class="charts">{"".join(drawn)}</div>'


def _figure(chart: DrawnChart) -> str:
    svg = svg_of(chart)
    if not svg:
        return ""
    unit = f" <span>{_escaped(chart.unit)}</span>" if chart.unit else ""
    keys = "".join(f'<i class="s{at % 6}"></i>{_escaped(curve.name)} ' for at, curve in enumerate(chart.curves))
    named = len(chart.curves) > 1 or chart.curves[0].form is Form.STACKED
    legend = f"<small>{keys}</small>" if named else ""
    return f"<figure><figcaption><b>{_escaped(chart.title)}</b>{unit}{legend}</figcaption>{svg}</figure>"


def _escaped(text: str) -> str:
    return escape(safe_text(text), quote=True)
