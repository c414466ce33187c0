"""A document as plain text for a terminal or a mail: aligned tables, wrapped sentences, no charts.

A figure is never cut. A table that is too wide breaks its titles, then gets narrower gaps, then wraps its texts, and at
last goes on below with its first columns repeated.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct

from collectors.reports.documents.content import (
    NONE,
    Block,
    Bullets,
    Charts,
    Document,
    DocumentTable,
    Facts,
    Paragraph,
    Section,
)
from collectors.reports.formats.registry import Format
from engine.text import safe_text

WIDTH = 80
"""Columns of the narrowest terminal."""
_MARK = "lunscope report"
_LEAST_ROOM = 12
_FIGURE = re.compile(r"[-+]?[0-9][0-9,.]*|-")
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[mu]?s\b))")
"""The space between a figure and its unit, at which no line is broken."""
_BOUND = "\N{NO-BREAK SPACE}"
_MOST_WORD = 24
"""Length from which a word in a table is broken if there is no room."""


def text_lines(document: Document) -> Iterator[str]:
    """Yield the lines of the file, without line ends."""
    yield _MARK
    yield ""
    yield from _wrapped(document.title)
    yield from _wrapped(document.lead)
    yield ""
    yield from section_lines(document.sections)


def section_lines(sections: Iterable[Section], width: int = WIDTH) -> Iterator[str]:
    """Yield sections in at most `width` columns, with an empty line between what belongs apart."""
    is_first = True
    for section in sections:
        lines = list(_contents((*section.details, *section.blocks), width))
        if not lines or section.whole == (NONE,):
            continue
        if not is_first:
            yield ""
        is_first = False
        if section.title:
            yield from _wrapped(f"[{section.title}]", width)
        yield from lines


def _contents(blocks: Iterable[Block], width: int) -> Iterator[str]:
    """Yield blocks with an empty line between them; a list belongs to the words above it."""
    before: Block | None = None
    for block in blocks:
        lines = list(block_lines(block, width))
        if lines:
            if before is not None and not (isinstance(before, Paragraph) and isinstance(block, Bullets)):
                yield ""
            yield from lines
            before = block


def block_lines(block: Block, width: int = WIDTH) -> Iterator[str]:
    """Yield one block; nothing of charts, whose figures stand in the tables."""
    match block:
        case Facts():
            names = max((len(safe_text(name)) for name, _ in block.rows), default=0)
            for name, value in block.rows:
                yield from _wrapped(value, width, f"{safe_text(name):<{names}}  ", " " * (names + 2))
        case Bullets():
            for at, line in enumerate(block.lines):
                yield from _wrapped(line, width, "- ", "  ")
                for below in block.below[at] if block.below else ():
                    yield from _wrapped(below, width, "  ", "    ")
        case Paragraph():
            yield from _wrapped(block.text, width)
        case DocumentTable():
            yield from _table(block, width)
        case Charts():
            return
        case _:
            assert_never(block)


def _wrapped(text: str, width: int = WIDTH, first: str = "", later: str = "") -> Iterator[str]:
    room = max(width - len(first), _LEAST_ROOM)
    lines = textwrap.wrap(_UNIT.sub(_BOUND, safe_text(text)), room, break_on_hyphens=False) or [""]
    yield from (f"{later if at else first}{line}".replace(_BOUND, " ").rstrip() for at, line in enumerate(lines))


def _table(table: DocumentTable, width: int) -> Iterator[str]:
    if table.title:
        yield from _wrapped(f"{table.title}:", width)
    every = [_Column.of(table, at) for at in range(len(table.head))]
    columns, kept = ([column for column in some if column.width] for some in (every, every[: _keys(table)]))
    if _least(kept) > width // 2:
        kept = kept[: table.texts]
    while kept and any(_least((*kept, column)) > width for column in columns[len(kept) :]):
        kept.pop()
    for at, part in enumerate(_parts(columns, kept, width)):
        if at:
            yield ""
        yield from _aligned(part, width)
    if table.note:
        yield from _wrapped(f"({table.note})", width)


def _keys(table: DocumentTable) -> int:
    """Count the first columns that tell the rows apart, which are repeated where a table goes on below."""
    counts = range(1, len(table.head))
    return next((count for count in counts if len({row[:count] for row in table.rows}) == len(table.rows)), 1)


class _Column(Struct, frozen=True):
    """Cells below a title and a unit; texts are aligned to the left and wrapped where there is no room."""

    title: str
    unit: str
    cells: tuple[str, ...]
    is_text: bool

    @classmethod
    def of(cls, table: DocumentTable, at: int) -> _Column:
        """Take a column of a table."""
        title, unit = map(safe_text, table.head[at])
        cells = tuple(safe_text(row[at]) for row in table.rows)
        may_be_text = at < table.texts or not title or any(len(cell) > _MOST_WORD for cell in cells)
        is_text = may_be_text and any(cell and not _FIGURE.fullmatch(cell) for cell in cells)
        return cls(title, unit, cells, is_text)

    @property
    def width(self) -> int:
        """Cells that it takes without any line break."""
        return max(map(len, (self.title, self.unit, *self.cells)))

    @property
    def least(self) -> int:
        """Cells that it cannot do without: figures are never broken, words as seldom as can be."""
        texts = (self.title, self.unit, *(self.cells if self.is_text else ()))
        words = min(max(map(len, " ".join(texts).split()), default=1), _MOST_WORD)
        return words if self.is_text else max((words, *map(len, self.cells)))

    def lines(self, text: str, width: int) -> list[str]:
        """Write one cell, or the title."""
        pad = str.ljust if self.is_text else str.rjust
        return [pad(line, width) for line in textwrap.wrap(text, width, break_on_hyphens=False) or [""]]


def _least(columns: Sequence[_Column]) -> int:
    """Columns of the terminal that these cannot do without."""
    return sum(column.least + 1 for column in columns) - 1


def _parts(columns: Sequence[_Column], kept: Sequence[_Column], width: int) -> Iterator[Sequence[_Column]]:
    """Yield columns that fit beside each other, the kept ones each time."""
    part = list[_Column]()
    for column in columns:
        if len(part) > len(kept) and _least((*part, column)) > width:
            yield part
            part = list(kept)
        part.append(column)
    if part:
        yield part


def _aligned(columns: Sequence[_Column], width: int) -> Iterator[str]:
    widths, gap = _widths(columns, width)
    has_units = any(column.unit for column in columns)
    heads = [
        [*column.lines(column.title, size), *(column.lines(column.unit, size) if has_units else [])]
        for column, size in zip(columns, widths, strict=True)
    ]
    most = max(map(len, heads))
    heads = [[*[""] * (most - len(head)), *head] for head in heads]
    rows = [
        [column.lines(column.cells[row], size) for column, size in zip(columns, widths, strict=True)]
        for row in range(len(columns[0].cells))
    ]
    for cells in (heads, *rows):
        for line in itertools.zip_longest(*cells, fillvalue=""):
            padded = (f"{text:{size}}" for text, size in zip(line, widths, strict=True))
            if text := (" " * gap).join(padded).rstrip():
                yield text


def _widths(columns: Sequence[_Column], width: int) -> tuple[list[int], int]:
    """Choose the width of each column and the gap: titles break first, then gaps get narrow, then texts are wrapped."""
    widths = [column.width for column in columns]
    for gap, shrinks_texts in ((2, False), (1, False), (1, True)):
        room = width - gap * (len(columns) - 1)
        loose = [at for at, column in enumerate(columns) if column.is_text == shrinks_texts]
        while sum(widths) > room and (can := [at for at in loose if widths[at] > columns[at].least]):
            # Of the texts the last is wrapped first: those before it are names.
            widths[can[-1] if shrinks_texts else max(can, key=widths.__getitem__)] -= 1
        if sum(widths) <= room:
            return widths, gap
    return widths, 1


FORMAT = Format("text", "The same as plain text in 80 columns, without charts.", _MARK, text_lines)
