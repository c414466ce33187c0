"""Tunables as text within 80 columns, and as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from engine.text import safe_text
from engine.tune.planned_writes import TunePlan
from engine.tune.present_values import AlikeValues, Value
from engine.tune.record import ChangeRecord
from engine.tune.tunable import Tunable

WIDTH = 80
_NO_WRITE = "r"


def name_lines(tunables: Iterable[Tunable]) -> Iterator[str]:
    """Two lines for each tunable: id, unit and subject; help."""
    for tunable in tunables:
        unit = f", {tunable.unit}" if tunable.unit else ""
        yield f"{tunable.id} ({tunable.subject}{unit})"
        yield f"    {tunable.help}"


def list_lines(groups: Sequence[AlikeValues]) -> Iterator[str]:
    """Build a table with a line for each value and the targets that have it; `r` in front: not to be changed here."""
    rows = [
        [
            _NO_WRITE if group.first.refusal else "",
            group.first.tunable.id,
            _with_unit(group.first),
            _names(group.names),
            group.first.default,
            group.first.legal,
        ]
        for group in groups
    ]
    return _table(["", "NAME", "VALUE", "ON", "DEFAULT", "LEGAL"], rows)


def target_lines(values: Sequence[Value]) -> Iterator[str]:
    """Build a table with a line for each target of each tunable, under a line of help."""
    for tunable in dict.fromkeys(value.tunable for value in values):
        yield _cut(f"{tunable.id}: {tunable.help}", WIDTH)
        rows = [
            [_NO_WRITE if value.refusal else "", value.target.name, _with_unit(value), value.default, value.legal]
            for value in values
            if value.tunable is tunable
        ]
        yield from _table(["", "ON", "VALUE", "DEFAULT", "LEGAL"], rows)


def plan_lines(plan: TunePlan) -> Iterator[str]:
    """Build a table with a line for each value that would be written, and a line with their number."""
    rows = [[write.tunable.id, write.target.name, write.before or "-", write.after] for write in plan.writes]
    if rows:
        yield from _table(["NAME", "ON", "BEFORE", "AFTER"], rows)
    for tunable in dict.fromkeys(write.tunable for write in plan.writes if write.tunable.resets):
        yield f"{tunable.id} also sets anew: {', '.join(tunable.resets)}"
    values = "1 value" if len(rows) == 1 else f"{len(rows):,} values"
    yield f"{values} would change, {plan.unchanged:,} already as wanted"


def change_lines(record: ChangeRecord, *, held: bool) -> Iterator[str]:
    """Write lines of one change: number, state, time and user; what; what was not restored."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.time_ns / 1e9))
    in_force = {"held": "held" if held else "left by a crash", "changing": "changing" if held else "left by a crash"}
    yield f"{record.number:>4}  {when}  {in_force.get(record.state, record.state)}  by {record.who.text}"
    for line in record.summary:
        yield f"      {safe_text(line)}"
    for line in record.problems:
        yield f"      {safe_text(line)}"


def values_document(values: Iterable[Value], tunables: Iterable[Tunable]) -> dict[str, Any]:
    """Build the JSON document lunscope.tune/1."""
    return {
        "schema": "lunscope.tune/1",
        "tunables": [
            {"id": one.id, "subject": one.subject, "unit": one.unit or None, "help": one.help} for one in tunables
        ],
        "values": [
            {
                "tunable": value.tunable.id,
                "target": safe_text(value.target.name),
                "value": safe_text(value.value),
                "default": value.default or None,
                "legal": value.legal or None,
                "writable": not value.refusal,
                "refusal": value.refusal or None,
            }
            for value in values
        ],
    }


def _with_unit(value: Value) -> str:
    numeric = value.value.lstrip("-").isdigit() and value.tunable.unit
    return f"{value.value} {value.tunable.unit}" if numeric else value.value


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,}: {', '.join(names)}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align columns; long texts are cut so that a line has at most 80 columns, the last one most of all."""
    safe = [[safe_text(cell) for cell in row] for row in rows]
    limits = {"": 1, "NAME": 25, "VALUE": 16, "ON": 24, "DEFAULT": 11, "BEFORE": 16, "AFTER": 16}
    widths = [
        min(max(len(row[column]) for row in [list(header), *safe]), limits.get(title, WIDTH))
        for column, title in enumerate(header)
    ]
    for row in [list(header), *safe]:
        cells = (_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True))
        yield _cut(" ".join(cells).rstrip(), WIDTH)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 2, 0)]}.."
