"""The tuning drawer: tunables at the cursor, a new value, what it would write, and the changes in force."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.markup import escape
from textual.widgets import Input, OptionList, Static

from engine.errors import LunscopeError
from engine.text import safe_text
from engine.tune.held import HeldChange, HeldChanges
from engine.tune.persist import write_files
from engine.tune.plan import TunePlan, parse_settings
from engine.tune.record import ChangeRecord
from engine.tune.tunable import Tunable
from tui.app_state import AppState
from tui.headless.tune_text import plan_lines
from tui.screens.chooser import Chooser, ChooserLine
from tui.theme.laid_out import Modal
from tui.tune.effects import TuneEffectFound, TuneEffects, effect_line, shown_changes
from tui.tune.scopes import TuneScope
from tui.tune.tunable_rows import TunableRow, rows_of, stepped
from tui.widgets.line import TextLine
from tui.widgets.lister import ItemOption, Options

DURATIONS: tuple[tuple[str, float | None], ...] = (
    ("until lunscope ends", None),
    ("for 60 s", 60.0),
    ("for 10 min", 600.0),
    ("for 1 h", 3600.0),
)
REFRESH_S = 1.0
MOST_CHANGES = 3
NAME_WIDTH, VALUE_WIDTH, DEFAULT_WIDTH, UNIT_WIDTH = 24, 16, 11, 9
NOT_HERE = "nothing can be changed here: this is a recording, or shows other hosts"
NOTHING = "no tunables for what is under the cursor: choose a disk, path, LUN, port or control group"


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


class TuneDrawer(Modal[None]):
    """Tunables of a scope; all reading and writing is done in threads, as the kernel may block it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", show=False),
        Binding("q,F", "leave", "Close", show=False),
        Binding("s", "scope", "Next scope", show=False),
        Binding("t", "lasts", "How long", show=False),
        Binding("u", "undo", "Undo the newest change", show=False),
        Binding("c", "flip", "Flip the newest change", show=False),
        Binding("K", "keep", "Keep the newest change", show=False),
        Binding("w", "save", "Save as configuration", show=False),
        Binding("enter", "apply", "Apply", show=False),
    ]
    DEFAULT_CSS = """
    TuneDrawer { align: center bottom; }
    TuneDrawer #box {
        width: 100%; max-width: 118; height: 24; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    TuneDrawer OptionList { height: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    TuneDrawer #asked { height: 1fr; display: none; }
    TuneDrawer #asked Static { height: auto; }
    TuneDrawer Input { display: none; }
    TuneDrawer #about { height: 2; }
    TuneDrawer #changes { height: 4; text-wrap: wrap; }
    TuneDrawer.-asks OptionList { display: none; }
    TuneDrawer.-asks #asked { display: block; }
    TuneDrawer.-types Input { display: block; }
    """

    def __init__(self, app_state: AppState, scopes: Sequence[TuneScope]) -> None:
        super().__init__()
        self._state, self._scopes = app_state, scopes
        self._scope_at = self._lasts_at = 0
        self._rows: Sequence[TunableRow] = ()
        self._step = DrawerStep.CHOOSE
        self._wanted: tuple[TunePlan, dict[Tunable, str]] | None = None
        self._problem = ""
        self._is_busy = False
        self._effects = TuneEffects(app_state, self)

    @property
    def _held(self) -> HeldChanges | None:
        return self._state.tuning

    def compose(self) -> ComposeResult:
        """Scope, list, description, changes, keys."""
        box = Vertical(id="box")
        box.border_title = "Tune"
        with box:
            yield TextLine(" ", id="scope")
            yield TextLine(_heading(), id="head")
            yield Options(markup=False, compact=True)
            with VerticalScroll(id="asked"):
                yield Static(markup=False)
            yield StepInput(compact=True)
            yield TextLine(" ", id="about")
            yield TextLine(" ", id="changes")
            yield TextLine(" ", id="keys")

    def on_mount(self) -> None:
        """Read the values, and follow changes while it is shown."""
        self._read()
        self._draw()
        self.set_interval(REFRESH_S, self._tick)

    # ----------------------------------------------------------------- threads

    def _in_thread(self, work: Callable[[], Callable[[], None]], *, waits: str = "") -> None:
        """Do work that may block, then what it returns, in the app; only one at a time."""
        if self._is_busy:
            self._say("the kernel has not answered yet: wait, or leave; a change is undone at the end")
            return
        self._is_busy = True
        self._problem = waits

        def run() -> None:
            try:
                then = work()
            except LunscopeError as error:
                text = str(error)
                then = lambda: self._fail(text)  # noqa: E731 (the error is gone by then)
            with suppress(RuntimeError):  # The app was left meanwhile.
                self.app.call_from_thread(self._finish, then)

        threading.Thread(target=run, name="lunscope-tune", daemon=True).start()
        self._draw()

    def _finish(self, then: Callable[[], None]) -> None:
        self._is_busy = False
        self._problem = ""
        if self.is_mounted:
            then()
            self._draw()

    def _fail(self, text: str) -> None:
        self._problem = safe_text(text)
        self._ask(DrawerStep.CHOOSE)

    def _read(self) -> None:
        """Read the tunables of the scope."""
        held = self._held
        if held is None:
            self._problem = NOT_HERE
            return
        if not self._scopes:
            self._problem = NOTHING
            return
        names = self._scopes[self._scope_at].names

        def work() -> Callable[[], None]:
            held.drop_ended()
            rows = rows_of(held.values(names))
            return lambda: self._list(rows)

        self._in_thread(work, waits="reading ..")

    def _list(self, rows: Sequence[TunableRow]) -> None:
        listing = self.query_one(OptionList)
        position = listing.highlighted or 0
        self._rows = rows
        listing.clear_options()
        listing.add_options(ItemOption(_line(row), row) for row in rows)
        if rows:
            listing.highlighted = min(position, len(rows) - 1)
        else:
            self._problem = "nothing in this scope has a tunable"

    # ------------------------------------------------------------------- steps

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        """Ask for a value of the tunable under the cursor, or say why it cannot be changed."""
        event.stop()
        if not isinstance(event.option, ItemOption):
            return
        row: TunableRow = event.option.item
        if row.refusal:
            self._say(f"{row.tunable.id}: {row.refusal}")
        elif row.choices:
            lines = [ChooserLine(value, value, _note(row, value)) for value in row.choices]
            title = escape(f"{row.tunable.id} of {self._scope_words}")
            chooser = Chooser(title, lines, present=row.present, verb="see what it would write")
            self.app.push_screen(chooser, lambda value: self._plan(row, value))
        else:
            self._ask(DrawerStep.TYPE)
            line = self.query_one(StepInput)
            line.legal, line.value = row.legal, row.present
            line.cursor_position = len(line.value)
            self._show_asked(_value_lines(row, self._scope_words))

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        row = self._row
        if self._step is DrawerStep.SAVE:
            self._write_files(event.value)
        elif row is not None:
            self._plan(row, event.value)

    def _plan(self, row: TunableRow, value: str | None) -> None:
        """Check a value on all targets and show what would be written."""
        held = self._held
        if value is None or held is None:
            return
        names = self._scopes[self._scope_at].names

        def work() -> Callable[[], None]:
            settings = parse_settings([f"{row.tunable.id}={value}"])
            plan = held.plan(names, settings)
            return lambda: self._confirm(plan, settings)

        self._in_thread(work, waits="checking ..")

    def _confirm(self, plan: TunePlan, settings: dict[Tunable, str]) -> None:
        if not plan.writes:
            self._ask(DrawerStep.CHOOSE)
            self._problem = f"nothing to change: {plan.unchanged:,} values are so already"
            return
        self._wanted = plan, settings
        self._ask(DrawerStep.CONFIRM)
        self._show_asked([f"Dry run, {DURATIONS[self._lasts_at][0]}:", *plan_lines(plan)])

    def action_apply(self) -> None:
        """Make the change that is shown."""
        wanted, held = self._wanted, self._held
        if self._step is not DrawerStep.CONFIRM or wanted is None or held is None:
            return
        duration_s = DURATIONS[self._lasts_at][1]
        self._wanted = None
        self._ask(DrawerStep.CHOOSE)

        def work() -> Callable[[], None]:
            made = held.make(*wanted, duration_s)
            text = "all values are as before the changes" if made is None else ""
            return lambda: self._done(text)

        self._in_thread(work, waits="writing ..")

    def _done(self, text: str) -> None:
        if text:
            self.notify(safe_text(text), timeout=3, markup=False)
        self._read()

    def action_undo(self) -> None:
        """Undo the newest change."""
        self._with_newest(lambda held: _outcome(held.undo(), "restored"))

    def action_flip(self) -> None:
        """Undo the newest change, or make the one again that was undone last."""

        def flip(held: HeldChanges) -> str:
            found = held.flip()
            return "" if isinstance(found, HeldChange) else _outcome(found, "restored")

        self._with_newest(flip)

    def action_keep(self) -> None:
        """Leave the newest change in force when lunscope ends."""
        self._with_newest(lambda held: _outcome(held.keep(), "kept: `lunscope tune undo` restores it"))

    def _with_newest(self, act: Callable[[HeldChanges], str]) -> None:
        held = self._held
        if held is None or self._step is not DrawerStep.CHOOSE:
            return

        def work() -> Callable[[], None]:
            text = act(held)
            return lambda: self._done(text)

        self._in_thread(work, waits="writing ..")

    def action_save(self) -> None:
        """Show the configuration files of what is kept or in force, and ask where to write them."""
        held = self._held
        if held is None or self._step is not DrawerStep.CHOOSE:
            return

        def work() -> Callable[[], None]:
            saved = held.configuration()
            lines = [line for file in saved.files for line in (f"# {file.belongs}", *file.text.splitlines())]
            return lambda: self._ask_folder([*lines, *saved.left_out])

        self._in_thread(work)

    def _ask_folder(self, lines: Sequence[str]) -> None:
        if not lines:
            self._problem = "nothing to save: no change is in force or kept"
            return
        self._ask(DrawerStep.SAVE)
        line = self.query_one(StepInput)
        line.legal, line.value = "", ""
        self._show_asked(["Configuration that sets these values at boot; nothing is installed:", *lines])

    def _write_files(self, folder: str) -> None:
        held = self._held
        self._ask(DrawerStep.CHOOSE)
        if held is None or not folder.strip():
            return

        def work() -> Callable[[], None]:
            paths = write_files(Path(folder.strip()), held.configuration().files)
            text = f"written: {', '.join(map(str, paths))}"
            return lambda: self.notify(safe_text(text), timeout=15, markup=False)

        self._in_thread(work)

    def action_scope(self) -> None:
        """Take the next scope."""
        if self._step is DrawerStep.CHOOSE and self._scopes and not self._is_busy:
            self._scope_at = (self._scope_at + 1) % len(self._scopes)
            self._read()

    def action_lasts(self) -> None:
        """Take the next time that changes last."""
        if self._step is DrawerStep.CHOOSE:
            self._lasts_at = (self._lasts_at + 1) % len(DURATIONS)
            self._draw()

    def action_back(self) -> None:
        """Leave the step, or the drawer."""
        if self._step is DrawerStep.CHOOSE:
            self.dismiss(None)
        else:
            self._ask(DrawerStep.CHOOSE)
            self._draw()

    def action_leave(self) -> None:
        """Close the drawer; changes stay in force."""
        self.dismiss(None)

    # ----------------------------------------------------------------- drawing

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

    @on(TuneEffectFound)
    def _show_effect(self) -> None:
        self._draw()

    @on(OptionList.OptionHighlighted)
    def _describe(self) -> None:
        self._draw()

    def _tick(self) -> None:
        held = self._held
        if held is not None and any(_seconds_left(one) == 0 for one in held.in_force) and not self._is_busy:
            self._read()
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
        self.query_one("#changes", TextLine).put(Content("\n").join(self._changes()))
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
        return Content("\n").join([first, Content.styled(second + on, "$warning" if row.refusal else "dim")])

    def _changes(self) -> list[Content]:
        """List changes in force with their time left, and what the newest ones of all did."""
        held = () if self._held is None else self._held.in_force
        lines = [_held_line(one) for one in held[: -MOST_CHANGES - 1 : -1]]
        if len(held) > MOST_CHANGES:
            lines.append(Content.styled(f"and {len(held) - MOST_CHANGES} more in force", "dim"))
        frame = self._state.frame
        if frame is not None:
            newest = shown_changes(self._state.events.all(), frame.time_ns, 1 if held else 2)
            for event, effect in zip(newest, self._effects.of(newest, frame.time_ns), strict=True):
                if not held:
                    lines.append(Content(safe_text(event.text)))
                lines.append(Content.assemble(("before/after: ", "dim"), effect_line(effect)))
        return lines or [Content.styled("no change in force", "dim")]


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


