"""The knobs with their values and keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.content import Content

from engine.job.knobs import Knob, Knobs, Row, StepKey, knob_rows
from tui.widgets.line import TextLine

WIDE, WIDE_TITLE = 42, 13
NARROW_TITLE, NARROW_VALUE = 7, 10
KeyText = Callable[[str], str]
"""From an action id to its displayed key."""


class KnobPanel(TextLine):
    """Title, decrease key, value and increase key of every knob: one per line where there is room, else two columns."""

    DEFAULT_CSS = """
    KnobPanel { height: 1fr; width: 42; }
    """

    def show(self, knobs: Knobs | None, targets: int, key_text: KeyText | None, *, policy: bool = False) -> None:
        """Show the values in force.

        Args:
            knobs: None if not known.
            targets: their number, the largest stripe width.
            key_text: None if the knobs cannot be turned.
            policy: whether the job has several paths or copies.
        """
        texts = [
            _Text.of(knob, row, knobs, targets, key_text) for knob, row in knob_rows() if policy or not row.of_paths
        ]
        if self.size.width >= WIDE:
            lines = [text.line(WIDE_TITLE, text.width) + text.more for text in texts]
            self.put(Content("\n").join(lines if self.size.height >= len(texts) else _two_columns(texts)))
        else:
            self.put(Content("\n").join(text.line(NARROW_TITLE, NARROW_VALUE, text.short) for text in texts))


@dataclass(frozen=True, slots=True)
class _Text:
    """The texts of one knob."""

    title: str
    short: str
    value: str
    down: str
    up: str
    width: int
    of_paths: bool
    more: Content
    """Its other keys."""

    @classmethod
    def of(cls, knob: Knob, row: Row, knobs: Knobs | None, targets: int, key_text: KeyText | None) -> _Text:
        """Take value and keys of a knob."""
        value = "?" if knobs is None else knob.shown(knobs, targets)
        down, up = ("", "") if key_text is None else (_key(row.down, key_text), _key(row.up, key_text))
        return cls(row.title, row.short, value, down, up, row.width, row.of_paths, _more(row, key_text))

    def line(self, title_width: int, value_width: int, title: str | None = None) -> Content:
        """Write title, key, value, key."""
        shown = self.value if len(self.value) <= value_width else self.value[: value_width - 1] + "…"
        return Content.assemble(
            f" {self.title if title is None else title:<{title_width}}",
            (f"{self.down:>2}", "bold $accent"),
            (f" {shown:^{value_width}} ", "bold reverse"),
            (f"{self.up:<2}", "bold $accent"),
        )


def _two_columns(texts: Sequence[_Text]) -> list[Content]:
    """Lay out knobs with short values in two columns, then other keys, and the knobs of paths."""
    narrow = [text for text in texts if not text.of_paths]
    half = (len(narrow) + 1) // 2
    pairs = itertools.zip_longest(narrow[:half], narrow[half:])
    lines = [left.line(5, 8, left.short) + (right.line(7, 8, right.short) if right else "") for left, right in pairs]
    lines += [Content(f" {text.short}") + text.more for text in narrow if text.more.plain]
    return lines + [text.line(11, text.width) for text in texts if text.of_paths]


def _more(row: Row, key_text: KeyText | None) -> Content:
    """Name the other keys of a knob."""
    if not row.more or key_text is None:
        return Content("")
    keys = " ".join(_key(key, key_text) for key in reversed(row.more))
    return Content.assemble(" ", (keys, "bold $accent"), (f" {row.hint}", "dim"))


def _key(key: StepKey, key_text: KeyText) -> str:
    return key_text(f"knob.{key.id}")
