"""The tuning drawer: tunables at the cursor, a new value, what it would write, and the changes in force."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.markup import escape
from textual.widgets import Input, OptionList

from collectors.reports.formats.text import section_lines
from engine.errors import LunscopeError
from engine.text import safe_text
from engine.tune.held import HeldChange, HeldChanges
from engine.tune.persist import write_files
from engine.tune.planned_writes import TunePlan, parse_settings
from engine.tune.record import ChangeRecord
from engine.tune.tunable import Tunable
from tui.app_state import AppState
from tui.headless.tune_text import plan_section
from tui.screens.shared.chooser import Chooser, ChooserLine
from tui.screens.tune.changes_in_force import ChangesInForce
from tui.screens.tune.form import DURATIONS, DrawerStep, StepInput, TuneForm
from tui.screens.tune.scopes import TuneScope
from tui.screens.tune.tunable_lines import value_note, value_question
from tui.screens.tune.tunable_rows import TunableRow, rows_of
from tui.widgets.line_list import ItemOption

REFRESH_S = 1.0
NOT_HERE = "nothing can be changed here: this is a recording, or shows other hosts"
NOTHING = "no tunables for what is under the cursor: choose a disk, path, LUN, port or control group"


class TuneDrawer(TuneForm):
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

    def __init__(self, app_state: AppState, scopes: Sequence[TuneScope]) -> None:
        super().__init__(app_state, scopes)
        self._wanted: tuple[TunePlan, dict[Tunable, str]] | None = None
        self._is_busy = False

    @property
    def _held(self) -> HeldChanges | None:
        return self._state.tuning

    def on_mount(self) -> None:
        """Read the values, and follow changes while it is shown."""
        self._read()
        self._draw()
        self.set_interval(REFRESH_S, self._tick)

    def _tick(self) -> None:
        if self.query_one(ChangesInForce).has_ended and not self._is_busy:
            self._read()
        self._draw()

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
        if self.is_open:
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
            lines = [ChooserLine(value, value, value_note(row, value)) for value in row.choices]
            title = escape(f"{row.tunable.id} of {self._scope_words}")
            chooser = Chooser(title, lines, present=row.present, verb="see what it would write")
            self.app.push_screen(chooser, lambda value: self._plan(row, value))
        else:
            self._ask(DrawerStep.TYPE)
            line = self.query_one(StepInput)
            line.legal, line.value = row.legal, row.present
            line.cursor_position = len(line.value)
            self._show_asked(value_question(row, self._scope_words))

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
        self._show_asked([f"Dry run, {DURATIONS[self._lasts_at][0]}:", *section_lines([plan_section(plan)])])

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


def _outcome(record: ChangeRecord | None, words: str) -> str:
    if record is None:
        return "no change of this lunscope is in force"
    if record.problems:
        return f"change {record.number}: {record.problems[0]}"
    return f"change {record.number}: {words}"
