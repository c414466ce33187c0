"""A sheet: sections of facts, each with its value or the reason why it is missing; its lines of text, its JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct, field

from collectors.model import MISSING, Device, Table, Topology
from collectors.reports.sheets.of_host import PortPlace, no_links
from collectors.reports.sheets.path_history import NO_HISTORY, PathHistories
from engine.text import safe_text


class SheetFact(Struct, frozen=True):
    """One titled value, safe to print."""

    title: str
    value: str | None
    """None if it is not known."""
    reason: str = ""
    """Why it is not known."""


class SheetSection(Struct, frozen=True):
    """Facts of one kind."""

    title: str
    facts: tuple[SheetFact, ...] = ()
    lines: tuple[str, ...] = ()
    """Rows of a table in text, such as the paths of a LUN."""


class Sheet(Struct, frozen=True):
    """All sections of one LUN, path, HBA port or target port."""

    kind: str
    name: str
    key: str
    sections: tuple[SheetSection, ...]


class SheetData(Struct, frozen=True, eq=False):
    """What sheets are made of: one sample, and what was observed before it."""

    topology: Topology
    tables: Mapping[str, Table] = field(default_factory=dict)
    """Raw tables with error counters."""
    time_ns: int = 0
    states_age_s: float = float("nan")
    history: PathHistories = NO_HISTORY
    links: Callable[[Device], tuple[str, ...]] = no_links
    """Finds the links of udev to a disk; none unless the sheet is made on the host itself."""
    places: Mapping[str, PortPlace] = field(default_factory=dict)
    """Where ports are on the buses of the host, by key; only there as well."""


def fact(title: str, value: str | float | None, reason: str = "not reported here") -> SheetFact:
    """Make a fact of a text or number; an empty text is missing."""
    text = "" if value is None else safe_text(str(value))
    return SheetFact(title, text or None, "" if text else reason)


def common_fact(title: str, values: Iterable[tuple[str, str | None]], reason: str) -> SheetFact:
    """Make one fact of the values of several paths: the common one, or each with its paths.

    Args:
        title: of the fact.
        values: name and value of each path; None is missing.
        reason: why all are missing.
    """
    names: dict[str, list[str]] = {}
    for name, value in values:
        if value:
            names.setdefault(value, []).append(safe_text(name))
    if len(names) == 1:
        return fact(title, next(iter(names)))
    several = (f"{value} ({', '.join(of) if len(of) < 4 else f'{len(of)} paths'})" for value, of in names.items())
    return fact(title, "; ".join(several), reason)


def counter_facts(table: Table | None, keys: Iterable[str], reason: str) -> list[SheetFact]:
    """Make facts of the counters of a table, added up over the rows of some keys; missing ones are left out."""
    rows = [] if table is None else [row for key in keys if (row := table.rows.positions.get(key)) is not None]
    if table is None or not rows:
        return [fact("counters", None, reason)]
    found = []
    for position, column in enumerate(table.schema.columns):
        known = [int(value) for value in table.values[rows, position] if value != MISSING]
        if known:
            found.append(fact(column.id.replace("_", " "), f"{sum(known):,}"))
    return found


SCHEMA = "lunscope.sheet/1"
TITLE_CELLS = 18


def sheet_lines(sheet: Sheet) -> Iterator[str]:
    """Yield the lines of a sheet, sections apart."""
    yield f"{sheet.kind} {sheet.name}"
    for section in sheet.sections:
        yield ""
        yield from section_lines(section)


def section_lines(section: SheetSection) -> Iterator[str]:
    """Yield the title of a section and its facts; a missing one with its reason."""
    yield section.title
    for fact in section.facts:
        value = fact.value if fact.value is not None else f"- ({fact.reason})"
        yield f"  {fact.title:<{TITLE_CELLS}} {value}"
    for line in section.lines:
        yield f"  {line}"


def sheet_document(sheet: Sheet) -> dict[str, object]:
    """Convert a sheet; unknown values are null with a reason."""
    return {
        "schema": SCHEMA,
        "kind": sheet.kind,
        "name": sheet.name,
        "key": sheet.key,
        "sections": [
            {
                "title": section.title,
                "facts": [
                    {"title": one.title, "value": one.value, "reason": one.reason or None} for one in section.facts
                ],
                "lines": list(section.lines),
            }
            for section in sheet.sections
        ],
    }
