"""The tables of a published study that a preset repeated, and the curve of isolation (lunscope.preset/1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from collectors.reports.documents.content import (
    NONE,
    Block,
    Bullets,
    Charts,
    Document,
    DocumentTable,
    DrawnAxis,
    DrawnChart,
    DrawnCurve,
    Form,
    Paragraph,
    Section,
)
from collectors.reports.documents.host import host_section_of
from collectors.reports.documents.json_values import Values, figure, number, part, parts, text_of, texts
from engine.errors import UsageError
from engine.version import version

_PUBLISHED = "published_elsewhere"
_BESIDE = "Columns marked * were published elsewhere, on other hardware: to compare with, not to expect."
_MOST_SECONDS = 60


def study_report(path: Path, study: Values) -> Document:
    """Describe a study.

    Raises:
        UsageError: nothing of it was measured.
    """
    if not parts(study, "tables"):
        raise UsageError(f"{path}: holds no measurement of a preset: give another file")
    targets = texts(study, "targets")
    on = f" on {', '.join(targets[:8])}" if targets else ""
    title = f"{path.name}: preset {text_of(study.get('preset'))}{on}; report made by lunscope {version()}"
    return Document("Study report", title, (*study_sections(study), host_section_of(part(study, "host"))))


def study_sections(study: Values) -> list[Section]:
    """Make a section of the tables, and one of what was published besides and what is missing."""
    source = part(study, _PUBLISHED)
    facts = texts(source, "facts")
    heading = Paragraph(f"Published elsewhere, on other hardware ({text_of(source.get('source'))}):")
    published = (heading, Bullets(facts)) if facts else ()
    name, title = f"Study: {text_of(study.get('preset'))}", Paragraph(text_of(study.get("title")))
    isolation, tables = part(study, "isolation"), tuple(_tables(study))
    whole = Section(name, (title, *tables, *published))
    if isolation:
        answer = Paragraph(text_of(isolation.get("answer")), important=True)
        whole = Section(name, (title, answer), (*_isolation_blocks(study, isolation), *tables, *published))
    return [
        whole,
        Section("Notes and caveats of the study", (Bullets(missing) if (missing := tuple(_missing(study))) else NONE,)),
    ]


def _missing(study: Values) -> Iterator[str]:
    sweeps = [part(each, "sweep") for each in parts(study, "parts")]
    yield from (line for sweep in sweeps for line in texts(sweep, "troubles"))
    yield from texts(study, "remarks")
    if study.get("complete") is True:
        return
    isolation = part(study, "isolation")
    if isolation:
        ended = text_of(isolation.get("ended") or "points were skipped")
        yield f"not complete: {ended}; {len(parts(isolation, 'points'))} points were measured"
    else:
        early = [text_of(sweep.get("ended")) for sweep in sweeps if sweep.get("complete") is not True]
        done = sum(len(parts(curve, "trials")) for sweep in sweeps for curve in parts(sweep, "curves"))
        yield f"not complete: {early[0] if early else 'stopped'}; {done} measurements were made"


def _tables(study: Values) -> Iterator[Block]:
    for table in parts(study, "tables"):
        rows = parts(table, "rows")
        if rows:
            yield _table(table, rows)


def _table(table: Values, rows: Sequence[Values]) -> DocumentTable:
    keys = [key for key in rows[0] if key != _PUBLISHED]
    alone = parts(table, "published_elsewhere_only")
    beside = next((part(each, _PUBLISHED) for each in rows if each.get(_PUBLISHED)), None) or next(iter(alone), {})
    digits = {text_of(each.get("key")): each for each in parts(table, "columns")}
    cells = [
        (*(_cell(row.get(key), digits.get(key, {})) for key in keys), *_published(part(row, _PUBLISHED), beside))
        for row in rows
    ]
    cells += [(*("" for _ in keys), *_published(row, beside)) for row in alone]
    head = (*((_title(key, digits.get(key, {})), "") for key in keys), *((f"* {key}", "") for key in beside))
    words = sum(isinstance(rows[0].get(key), str) for key in keys[:1])
    return DocumentTable(text_of(table.get("title")), head, tuple(cells), texts=words, note=_BESIDE if beside else "")


def _published(row: Values, heads: Values) -> tuple[str, ...]:
    return tuple(str(row.get(head, "-")) for head in heads)


def _title(key: str, column: Values) -> str:
    title = column.get("title")
    return title if isinstance(title, str) else key.replace("_", " ")


def _cell(value: object, column: Values) -> str:
    if isinstance(value, str):
        return value
    digits = column.get("digits")
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return figure(float(value), digits if isinstance(digits, int) else 3) if known else "-"  # type: ignore[arg-type]


def _isolation_blocks(study: Values, isolation: Values) -> Iterator[Block]:
    """Make the victim over the load of the aggressor, and its isolation second by second."""
    rows = [row for table in parts(study, "tables")[:1] for row in parts(table, "rows")]
    charts = tuple(_chart(rows, key, title, unit) for key, title, unit in _DRAWN)
    charts = tuple(chart for chart in charts if chart.curves)
    if charts:
        yield Charts(charts, "Over the queue depth of the aggressor, by cap")
    yield from _seconds(isolation)


_DRAWN = (
    ("victim_p99_ms", "p99 of the victim", "ms"),
    ("victim_mean_ms", "mean of the victim", "ms"),
    ("isolation_factor_p5", "isolation factor, 5th percentile", ""),
)


def _chart(rows: list[Values], key: str, title: str, unit: str) -> DrawnChart:
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        depth, value = number(row, "aggressor_queue_depth"), number(row, key)
        if depth > 0 and math.isfinite(value):
            name = f"cap {text_of(row.get('cap'))}, {text_of(row.get('aggressor_block'))}"
            lines.setdefault(name, []).append((depth, value))
    curves = tuple(
        DrawnCurve(name, tuple(x for x, _ in sorted(points)), tuple(y for _, y in sorted(points)), Form.POINTS)
        for name, points in lines.items()
    )
    return DrawnChart(title, unit, curves, DrawnAxis.LOG, "queue depth of the aggressor")


def _seconds(isolation: Values) -> Iterator[Block]:
    rows = []
    for point in parts(isolation, "points"):
        load, cap, seconds = part(point, "aggressor"), part(point, "cap"), parts(point, "seconds")
        factors = [figure(number(second, "isolation_factor"), 2) for second in seconds[:_MOST_SECONDS]]
        more = " ..." if len(seconds) > _MOST_SECONDS else ""
        name = f"QD {figure(number(load, 'queue_depth'), 0)}, {text_of(load.get('block'))}" if load else "alone"
        rows.append((name, _cap(cap), " ".join(factors) + more, figure(number(point, "isolation_factor_p5"), 2)))
    if rows:
        head = (("aggressor", ""), ("cap", ""), ("isolation factor of each second", ""), ("5th percentile", ""))
        yield DocumentTable("Isolation second by second", head, tuple(rows), texts=3)


def _cap(cap: Values) -> str:
    limits = (("reads_per_s", "riops"), ("bytes_per_s", "rbps"))
    known = [f"{name}={value:.0f}" for key, name in limits if (value := number(cap, key)) > 0]
    return ", ".join(known) or "none"