def _heading() -> Content:
    titles = (
        f"  {'TUNABLE':<{NAME_WIDTH}}{'VALUE':<{VALUE_WIDTH}}{'UNIT':<{UNIT_WIDTH}}{'DEFAULT':<{DEFAULT_WIDTH}}LEGAL"
    )
    return Content.styled(titles, "bold")


def _line(row: TunableRow) -> Content:
    mark = "r" if row.refusal else "*" if row.is_changed else " "
    cells = (
        (row.tunable.id, NAME_WIDTH),
        (row.value, VALUE_WIDTH),
        (row.tunable.unit, UNIT_WIDTH),
        (row.default, DEFAULT_WIDTH),
    )
    text = "".join(f"{_cut(cell, width - 1):<{width}}" for cell, width in cells)
    return Content.styled(f"{mark} {text}{row.legal}", "dim" if row.refusal else "bold" if row.is_changed else "")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 2]}.."


def _note(row: TunableRow, value: str) -> str:
    notes = ["now" if value == row.present else "", "default" if value == row.default else ""]
    return ", ".join(filter(None, notes))


def _value_lines(row: TunableRow, scope: str) -> list[str]:
    unit = f" ({row.tunable.unit})" if row.tunable.unit else ""
    return [
        f"New value of {row.tunable.id}{unit} for {scope}:",
        f"now {row.value}, default {row.default or 'not known'}, legal {row.legal or 'what the kernel takes'}",
    ]


def _held_line(held: HeldChange) -> Content:
    left_s = _seconds_left(held)
    when = "until lunscope ends" if left_s is None else f"{left_s} s left"
    text = "; ".join(held.record.summary)
    return Content.assemble((f"{held.record.number} ", "bold"), safe_text(text), (f"  {when}", "$accent"))


def _seconds_left(held: HeldChange) -> int | None:
    until_ns = held.record.until_ns
    return None if until_ns is None else max(int((until_ns - time.time_ns()) / 1e9), 0)


def _outcome(record: ChangeRecord | None, words: str) -> str:
    if record is None:
        return "no change of this lunscope is in force"
    if record.left:
        return f"change {record.number}: not restored: {record.left[0]}"
    return f"change {record.number}: {words}"
