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
from collectors.reports.documents.svg import svg_of
from collectors.reports.formats.registry import HTML_MARK, Format
from engine.text import safe_text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Nothing is loaded or run, whatever a name in a recording holds."""


def html_lines(document: Document) -> Iterator[str]:
    """Yield the lines of the file, without line ends."""
    yield "<!DOCTYPE html>"
    yield HTML_MARK
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
    for block in section.whole:
        yield from _block(block)
    yield "</section>"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Facts():
            rows = "".join(f"<dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd>" for name, value in block.rows)
            yield f"<dl>{rows}</dl>"
        case Bullets():
            yield f"<ul>{''.join(f'<li>{_escaped(line)}</li>' for line in block.whole)}</ul>"
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


_LIGHT = {
    "back": "#fcfcfb",
    "card": "#ffffff",
    "ink": "#1b1b1a",
    "dim": "#5f5e5a",
    "rule": "#dedcd6",
    "answer": "#eaf2fc",
    "s0": "#2a78d6",
    "s1": "#d9601f",
    "s2": "#138a5e",
    "s3": "#b37400",
    "s4": "#6a51c4",
    "s5": "#c83a6b",
}
_DARK = {
    "back": "#161615",
    "card": "#1f1f1e",
    "ink": "#f2f1ee",
    "dim": "#aaa8a1",
    "rule": "#3b3a37",
    "answer": "#1b2a3d",
    "s0": "#5598e7",
    "s1": "#ee7d42",
    "s2": "#2fb380",
    "s3": "#d9a021",
    "s4": "#9c8cf0",
    "s5": "#e56d95",
}


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


_COLOURS = f""":root{{{_variables(_LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(_DARK)}}}}}
"""
_SERIES = "".join(f".line.s{n},.dot.s{n}{{stroke:var(--s{n})}}.fill.s{n},.dot.s{n},i.s{n}{{fill:var(--s{n})}}"
                  f"i.s{n}{{background:var(--s{n})}}" for n in range(6))  # fmt: skip
STYLE = (
    _COLOURS
    + """
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.45 system-ui,sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:1200px;margin:0 auto;padding:16px;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:0 0 4px}h2{font-size:1.15rem;margin:32px 0 8px;border-bottom:1px solid var(--rule)}
h3{font-size:1rem;margin:20px 0 6px}p{margin:6px 0}header p,.note,dt{color:var(--dim)}.note{font-size:.87rem}
.answer{
background:var(--answer);padding:10px 12px;border-radius:6px;font-size:1.05rem}
dl{display:grid;grid-template-columns:minmax(7em,auto) 1fr;gap:2px 16px;margin:8px 0}dd{margin:0}
ul{margin:8px 0;padding-left:1.2em}
.scroll{overflow-x:auto;width:fit-content;max-width:100%;border:1px solid var(--rule);
border-radius:6px;background:var(--card)}
table{border-collapse:collapse;
width:max-content;font-size:.9rem;font-variant-numeric:tabular-nums;overflow-wrap:normal}
th,td{padding:4px 10px;text-align:left;vertical-align:top;white-space:nowrap;
border-top:1px solid var(--rule)}
thead th{border-top:0;font-weight:600}
td:first-child{white-space:normal;max-width:15em;overflow-wrap:anywhere}
td:last-child{white-space:normal;max-width:40em;overflow-wrap:anywhere}
td.n:last-child{white-space:nowrap}
th.n,td.n{text-align:right}th span{display:block;font-weight:400;font-size:.8rem;color:var(--dim);min-height:1.2em}
.charts{display:grid;margin-top:12px;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));gap:12px}
figure{margin:0;padding:8px;border:1px solid var(--rule);border-radius:6px;background:var(--card);min-width:0}
figcaption{font-size:.9rem}figcaption span{color:var(--dim)}
small{display:block;color:var(--dim);font-size:.82rem}
i{display:inline-block;width:10px;height:10px;border-radius:2px;margin:0 4px 0 0}
small i:not(:first-child){margin-left:8px}
svg{display:block;width:100%;height:auto}text{font:11px system-ui,sans-serif;fill:var(--dim)}
.grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--dim);stroke-width:1;fill:none}
.line{fill:none;stroke-width:1.6;stroke-linecap:round;stroke-linejoin:round}.fill{opacity:.35;stroke:none}
.dot{stroke-width:1}.mark{stroke:var(--ink);stroke-width:1;stroke-dasharray:3 3;opacity:.6;fill:none}
.band{fill:var(--dim);opacity:.16}
@media (max-width:480px){main{padding:10px}
dl{grid-template-columns:1fr}dd{margin:0 0 6px}th,td{padding:4px 7px}}
@media print{.scroll{overflow:visible}figure,tr{break-inside:avoid}}
"""
    + _SERIES
)
"""The whole style sheet."""


FORMAT = Format(
    "html",
    "Write one self-contained HTML file with charts, - for stdout; --from may name a recording, a run or a sweep.",
    HTML_MARK,
    html_lines,
)
