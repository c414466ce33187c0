"""A filter as a predicate: which rows match, computed for all rows at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.filtering.quantities import Quantity

Mask = NDArray[np.bool_]


class Operator(StrEnum):
    """How a field is compared."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="
    EQUAL = "="
    UNEQUAL = "!="
    CONTAINS = "~"
    LACKS = "!~"

    @property
    def opposite(self) -> Operator:
        """What holds for a present value where this does not."""
        return _OPPOSITE[self]


_PAIRS = (
    (Operator.ABOVE, Operator.AT_MOST),
    (Operator.BELOW, Operator.AT_LEAST),
    (Operator.EQUAL, Operator.UNEQUAL),
    (Operator.CONTAINS, Operator.LACKS),
)
_OPPOSITE = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
OF_FIGURES = frozenset(Operator) - {Operator.CONTAINS, Operator.LACKS}
OF_TEXTS = frozenset({Operator.EQUAL, Operator.UNEQUAL, Operator.CONTAINS, Operator.LACKS})


class FilterRows(Protocol):
    """The rows that a filter is applied to."""

    def __len__(self) -> int:
        """Count the rows."""

    def figures(self, field_id: str) -> NDArray[np.float64] | None:
        """Figures of a field, NaN for missing; None if no row has it."""

    def texts(self, field_id: str) -> Sequence[str] | None:
        """Texts of a field in lower case (str.casefold), empty for missing; None if no row has it."""

    def containing(self, word: str) -> Mask:
        """Rows found by a word, which is in lower case (str.casefold)."""


class Term(Protocol):
    """One condition."""

    def matches(self, rows: FilterRows) -> Mask:
        """Whether each row meets it."""


class Word(Struct, frozen=True):
    """Rows found by a word, or those that are not."""

    text: str
    """Text in lower case."""
    negated: bool = False

    def matches(self, rows: FilterRows) -> Mask:
        """Whether each row is found by the word."""
        found = rows.containing(self.text)
        return ~found if self.negated else found


_COMPARE: Mapping[Operator, Callable[[NDArray[np.float64], float], Mask]] = {
    Operator.ABOVE: operator.gt,
    Operator.AT_LEAST: operator.ge,
    Operator.BELOW: operator.lt,
    Operator.AT_MOST: operator.le,
}


class FigureTerm(Struct, frozen=True):
    """Rows whose figure compares so; a missing figure matches nothing.

    Equal is what rounds to the figure as it was typed: `busy=50` finds 49.7. Only `=0` is exact.
    """

    field_id: str
    operator: Operator
    quantity: Quantity

    def matches(self, rows: FilterRows) -> Mask:
        """Whether each row's figure compares so."""
        values = rows.figures(self.field_id)
        if values is None:
            return np.zeros(len(rows), np.bool_)
        with np.errstate(invalid="ignore"):
            if self.operator in _COMPARE:
                return _COMPARE[self.operator](values, self.quantity.value)
            distance = np.abs(values - self.quantity.value)
            far = distance > self.quantity.half_digit
            return far if self.operator is Operator.UNEQUAL else distance <= self.quantity.half_digit


class TextTerm(Struct, frozen=True):
    """Rows whose text compares so, ignoring case; a missing text matches nothing."""

    field_id: str
    operator: Operator
    text: str
    """Text in lower case."""

    def matches(self, rows: FilterRows) -> Mask:
        """Whether each row's text compares so."""
        values = rows.texts(self.field_id)
        if values is None:
            return np.zeros(len(rows), np.bool_)
        # Thousands of rows have few different texts.
        verdicts = {value: bool(value) and self._holds(value) for value in set(values)}
        return np.fromiter(map(verdicts.__getitem__, values), np.bool_, len(values))

    def _holds(self, value: str) -> bool:
        negated = self.operator in {Operator.UNEQUAL, Operator.LACKS}
        contained = self.operator in {Operator.CONTAINS, Operator.LACKS}
        return (self.text in value if contained else self.text == value) != negated


class Expression(Struct, frozen=True):
    """Alternatives, each of terms that must all be met; without any, all rows match."""

    alternatives: tuple[tuple[Term, ...], ...] = ()

    def __bool__(self) -> bool:
        """Whether it leaves out rows at all."""
        return bool(self.alternatives)

    def matches(self, rows: FilterRows) -> Mask:
        """Whether each row matches, shape (len(rows),)."""
        if not self.alternatives:
            return np.ones(len(rows), np.bool_)
        found = np.zeros(len(rows), np.bool_)
        for terms in self.alternatives:
            met = np.ones(len(rows), np.bool_)
            for term in terms:
                met &= term.matches(rows)
            found |= met
        return found


EVERY_ROW = Expression()
