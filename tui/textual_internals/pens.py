"""Text attributes and colours of cells, and the shortest change from one to another (ECMA-48, 8.3.117 SGR)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from rich.cells import get_character_cell_size
from rich.color import Color, ColorSystem
from rich.style import Style
from textual.strip import Strip

from tui.terminal.abilities import FULL, Abilities

_OFF = {
    "1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29",
    "21": "24", "51": "54", "52": "54", "53": "55",
}  # fmt: skip
"""What ends each attribute; some codes end two."""
_INK_ONLY = {"1", "2", "3"}
"""Attributes that do not show on a space: bold, faint, italic."""
_FIRST_EMOJI = "\U0001f000"
"""Character from which terminals differ in widths."""
_MOST_PENS = 1024
"""All screens in one theme use some 150, with 700 changes from one to another."""
_rendered = Strip.render_ansi.__wrapped__
"""The function without its cache."""


class NotOneColumn(Exception):  # noqa: N818 - control flow between two functions, not a fault
    """A character that does not take exactly one column in every terminal: wide, combining, or an emoji."""


class Pen:
    """Attributes and colours, made by `Pens` only: equal ones are the same object."""

    __slots__ = ("attributes", "background", "blank", "cells", "foreground")

    def __init__(self, attributes: tuple[str, ...], foreground: str, background: str) -> None:
        self.attributes = attributes
        self.foreground = foreground
        self.background = background
        self.blank = self
        """The pen of spaces: without what does not show on them."""
        self.cells = PenCells(self)

    @property
    def codes(self) -> tuple[str, ...]:
        """SGR parameters that set this pen after a reset."""
        return tuple(filter(None, (*self.attributes, self.foreground, self.background)))


Cell = tuple[str, Pen]
"""A character and its pen."""


class PenCells(dict[str, Cell]):
    """The cell of each character drawn with a pen; equal cells of one set of pens are the same object."""

    def __init__(self, pen: Pen) -> None:
        super().__init__()
        self._pen = pen

    def __missing__(self, char: str) -> Cell:
        if get_character_cell_size(char) != 1 or char >= _FIRST_EMOJI:
            raise NotOneColumn
        blank = self._pen.blank
        if char == " " and blank is not self._pen:
            cell = self[char] = blank.cells[char]
        else:
            cell = self[char] = char, self._pen
        return cell


class Pens:
    """All pens in use."""

    def __init__(self, abilities: Abilities = FULL) -> None:
        self._abilities = abilities
        self._by_value: dict[tuple[tuple[str, ...], str, str], Pen] = {}
        self.by_ansi: dict[str, Pen] = {}
        """Pens by the SGR parameters that were asked for."""
        self._ansi: dict[tuple[int, Color | None, Color | None, ColorSystem], str] = {}
        self._changes: dict[tuple[Pen, Pen, bool], tuple[str, Pen]] = {}
        self.plain = self._pen((), "", "")

    @property
    def are_too_many(self) -> bool:
        """Whether a new set should replace this one, to bound the memory."""
        most = max(len(self._by_value), len(self._ansi), len(self._changes) // 4)
        return most > _MOST_PENS

    def ansi_of(self, style: Style, colours: ColorSystem) -> str:
        """Return the SGR parameters of a style, kept by what it shows: styles differ in what they carry for clicks too.

        Textual's cache (Strip.render_ansi) keeps up to 16,384 whole styles.
        """
        key = style._attributes & style._set_attributes, style._color, style._bgcolor, colours
        ansi = self._ansi.get(key)
        if ansi is None:
            ansi = self._ansi[key] = _rendered(Strip, style, colours)
        return ansi

    def of(self, ansi: str) -> Pen:
        """Return the pen that SGR parameters set after a reset, as `1;38;5;12`."""
        pen = self.by_ansi.get(ansi)
        if pen is None:
            attributes, foreground, background = _parsed(ansi)
            drawn = tuple(code for code in attributes if code in self._abilities.attributes)
            pen = self.by_ansi[ansi] = self._pen(drawn, foreground, background)
        return pen

    def change(self, before: Pen, cell: Cell) -> tuple[str, Pen]:
        """Find the shortest sequence after which the cell is drawn right, and the pen in force after it."""
        char, pen = cell
        key = before, pen, char == " "
        found = self._changes.get(key)
        if found is None:
            target = self._enough_for_blank(before, pen) if char == " " else pen
            found = self._changes[key] = f"\x1b[{self._shortest(before, target)}m", target
        return found

    def _shortest(self, before: Pen, after: Pen) -> str:
        return _shortest(before, after) if self._abilities.partial_resets else _anew(after)

    def _enough_for_blank(self, before: Pen, blank: Pen) -> Pen:
        """Keep a foreground that the next character may need, where it does not show on a space."""
        if blank.blank is not blank or blank.attributes or blank.foreground or before.blank is before:
            return blank
        return self._pen(before.attributes, before.foreground, blank.background)

    def _pen(self, attributes: tuple[str, ...], foreground: str, background: str) -> Pen:
        key = attributes, foreground, background
        pen = self._by_value.get(key)
        if pen is None:
            pen = self._by_value[key] = Pen(*key)
            if _INK_ONLY.issuperset(attributes) and (attributes or foreground):
                pen.blank = self._pen((), "", background)
        return pen


def _parsed(ansi: str) -> tuple[tuple[str, ...], str, str]:
    attributes, foreground, background = [], "", ""
    for code in _codes(ansi):
        kind = code.partition(";")[0]
        if kind in _OFF:
            attributes.append(kind)
        elif kind.startswith(("4", "10")):
            background = "" if kind == "49" else code
        else:
            foreground = "" if kind == "39" else code
    return tuple(attributes), foreground, background


def _codes(ansi: str) -> Iterator[str]:
    """Split SGR parameters, colours of several numbers in one piece."""
    numbers = iter(ansi.split(";") if ansi else ())
    for number in numbers:
        if number in ("38", "48"):
            form = next(numbers)
            yield ";".join((number, form, *(next(numbers) for _ in range(1 if form == "5" else 3))))
        else:
            yield number


@lru_cache(maxsize=4096)
def _shortest(before: Pen, after: Pen) -> str:
    anew = _anew(after)
    return min(";".join(_differences(before, after)), anew, key=len) if before is not after else anew


def _anew(pen: Pen) -> str:
    return ";".join(("0", *pen.codes)) if pen.codes else ""


def _differences(before: Pen, after: Pen) -> Iterator[str]:
    ended = {_OFF[code] for code in before.attributes if code not in after.attributes}
    yield from sorted(ended)
    yield from (code for code in after.attributes if code not in before.attributes or _OFF[code] in ended)
    if before.foreground != after.foreground:
        yield after.foreground or "39"
    if before.background != after.background:
        yield after.background or "49"
