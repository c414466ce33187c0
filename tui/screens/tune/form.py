"""What the tuning drawer shows: its lines for each step, and the tunables of the scope."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.markup import escape
from textual.widgets import Input, OptionList, Static

from engine.text import safe_text
from tui.app_state import AppState
from tui.screens.tune.changes_in_force import ChangesInForce
from tui.screens.tune.scopes import TuneScope
from tui.screens.tune.tunable_lines import tunable_heading, tunable_line
from tui.screens.tune.tunable_rows import TunableRow, stepped
from tui.textual_internals.laid_out import Modal
from tui.textual_internals.option_list import Options
from tui.widgets.line import TextLine
from tui.widgets.line_list import ItemOption

DURATIONS: tuple[tuple[str, float | None], ...] = (
    ("until lunscope ends", None),
    ("for 60 s", 60.0),
    ("for 10 min", 600.0),
    ("for 1 h", 3600.0),
)


class DrawerStep(Enum):
    """What the drawer asks for."""

    CHOOSE = auto()
    TYPE = auto()
    """A value."""
    CONFIRM = auto()
    """The values that would be written."""
    SAVE = auto()
    """The folder for configuration files."""


class StepInput(Input):
    """A line to type a number on, with keys that step it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(1)", "Higher", show=False),
        Binding("down", "step(-1)", "Lower", show=False),
        Binding("pageup", "step(2)", "Double", show=False),
        Binding("pagedown", "step(-2)", "Half", show=False),
    ]
    legal = ""

    def action_step(self, step: int) -> None:
        """Step the number within its range."""
        self.value = stepped(self.value, self.legal, step)
        self.cursor_position = len(self.value)


_FOCUS = {
    DrawerStep.CHOOSE: "OptionList",
    DrawerStep.TYPE: "Input",
    DrawerStep.SAVE: "Input",
    DrawerStep.CONFIRM: "#asked",
}
_KEYS = {
    DrawerStep.CHOOSE: "Enter change  u undo  c A/B  K keep  w save  s scope  t time  Esc close",
    DrawerStep.TYPE: "Up/Down: by 1   PgUp/PgDn: double, half   Enter: dry run   Esc: back",
    DrawerStep.CONFIRM: "Enter: apply   Esc: back",
    DrawerStep.SAVE: "Enter: write new files into the folder typed here   Esc: back",
}


class TuneForm(Modal[None]):
    """Draws the step; it neither reads nor writes a tunable."""

    DEFAULT_CSS = """
    TuneForm { align: center bottom; }
    TuneForm #box {
        width: 100%; max-width: 118; height: 24; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    TuneForm OptionList { height: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    TuneForm #asked { height: 1fr; display: none; }
    TuneForm #asked Static { height: auto; }
    TuneForm Input { display: none; }
    TuneForm #about { height: 2; }
    TuneForm.-asks OptionList { display: none; }
    TuneForm.-asks #asked { display: block; }
    TuneForm.-types Input { display: block; }
    """

    def __init__(self, app_state: AppState, scopes: Sequence[TuneScope]) -> None:
        super().__init__()
        self._state, self._scopes = app_state, scopes
        self._scope_at = self._lasts_at = 0
        self._rows: Sequence[TunableRow] = ()
        self._step = DrawerStep.CHOOSE
        self._problem = ""

    def compose(self) -> ComposeResult:
        """Scope, list, description, changes, keys."""
        box = Vertical(id="box")
        box.border_title = "Tune"
        with box:
            yield TextLine(" ", id="scope")
            yield TextLine(tunable_heading(), id="head")
            yield Options(markup=False, compact=True)
            with VerticalScroll(id="asked"):
                yield Static(markup=False)
            yield StepInput(compact=True)
            yield TextLine(" ", id="about")
            yield ChangesInForce(self._state)
            yield TextLine(" ", id="keys")

    def _list(self, rows: Sequence[TunableRow]) -> None:
        listing = self.query_one(OptionList)
        position = listing.highlighted or 0
        self._rows = rows
        listing.clear_options()
        listing.add_options(ItemOption(tunable_line(row), row) for row in rows)
        if rows:
            listing.highlighted = min(position, len(rows) - 1)
        else:
            self._problem = "nothing in this scope has a tunable"

    def _ask(self, step: DrawerStep) -> None:
        self._step = step
        self.set_class(step is not DrawerStep.CHOOSE, "-asks")
        self.set_class(step in {DrawerStep.TYPE, DrawerStep.SAVE}, "-types")
        self.set_focus(self.query_one(_FOCUS[step]))

    def _show_asked(self, lines: Sequence[str]) -> None:
        self.query_one("#asked Static", Static).update("\n".join(map(safe_text, lines)))
        self._draw()

    def _say(self, text: str) -> None:
        self.notify(safe_text(text), severity="warning", timeout=6, markup=False)

    @property
    def _row(self) -> TunableRow | None:
        position = self.query_one(OptionList).highlighted
        return None if position is None or position >= len(self._rows) else self._rows[position]

    @property
    def _scope_words(self) -> str:
        return self._scopes[self._scope_at].words if self._scopes else "nothing"

    @on(OptionList.OptionHighlighted)
    def _describe(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if not self.query("#keys"):
            return
        others = len(self._scopes) - 1
        more = f"   (s: {others} other scope{'s' if others > 1 else ''})" if others > 0 else ""
        self.query_one("#box", Vertical).border_title = escape(f"Tune {self._scope_words}")
        self.query_one("#scope", TextLine).put(
            Content.assemble("New values last ", (DURATIONS[self._lasts_at][0], "bold"), f"   (t: other){more}")
        )
        self.query_one("#about", TextLine).put(self._about())
        self.query_one(ChangesInForce).refresh_changes()
        self.query_one("#keys", TextLine).put(_KEYS[self._step])

    def _about(self) -> Content:
        row = self._row
        first = Content("") if row is None else Content(f"{row.tunable.id}: {row.tunable.help}")
        if self._problem:
            return Content("\n").join([first, Content.styled(self._problem, "$warning")])
        if row is None:
            return first
        second = f"cannot be changed: {row.refusal}" if row.refusal else f"legal: {row.legal or 'the kernel decides'}"
        on = f"   on {row.targets:,} target{'' if row.targets == 1 else 's'}"
        on += "   *: not the default" if row.is_changed and not row.refusal else ""
        return Content("\n").join([first, Content.styled(second + on, "$warning" if row.refusal else "dim")])
