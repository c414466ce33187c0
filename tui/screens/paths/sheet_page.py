"""A sheet laid out for the width of a screen: sections in one column, or in two."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from textual.content import Content

from collectors.reports.sheets.sheet import Sheet, SheetFact, SheetSection

TWO_COLUMNS_FROM = 140
_TITLE = 18
_LEAST_TEXT = 12


def sheet_page(sheet: Sheet, width: int) -> Content:
    """Lay out all sections."""
    if width < TWO_COLUMNS_FROM:
        return Content("\n").join(_column(sheet.sections, width))
    half = width // 2 - 1
    columns = [list(_column(part, half)) for part in _halves(sheet.sections)]
    height = max(map(len, columns))
    left, right = (column + [Content("")] * (height - len(column)) for column in columns)
    return Content("\n").join(
        Content.assemble(one, " " * (width // 2 - one.cell_length), other)
        for one, other in zip(left, right, strict=True)
    )


def _halves(sections: tuple[SheetSection, ...]) -> tuple[tuple[SheetSection, ...], tuple[SheetSection, ...]]:
    """Split sections so that both columns have about the same height."""
    heights = [2 + len(section.facts) + len(section.lines) for section in sections]
    cut = min(range(1, len(sections) + 1), key=lambda at: max(sum(heights[:at]), sum(heights[at:])))
    return sections[:cut], sections[cut:]


def _column(sections: tuple[SheetSection, ...], width: int) -> Iterator[Content]:
    for number, section in enumerate(sections):
        if number:
            yield Content("")
        yield Content.assemble((f" {section.title}", "bold $accent"))
        for fact in section.facts:
            yield from _fact(fact, width)
        for line in section.lines:
            yield from (Content(f"   {piece}") for piece in _wrapped(line, width - 4))


def _fact(fact: SheetFact, width: int) -> Iterator[Content]:
    known = fact.value is not None
    text = fact.value if fact.value is not None else f"- ({fact.reason})"
    title = f"  {fact.title:<{_TITLE}} "
    for piece in _wrapped(text, width - len(title) - 1):
        yield Content.assemble((title, "bold"), (piece, "" if known else "dim"))
        title = " " * len(title)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, _LEAST_TEXT), drop_whitespace=True) or [""]
