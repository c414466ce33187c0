"""What was chosen to be compared, over a session whose parts change while it goes on."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from collectors.compare.comparison import CompareOptions
from collectors.compare.open_side import TABLES
from engine.replacing import replace
from tui.compare_asked import CompareAsked
from tui.screens.compare.comparison_rows import ORDERS
from tui.screens.compare.parts import FilePart, Part, TimePart, default_parts

DELTAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class CompareChoice(Struct):
    """Owned by the screen; without a choice the newest two epochs that last are compared, again with each turn."""

    a: Part | None = None
    b: Part | None = None
    options: CompareOptions = field(default_factory=CompareOptions)
    tables: tuple[str, ...] = TABLES
    order: str = ORDERS[0]

    @classmethod
    def of(cls, asked: CompareAsked | None) -> CompareChoice:
        """Begin with what was typed, if anything."""
        if asked is None:
            return cls()
        return cls(FilePart(asked.files[0]), FilePart(asked.files[1]), asked.options, asked.tables)

    def parts(self, offered: Sequence[TimePart], least_ns: int) -> tuple[Part, Part] | None:
        """Return A and B as they are now; None while there are no two parts.

        Args:
            offered: parts there are, the newest first.
            least_ns: how long those must last that nobody chose.
        """
        a, b = (_present(chosen, offered) for chosen in (self.a, self.b))
        if a is None and b is None:
            return default_parts(offered, least_ns)
        a = a or _other(b, offered)
        b = b or _other(a, offered)
        return None if a is None or b is None else (a, b)

    def swap(self, present: tuple[Part, Part]) -> None:
        """Make A of B and B of A."""
        self.b, self.a = present

    def next_delta(self) -> None:
        """Take the next larger delta, or the smallest."""
        larger = [delta for delta in DELTAS if delta > self.options.delta]
        self.options = replace(self.options, delta=larger[0] if larger else DELTAS[0])

    def next_order(self) -> None:
        """Take the next order of rows."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]


def _present(part: Part | None, offered: Sequence[TimePart]) -> Part | None:
    """Return a chosen part with its present end."""
    if isinstance(part, TimePart):
        return next((one for one in offered if one.key == part.key and part.kind != "typed"), part)
    return part


def _other(part: Part | None, offered: Sequence[TimePart]) -> TimePart | None:
    """Find a partner: the newest part that shares no time."""
    if not isinstance(part, TimePart):
        return None
    return next((one for one in offered if one.kind != "whole" and _apart(one, part)), None)


def _apart(one: TimePart, other: TimePart) -> bool:
    first, second = sorted((one, other), key=lambda part: part.start_ns)
    return first.start_ns < second.start_ns and first.end_ns is not None and first.end_ns <= second.start_ns
