"""Export as CSV or JSON: recorded figures, one row per device and sample, the slowest I/Os and NFS calls, events."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from collectors.all_subjects import SUBJECTS
from collectors.model import Frame, FrameTable, Step, Tier
from collectors.rates import derive
from collectors.registry import fields_of, subject_of
from collectors.reports.slow_tables import SLOW_TABLES, SlowTable, Value
from collectors.session.reader import SessionReader
from collectors.session.time_format import iso_time
from engine.errors import UsageError
from engine.events import Event
from engine.strict_json import dump_json, rounded
from engine.text import safe_text

_FORMULA_STARTS = ("=", "+", "-", "@")


class _LineEcho:
    """Returns each written line: csv.writer returns the result of `write`."""

    def write(self, line: str) -> str:
        return line


_WRITER = csv.writer(_LineEcho(), lineterminator="")


def csv_line(cells: Iterable[object]) -> str:
    """Write one line, without its end."""
    return str(_WRITER.writerow(cells))


def text_cell(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would interpret as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


SCHEMA = "lunscope.export/1"
TABLES = tuple(subject.table for subject in SUBJECTS)
"""Tables that can be exported."""

HEAD = ("time", "time_ns", "interval_s", "table", "name", "id")
"""Columns before the figures."""


class Selection(Struct, frozen=True):
    """Selected tables and fields; no fields means all of them."""

    tables: tuple[str, ...] = ("disks",)
    fields: tuple[str, ...] = ()

    def checked(self) -> Selection:
        """Return the selection with every field once, in the order of the registry if none are named.

        Raises:
            UsageError: a table or field is not in the registry.
        """
        for table in self.tables:
            if table not in TABLES:
                raise UsageError(f"table {table!r}: unknown; choose from {', '.join(TABLES)}")
        known = tuple(dict.fromkeys(field.id for table in self.tables for field in fields_of(table)))
        for field in self.fields:
            if field not in known:
                raise UsageError(f"field {field!r}: not in {', '.join(self.tables)}; choose from {', '.join(known)}")
        return Selection(tuple(dict.fromkeys(self.tables)), tuple(dict.fromkeys(self.fields)) or known)


class ExportRow(Struct, frozen=True):
    """One device at one sample, independent of the format."""

    head: tuple[str | None, int, float, str, str, str]
    """Values of the columns time, time_ns, interval_s, table, name, id."""
    values: tuple[float, ...]
    """Values in the order of the selection; NaN where missing."""
    tiers: dict[str, str]
    """Tiers by field id, of fields with a tier that varies by device."""


def export_lines(
    reader: SessionReader,
    format_: str,
    selection: Selection | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> Iterator[str]:
    """Yield the lines of an export, without line ends, one sample in memory at a time.

    Raises:
        UsageError: unknown format, table or field, or nothing was recorded in that time.
    """
    if format_ not in FORMATS:
        raise UsageError(f"format {format_!r}: unknown; choose from {', '.join(FORMATS)}")
    selection = selection or Selection()
    first, last = sample_range(reader, start_ns, end_ns)
    for name in set(SLOW_TABLES).intersection(selection.tables):
        if selection.tables != (name,):
            raise UsageError(f"table {name!r}: it has other columns than the rest; export it by itself")
        return slow_lines(SLOW_TABLES[name], reader.steps(first, last), format_, selection.fields)
    if EVENT_TABLE in selection.tables:
        if selection.tables != (EVENT_TABLE,):
            raise UsageError(f"table {EVENT_TABLE!r}: it has other columns than the rest; export it by itself")
        return event_lines(reader.events(), format_, selection.fields, start_ns, end_ns)
    selection = selection.checked()
    return FORMATS[format_](export_rows(reader.steps(first, last), selection), selection)


def sample_range(reader: SessionReader, start_ns: int | None, end_ns: int | None) -> tuple[int, int]:
    """Return the first and last sample of a time range.

    Raises:
        UsageError: nothing was recorded in that range.
    """
    first = reader.first if start_ns is None else reader.index_at(start_ns - 1) + (start_ns > reader.start_ns)
    last = len(reader) - 1 if end_ns is None else reader.index_at(end_ns)
    if first > last or (end_ns is not None and end_ns < reader.start_ns):
        covered = f"{iso_time(reader.start_ns)} to {iso_time(reader.end_ns)}"
        raise UsageError(f"{reader.path}: nothing recorded in that time; it covers {covered}")
    return first, last


def export_rows(steps: Iterable[Step], selection: Selection) -> Iterator[ExportRow]:
    """Yield the rows of all steps; a device without a figure has NaN there."""
    for step in steps:
        frame = derive(step.previous, step.current)
        for name in selection.tables:
            table = frame.tables.get(name)
            if table is not None:
                for row in range(len(table.rows)):
                    yield _row(frame, name, table, row, selection.fields)


def csv_lines(rows: Iterable[ExportRow], selection: Selection) -> Iterator[str]:
    """Yield RFC 4180 lines after one with the names of the columns; missing values are empty.

    A name that begins with = + - or @ gets an apostrophe before it, so that no spreadsheet takes it for a formula.
    `tiers` reads `queue_ms=sampled busy_pct=kernel`.
    """
    yield csv_line((*HEAD, *selection.fields, "tiers"))
    for row in rows:
        time, time_ns, interval_s, table, name, id_ = row.head
        tiers = " ".join(f"{field}={tier}" for field, tier in row.tiers.items())
        numbers = (_decimal(value) for value in row.values)
        cells = (time or "", time_ns, _decimal(interval_s), table, text_cell(name), text_cell(id_), *numbers, tiers)
        yield csv_line(cells)


def json_lines(rows: Iterable[ExportRow], selection: Selection) -> Iterator[str]:
    """Yield one strict JSON document per row, flat, by column and field id; missing values are null."""
    for row in rows:
        head = dict(zip(HEAD, row.head, strict=True)) | {"interval_s": rounded(row.head[2])}
        figures = {field: rounded(value) for field, value in zip(selection.fields, row.values, strict=True)}
        document = {"schema": SCHEMA, **head, **figures, "tiers": row.tiers}
        yield dump_json(document, compact=True)


FORMATS: dict[str, Callable[[Iterable[ExportRow], Selection], Iterator[str]]] = {"csv": csv_lines, "jsonl": json_lines}
"""Formats by the name that `--format` takes."""


def _row(frame: Frame, name: str, table: FrameTable, row: int, fields: tuple[str, ...]) -> ExportRow:
    key = table.rows.keys[row]
    identity = subject_of(name).identity(key, frame.topology)
    head = (iso_time(frame.time_ns), frame.time_ns, frame.elapsed_s, name)
    tiers = {field: table.tiers[field][row] for field in fields if field in table.tiers}
    return ExportRow(
        (*head, safe_text(table.rows.names[row]), identity),
        tuple(table.value(field, row) for field in fields),
        {field: Tier(int(code)).name.lower() for field, code in tiers.items() if code},
    )


def _decimal(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".") if math.isfinite(value) else ""


def slow_lines(table: SlowTable[Any], steps: Iterable[Step], format_: str, fields: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of an export, without line ends; missing is empty in csv and null in jsonl.

    Raises:
        UsageError: a field is none of the table's columns.
    """
    chosen = table.chosen(fields)
    rows = table.rows(steps, chosen)
    yield from _csv(rows, chosen) if format_ == "csv" else _jsonl(table.schema, rows)


