"""Tunables as text, and as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from collectors.reports.documents.content import DocumentTable, Paragraph, Section
from engine.text import safe_text
from engine.tune.planned_writes import TunePlan
from engine.tune.present_values import AlikeValues, Value
from engine.tune.record import ChangeRecord
from engine.tune.tunable import Tunable

_MOST_NAMES = 24
"""Cells in which the targets of a value are named."""
_NO_WRITE = "r"


def name_lines(tunables: Iterable[Tunable]) -> Iterator[str]:
    """Two lines for each tunable: id, unit and subject; help."""
    for tunable in tunables:
        unit = f", {tunable.unit}" if tunable.unit else ""
        yield f"{tunable.id} ({tunable.subject}{unit})"
        yield f"    {tunable.help}"


def list_section(groups: Sequence[AlikeValues]) -> Section:
    """Make a table with a row for each value and the targets that have it; `r` in front: not to be changed here."""
    rows = [
        (
            _NO_WRITE if group.first.refusal else "",
            group.first.tunable.id,
            _with_unit(group.first),
            _names(group.names),
            group.first.default,
            _legal(group.first),
        )
        for group in groups
    ]
    return Section("", (_table(("", "NAME", "VALUE", "ON", "DEFAULT", "LEGAL"), rows),))


def target_sections(values: Sequence[Value]) -> Iterator[Section]:
    """Make a table with a row for each target of each tunable, under its help."""
    for tunable in dict.fromkeys(value.tunable for value in values):
        rows = [
            (_NO_WRITE if value.refusal else "", value.target.name, _with_unit(value), value.default, _legal(value))
            for value in values
            if value.tunable is tunable
        ]
        table = _table(("", "ON", "VALUE", "DEFAULT", "LEGAL"), rows)
        yield Section("", (Paragraph(f"{tunable.id}: {tunable.help}"), table))


def plan_section(plan: TunePlan) -> Section:
    """Make a table with a row for each value that would be written, and say how many there are."""
    rows = [(write.tunable.id, write.target.name, write.before or "-", write.after) for write in plan.writes]
    resets = (write.tunable for write in plan.writes if write.tunable.resets)
    said = [f"{tunable.id} also sets anew: {', '.join(tunable.resets)}" for tunable in dict.fromkeys(resets)]
    values = "1 value" if len(rows) == 1 else f"{len(rows):,} values"
    said.append(f"{values} would change, {plan.unchanged:,} already as wanted")
    table = (_table(("NAME", "ON", "BEFORE", "AFTER"), rows),) if rows else ()
    return Section("", (*table, *map(Paragraph, said)))


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


def _legal(value: Value) -> str:
    """Write legal values so that a line may end between them."""
    return value.legal.replace("|", " | ")


def _names(names: Sequence[str]) -> str:
    text = names[0] if len(names) == 1 else f"{len(names):,}: {', '.join(names)}"
    return text if len(text) <= _MOST_NAMES else f"{text[: _MOST_NAMES - 2]}.."


def _table(titles: Sequence[str], rows: Sequence[tuple[str, ...]]) -> DocumentTable:
    return DocumentTable("", tuple((title, "") for title in titles), tuple(rows), texts=len(titles))
