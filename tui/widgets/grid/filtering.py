"""The filter of one grid: its text and editing, what it finds, and what is wrong with it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from textual import events

from collectors.filtering.expression import Expression, Mask
from collectors.filtering.fields import FilterField, FilterFields
from collectors.filtering.parse import read_filter
from collectors.model import FrameTable
from tui.widgets.grid.rows import NAME, RowNames

_LONGEST = 200
_MOST_WORDS = 64
"""Words whose rows are kept."""
SEARCHED = ("alias", "id")
"""Texts in which words are found, besides the name."""


class RowTexts(Protocol):
    """Texts of the rows of a table; the same object while they are unchanged."""

    @property
    def fields(self) -> tuple[FilterField, ...]:
        """The text fields."""

    def texts(self, field_id: str) -> Sequence[str] | None:
        """Texts of a field by row, in lower case (str.casefold), empty for missing; None for an unknown field."""


class NoTexts:
    """Rows with nothing but a name."""

    fields: tuple[FilterField, ...] = ()

    def texts(self, field_id: str) -> Sequence[str] | None:  # noqa: ARG002 - of the protocol
        """None."""
        return None


NO_TEXTS = NoTexts()


class WordSearch:
    """Finds rows by words; keeps what it found while names and texts are the same objects."""

    def __init__(self) -> None:
        self._of: tuple[Sequence[str], ...] = ()
        self._searched: list[str] = []
        self._found: dict[str, Mask] = {}

    def containing(self, word: str, columns: Sequence[Sequence[str]]) -> Mask:
        """Rows with the word in one of these texts."""
        if len(columns) != len(self._of) or any(map(operator.is_not, columns, self._of)):
            self._of, self._found = tuple(columns), {}
            self._searched = list(map("\n".join, zip(*columns, strict=True)))
        if word not in self._found:
            if len(self._found) >= _MOST_WORDS:
                self._found.clear()
            self._found[word] = np.array([word in text for text in self._searched], np.bool_)
        return self._found[word]


class GridRows:
    """The rows of a grid for a filter; a row below one that a word finds is found by it too."""

    def __init__(
        self,
        table: FrameTable,
        names: RowNames,
        texts: RowTexts,
        inherited: Callable[[Mask], Mask],
        search: WordSearch | None = None,
    ) -> None:
        """Take the rows; `inherited` adds those below found ones, `search` is kept from frame to frame."""
        self._search = search or WordSearch()
        self._table = table
        self._names = names
        self._texts = texts
        self._inherited = inherited

    def __len__(self) -> int:
        return len(self._table.rows)

    def figures(self, field_id: str) -> NDArray[np.float64] | None:
        """Figures of a column."""
        return self._table.columns.get(field_id)

    def texts(self, field_id: str) -> Sequence[str] | None:
        """Texts of a field; the name is as shown."""
        if field_id == NAME:
            return self._names.folded
        texts = self._texts.texts(field_id)
        return texts if texts is not None and len(texts) == len(self) else None

    def containing(self, word: str) -> Mask:
        """Rows with the word in their name, alias or id, and the rows below them."""
        others = [texts for texts in map(self.texts, SEARCHED) if texts is not None]
        return self._inherited(self._search.containing(word, [self._names.folded, *others]))


class GridFilter:
    """Owns the filter of one grid and whether it is being edited.

    The complete terms are in force. While it is typed, the beginning of a field's name that finds no row does not hide
    all of them.
    """

    def __init__(self, fields: Sequence[FilterField]) -> None:
        self._figures = tuple(fields)
        self._text_fields: tuple[FilterField, ...] = ()
        self._fields = FilterFields((FilterField(NAME), *fields))
        self.editing = False
        self.search = WordSearch()
        self._set("")

    @property
    def text(self) -> str:
        """What was typed."""
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._set(text)

    def _set(self, text: str) -> None:
        self._text = text
        self._read = read_filter(text, self._fields)

    @property
    def problem_at(self) -> int | None:
        """Position of what is wrong in the text; None if nothing is."""
        return None if self._read.problem is None else self._read.problem.position

    @property
    def problem(self) -> str:
        """What is wrong, and where, in one line; empty if nothing is."""
        problem = self._read.problem
        return "" if problem is None else f"character {problem.position + 1}: {problem.text}"

    def know(self, texts: RowTexts) -> None:
        """Take the text fields of the rows."""
        if texts.fields != self._text_fields:
            self._text_fields = texts.fields
            self._fields = FilterFields((FilterField(NAME), *texts.fields, *self._figures))
            self._set(self._text)

    def found(self, rows: GridRows) -> Mask | None:
        """Rows that match; None without a filter."""
        expression = self._read.expression
        if not expression:
            return None
        found = expression.matches(rows)
        if self.editing and not found.any() and self._fields.begun_by(self._read.last_word or " "):
            return self._matching(self._read.before_last, rows)
        return found

    @staticmethod
    def _matching(expression: Expression, rows: GridRows) -> Mask | None:
        return expression.matches(rows) if expression else None

    def handle(self, event: events.Key) -> bool:
        """Take a key while editing; false for keys that are not the filter's. Enter keeps a filter without mistakes."""
        if event.key == "escape":
            self.editing, self.text = False, ""
        elif event.key == "enter":
            self.editing = self._read.problem is not None
        elif event.key in ("backspace", "ctrl+h"):
            self.text = self.text[:-1]
        elif event.key == "ctrl+u":
            self.text = ""
        elif event.is_printable and event.character is not None:
            self.add(event.character)
        else:
            return False
        return True

    def add(self, text: str) -> None:
        """Append typed or pasted text: its first line, limited in length."""
        self.text = (self.text + "".join(text.splitlines()[:1]))[:_LONGEST]
