"""Actions of the Compare screen, and what was chosen to be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct, field

from collectors.all_subjects import SUBJECTS
from collectors.compare.comparison import CompareOptions
from collectors.compare.open_side import TABLES
from collectors.compare.part import WholeTime
from collectors.subject import Subject
from engine.errors import UsageError
from engine.replacing import replace
from tui.compare_asked import CompareAsked
from tui.screens.compare.comparison_rows import ORDERS
from tui.screens.compare.parts import FilePart, Part, TimePart, default_parts, offered_parts, typed_part
from tui.screens.shared.base import View
from tui.screens.shared.chooser import Chooser, ChooserLine
from tui.screens.shared.dialogs import Dialog
from tui.text.format import SECOND_NS
from tui.transport import ReplayTransport

_Pick = Part | Literal["newest", "type"]
_VIEWS = ("both", "table", "curves")
_LEAST_INTERVALS = 5
"""How long a part lasts that nobody chose: what lies between turns in quick succession is over sooner."""


class PartKeys:
    """Selection of what is compared; `redraw` shows the result."""

    def __init__(self, screen: View, redraw: Callable[[], None]) -> None:
        self._screen, self._state, self._redraw = screen, screen.app_state, redraw
        self.choice = CompareChoice.of(screen.app_state.compared)
        self.view = _VIEWS[0]

    @property
    def is_live(self) -> bool:
        """Whether the session goes on."""
        return not self._state.transport.seekable

    def whole(self) -> WholeTime:
        """Time that is known, with its events."""
        events, transport = self._state.events.all(), self._state.transport
        if isinstance(transport, ReplayTransport):
            return WholeTime("the recording", transport.start_ns, transport.end_ns, events)
        return WholeTime("this session", self._state.history.intervals.start_ns, self._state.latest_ns, events)

    def offered(self) -> list[TimePart]:
        """Parts to choose from."""
        return offered_parts(self.whole(), live=self.is_live)

    def present_parts(self) -> tuple[Part, Part] | None:
        """Give A and B as they are now; None while there are no two parts."""
        return self.choice.parts(self.offered(), round(_LEAST_INTERVALS * self._state.interval_s * SECOND_NS))

    def action_compare_a(self) -> None:
        """Choose A."""
        self._choose("A")

    def action_compare_b(self) -> None:
        """Choose B."""
        self._choose("B")

    def _choose(self, name: Literal["A", "B"]) -> None:
        parts = self.offered()
        lines: list[ChooserLine[_Pick]] = [
            ChooserLine("the newest two epochs, of every turn anew", "newest", "A and B")
        ]
        lines += [_part_line(part) for part in parts]
        lines.append(ChooserLine("a range of time that you type", "type", "14:30..14:35"))
        present = self.choice.a if name == "A" else self.choice.b
        self._screen.app.push_screen(
            Chooser(f"{name}: which part", lines, present=present, verb="take"), self._taken(name)
        )

    def _taken(self, name: Literal["A", "B"]) -> Callable[[_Pick | None], None]:
        def taken(pick: _Pick | None) -> None:
            if pick == "newest":
                self.choice.a = self.choice.b = None
            elif pick == "type":
                self._screen.app.call_later(self._ask_for_range, name)
            elif pick is not None and not isinstance(pick, str):
                self._set(name, pick)
            self._redraw()

        return taken

    def _set(self, name: Literal["A", "B"], part: Part) -> None:
        """Take one side; the other stays what it was, also if it was the newest."""
        present = self.present_parts()
        if present is not None and self.choice.a is None and self.choice.b is None:
            self.choice.a, self.choice.b = present
        if name == "A":
            self.choice.a = part
        else:
            self.choice.b = part

    def _ask_for_range(self, name: Literal["A", "B"]) -> None:
        text = "FROM..TO with times (14:30:05), seconds after the start (90), epoch2, or words of a note or turn:"

        def typed(answer: str | None) -> None:
            if not answer:
                return
            try:
                self._set(name, typed_part(answer, self.whole()))
            except UsageError as error:
                self._screen.notify(str(error), severity="error", timeout=10, markup=False)
            self._redraw()

        self._screen.app.push_screen(Dialog(f"{name}: a range of time", text), typed)

    def action_compare_mark(self) -> None:
        """Mark the moment that is shown."""
        self._screen.app.call_later(self._screen.app.run_action, "session_mark")

    def action_compare_swap(self) -> None:
        """Make A of B and B of A."""
        present = self.present_parts()
        if present is not None:
            self.choice.swap(present)
            self._redraw()

    def action_compare_table(self) -> None:
        """Choose the tables to compare."""
        lines: list[ChooserLine[tuple[str, ...]]] = [ChooserLine("load, disks, paths, HBA ports, tapes", TABLES)]
        lines += [_table_line(subject) for subject in SUBJECTS]
        self._screen.app.push_screen(
            Chooser("Compare which tables", lines, present=self.choice.tables), self._take_tables
        )

    def _take_tables(self, tables: tuple[str, ...] | None) -> None:
        if tables is not None:
            self.choice.tables = tables
            self._redraw()

    def action_compare_every(self) -> None:
        """All figures, and rows without I/O, or the main ones."""
        options = self.choice.options
        self.choice.options = replace(options, every=not options.every)
        self._redraw()

    def action_compare_delta(self) -> None:
        """Take the next delta."""
        self.choice.next_delta()
        self._redraw()

    def action_compare_order(self) -> None:
        """Take the next order."""
        self.choice.next_order()
        self._redraw()

    def action_compare_view(self) -> None:
        """Show table and curves, or one of them."""
        self.view = _VIEWS[(_VIEWS.index(self.view) + 1) % len(_VIEWS)]
        self._redraw()


def _part_line(part: TimePart) -> ChooserLine[_Pick]:
    return ChooserLine(part.title, part, part.times)


def _table_line(subject: Subject) -> ChooserLine[tuple[str, ...]]:
    return ChooserLine(subject.title, (subject.table,), subject.table)


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