def event_lines(
    events: Iterable[Event], format_: str, fields: Sequence[str], start_ns: int | None, end_ns: int | None
) -> Iterator[str]:
    """Yield the lines of an export of events, without line ends.

    Raises:
        UsageError: a field is unknown.
    """
    rows = event_rows(events, fields, start_ns, end_ns)
    if format_ == "csv":
        cells = ({name: csv_cell(value) for name, value in row.items()} for row in rows)
        return _csv(cells, tuple(fields) or tuple(EVENT_COLUMNS))
    documents = ({"schema": EVENT_SCHEMA, **row} for row in rows)
    return (dump_json(document, compact=True) for document in documents)


def _csv(rows: Iterable[dict[str, Value]], chosen: Sequence[str]) -> Iterator[str]:
    yield csv_line(chosen)
    for row in rows:
        yield csv_line(map(_cell, row.values()))


def _cell(value: Value) -> Value:
    return text_cell(value) if isinstance(value, str) else value


def _jsonl(schema: str, rows: Iterable[dict[str, Value]]) -> Iterator[str]:
    for row in rows:
        yield dump_json({"schema": schema, **row}, compact=True)


EVENT_TABLE = "events"
EVENT_SCHEMA = "lunscope.events/1"

EventValue = str | int | float | None | dict[str, str | int | float | None]

EVENT_COLUMNS: dict[str, Callable[[Event], EventValue]] = {
    "time": lambda event: iso_time(event.time_ns),
    "time_ns": lambda event: event.time_ns,
    "kind": lambda event: event.kind.value,
    "text": lambda event: safe_text(event.text),
    "data": lambda event: {
        safe_text(name): safe_text(value) if isinstance(value, str) else value for name, value in event.data.items()
    },
}
"""Columns; `data` has the facts of the event by name, in csv as JSON."""


def event_rows(
    events: Iterable[Event], fields: Iterable[str], start_ns: int | None, end_ns: int | None
) -> Iterator[dict[str, EventValue]]:
    """Yield the rows of the events in a time range, by time.

    Raises:
        UsageError: a field is none of EVENT_COLUMNS.
    """
    chosen = tuple(fields) or tuple(EVENT_COLUMNS)
    unknown = [field for field in chosen if field not in EVENT_COLUMNS]
    if unknown:
        raise UsageError(f"field {unknown[0]!r}: not in {EVENT_TABLE}; choose from {', '.join(EVENT_COLUMNS)}")
    return (
        {name: EVENT_COLUMNS[name](event) for name in chosen}
        for event in sorted(events, key=lambda event: event.time_ns)
        if (start_ns is None or event.time_ns >= start_ns) and (end_ns is None or event.time_ns <= end_ns)
    )


def csv_cell(value: EventValue) -> str | int | float | None:
    """Write `data` as JSON."""
    return dump_json(value, compact=True) if isinstance(value, dict) else value
