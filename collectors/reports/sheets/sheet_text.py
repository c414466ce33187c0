"""A sheet as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.reports.sheets.sheet import Sheet, SheetSection

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
