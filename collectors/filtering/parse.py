"""The parser of the filter language.

A filter is terms between blanks, all of which must be met; `|` stands between alternatives:

    word            in the name, alias or id, ignoring case; "two words" in quotes
    field>5ms       > >= < <= = != for figures, with their unit; = != ~ !~ for texts (~: contains)
    -term, !term    not
"""

from __future__ import annotations

import re

from msgspec import Struct

from collectors.filtering.expression import (
    EVERY_ROW,
    OF_FIGURES,
    OF_TEXTS,
    Expression,
    FigureTerm,
    Operator,
    Term,
    TextTerm,
    Word,
)
from collectors.filtering.fields import FilterField, FilterFields
from collectors.filtering.quantities import example_of, read_quantity
from engine.text import short_text

_BLANKS = re.compile(r"\s*")
_WORD = re.compile(r'(?:[^\s"|<>=~!]|!(?![=~]))+')
_OPERATOR = re.compile(r"\s*(>=|<=|!=|!~|==|>|<|=|~)\s*")
_VALUE = re.compile(r'[^\s"|]+')
_LONGEST = 32


class FilterMistake(Struct, frozen=True):
    """What is wrong with a filter, and where."""

    position: int
    """Characters before it."""
    text: str
    """One line."""


class ReadFilter(Struct, frozen=True):
    """A filter as far as it can be read."""

    expression: Expression
    """The terms before the problem."""
    problem: FilterMistake | None = None
    last_word: str = ""
    """The last term as typed if it is a word that the text ends with, which may yet become a field."""
    before_last: Expression = EVERY_ROW
    """The terms before that word."""


class _FilterError(Exception):
    """Ends the reading of a term."""

    def __init__(self, position: int, text: str) -> None:
        super().__init__(text)
        self.problem = FilterMistake(position, text)


def read_filter(text: str, fields: FilterFields) -> ReadFilter:
    """Read a filter; never raises, whatever the text is."""
    reader = _FilterReader(text, fields)
    try:
        reader.read()
    except _FilterError as wrong:
        return ReadFilter(reader.expression(), wrong.problem)
    if not reader.ends_with_word:
        return ReadFilter(reader.expression())
    whole, word = reader.expression(), reader.alternatives[-1].pop()
    assert isinstance(word, Word), "the reader said so"
    return ReadFilter(whole, None, word.text, reader.expression())


class _FilterReader:
    """Reads one text from the left; `alternatives` holds the terms that are complete."""

    def __init__(self, text: str, fields: FilterFields) -> None:
        self._text = text
        self._fields = fields
        self._at = 0
        self.alternatives: list[list[Term]] = [[]]
        self.ends_with_word = False

    def expression(self) -> Expression:
        return Expression(tuple(tuple(terms) for terms in self.alternatives if terms))

    def read(self) -> None:
        self._skip(_BLANKS)
        while self._at < len(self._text):
            if self._text[self._at] == "|":
                self._next_alternative()
            else:
                self.alternatives[-1].append(self._term())
            self._skip(_BLANKS)
        if len(self.alternatives) > 1 and not self.alternatives[-1]:
            raise _FilterError(len(self._text), "a term is missing after '|'")

    def _next_alternative(self) -> None:
        if not self.alternatives[-1]:
            raise _FilterError(self._at, "a term is missing before '|'")
        self.alternatives.append([])
        self._at += 1

    def _term(self) -> Term:
        start = self._at
        negated = self._text[start] == "-" or (self._text[start] == "!" and not _OPERATOR.match(self._text, start))
        self._at += negated
        quoted = self._text[self._at : self._at + 1] == '"'
        name_at = self._at
        name = self._quoted() if quoted else self._skip(_WORD)
        ends = self._at == len(self._text)
        sign = self._skip(_OPERATOR).strip()
        if not name:
            raise _FilterError(name_at, f"a field is missing before {sign!r}" if sign else "a word is missing")
        if not sign:
            self.ends_with_word = ends and not quoted and not negated
            return Word(name.casefold(), negated)
        wanted = Operator("=" if sign == "==" else sign)
        return self._comparison(name, name_at, wanted.opposite if negated else wanted, sign)

    def _comparison(self, name: str, name_at: int, wanted: Operator, sign: str) -> Term:
        field = self._fields.find(name)
        if isinstance(field, str):
            raise _FilterError(name_at, field)
        value_at = self._at
        quoted = self._text[value_at : value_at + 1] == '"'
        value = self._quoted() if quoted else self._skip(_VALUE)
        if not value:
            raise _FilterError(value_at, f"a value is missing after {field.short}{sign}: {_wanted(field)}")
        if field.unit is None:
            return self._text_term(field, name_at, wanted, value)
        quantity = read_quantity(value, field.unit)
        if wanted not in OF_FIGURES:
            raise _FilterError(name_at, f"{field.short} is a figure: compare with > >= < <= = or !=")
        if quantity is None:
            raise _FilterError(
                value_at, f"{short_text(value, _LONGEST)!r} is no value of {field.short}: {_wanted(field)}"
            )
        return FigureTerm(field.id, wanted, quantity)

    @staticmethod
    def _text_term(field: FilterField, name_at: int, wanted: Operator, value: str) -> Term:
        if wanted not in OF_TEXTS:
            raise _FilterError(name_at, f"{field.id} is a text: compare with = != ~ or !~")
        return TextTerm(field.id, wanted, value.casefold())

    def _quoted(self) -> str:
        end = self._text.find('"', self._at + 1)
        if end < 0:
            raise _FilterError(self._at, 'the closing " is missing')
        text, self._at = self._text[self._at + 1 : end], end + 1
        return text

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found.group()


def _wanted(field: FilterField) -> str:
    return "a text" if field.unit is None else f"such as {example_of(field.unit)}"
