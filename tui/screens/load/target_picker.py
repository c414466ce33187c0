"""The dialog that chooses the targets of a load from the devices of this host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, OptionList

from engine.errors import LunscopeError
from engine.guard.answers import GuardAnswer
from engine.job.spec import JobSpec, TargetSpec
from engine.job.target_text import parse_target
from engine.newest_work import PATIENCE_S, NewestWork
from tui.load.candidates import Candidate, matching, target_of
from tui.load.load_controller import LoadController
from tui.textual_internals.laid_out import Modal
from tui.textual_internals.option_list import Options
from tui.widgets.guard_panel import answer_lines
from tui.widgets.line import TextLine
from tui.widgets.line_list import ItemOption

MOST_LISTED = 200
"""Largest number of listed lines; typing narrows the list."""
PAGE_LINES = 10
REST_S = 0.3
"""How long the cursor must rest on a line until the guard is asked about its target."""
BATCH = 8
FREE = "no use known"
USE_WIDTH = 22


class UsesFound(Message, bubble=False):
    """What uses some of the devices, by kernel name."""

    def __init__(self, uses: Mapping[str, str]) -> None:
        super().__init__()
        self.uses = uses


class TargetAnswered(Message, bubble=False):
    """What the guard says of one target."""

    def __init__(self, target: str, answer: GuardAnswer) -> None:
        super().__init__()
        self.target = target
        self.answer = answer


class TargetPicker(Modal[tuple[str, ...] | None]):
    """A list filtered by typing, with a mark on each target that is chosen; returns them as the form takes them.

    What uses each device is asked for in a thread, line by line from the first; what the guard says in full of the
    line under the cursor, in another one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Leave", show=False),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("pageup", f"move(-{PAGE_LINES})", "Page up", show=False, priority=True),
        Binding("pagedown", f"move({PAGE_LINES})", "Page down", show=False, priority=True),
        Binding("tab", "mark", "Choose or leave out", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    TargetPicker { align: center middle; }
    TargetPicker Vertical {
        width: 110; max-width: 100%; height: 34; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    TargetPicker OptionList { height: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    TargetPicker #answer { height: 3; text-wrap: wrap; }
    """

    def __init__(self, offered: Sequence[Candidate], controller: LoadController) -> None:
        """Take all lines."""
        super().__init__()
        self._offered = offered
        self._marked: dict[str, None] = {}
        self._controller = controller
        self._listed: list[Candidate] = []
        self._uses: dict[str, str] = {}
        self._answers: dict[str, GuardAnswer] = {}
        self._users, self._guard = (NewestWork(name, PATIENCE_S) for name in ("lunscope-uses", "lunscope-guard-list"))
        self._use_of = controller.guard.uses()
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        """Filter, list, answer of the guard, keys."""
        box = Vertical()
        box.border_title = "Targets of the load"
        with box:
            yield Input(placeholder="type parts of a name, model or size", compact=True)
            listing = Options(markup=False, compact=True)
            listing.can_focus = False  # What is typed always goes to the filter.
            yield listing
            yield TextLine(" ", id="answer")
            yield TextLine(" ", id="count")

    def on_mount(self) -> None:
        """List all."""
        self._list("")

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self._list(event.value)

    def _list(self, typed: str) -> None:
        found = matching(self._offered, typed)
        self._listed = found[:MOST_LISTED]
        listing = self.query_one(OptionList)
        listing.clear_options()
        listing.add_options(ItemOption(self._line(one), one) for one in self._listed)
        if self._listed:
            listing.highlighted = 0
        self._count(len(found))
        self._ask_uses()
        self._at_line()

    def _count(self, found: int) -> None:
        rest = f", the first {MOST_LISTED} listed" if found > MOST_LISTED else ""
        marked = f"{len(self._marked)} chosen   " if self._marked else ""
        text = f"{found} of {len(self._offered)}{rest}   {marked}Tab: choose   Enter: use   Esc: cancel"
        self.query_one("#count", TextLine).put(text)

    def _line(self, one: Candidate) -> Content:
        mark = "[x] " if one.target in self._marked else "[ ] "
        use = self._uses.get(one.kernel_name) if one.kernel_name else ""
        words = "checking" if use is None else use or (FREE if one.kernel_name else "")
        style = "dim" if use is None else "$warning" if use else "$success"
        head = Content.assemble(mark, (f"{one.name:<14}", "bold"), f" {one.size:>9}  ")
        return head + Content.assemble((f"{words:<{USE_WIDTH}}  ", style), (one.about, "dim"))

    # ------------------------------------------------------------------ guard

    def _ask_uses(self) -> None:
        """Find what uses the listed devices, some at a time."""
        names = [one.kernel_name for one in self._listed if one.kernel_name and one.kernel_name not in self._uses]
        work, use_of = self._users, self._use_of

        def ask() -> None:
            for start in range(0, len(names), BATCH):
                if work.is_overtaken or not self.is_attached:
                    return
                self.post_message(UsesFound({name: use_of(name) for name in names[start : start + BATCH]}))

        if names:
            work.request(ask)

    @on(UsesFound)
    def _uses_found(self, message: UsesFound) -> None:
        if not self.is_open:
            return
        self._uses.update(message.uses)
        for position, one in enumerate(self._listed):
            if one.kernel_name in message.uses:
                self._draw(position)

    def _draw(self, position: int) -> None:
        self.query_one(OptionList).replace_option_prompt_at_index(position, self._line(self._listed[position]))

    def _at_line(self) -> None:
        """Show what the guard says of the target under the cursor, once the cursor rests."""
        if self._rest is not None:
            self._rest.stop()
        one = self._under_cursor
        answer = None if one is None else self._answers.get(one.target)
        line = self.query_one("#answer", TextLine)
        if one is None or answer is not None:
            line.put(Content(" ") if answer is None else Content("\n").join(answer_lines([answer])))
            return
        line.put(f"{one.name}: checking what it may be used for ...")
        self._rest = self.set_timer(REST_S, lambda: self._ask_guard(one))

    def _ask_guard(self, one: Candidate) -> None:
        def ask() -> None:
            job = JobSpec(targets=(_parsed(one.target),))
            try:
                (answer,) = self._controller.guard.answers(job, self._controller.permissions)
            except (LunscopeError, OSError) as error:
                answer = GuardAnswer(one.name, None, str(error), str(error))
            self.post_message(TargetAnswered(one.target, answer))

        self._guard.request(ask)

    @on(TargetAnswered)
    def _answered(self, message: TargetAnswered) -> None:
        self._answers[message.target] = message.answer
        if self.is_open:
            self._at_line()

    # ---------------------------------------------------------------- choices

    @property
    def _under_cursor(self) -> Candidate | None:
        position = self.query_one(OptionList).highlighted
        return None if position is None or position >= len(self._listed) else self._listed[position]

    def action_move(self, lines: int) -> None:
        """Move the cursor of the list while typing."""
        listing = self.query_one(OptionList)
        if self._listed:
            listing.highlighted = min(max((listing.highlighted or 0) + lines, 0), len(self._listed) - 1)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self) -> None:
        self._at_line()

    def action_mark(self) -> None:
        """Choose the target under the cursor, or leave it out; the cursor goes on."""
        one = self._under_cursor
        if one is not None:
            self._mark(one)
            self.action_move(1)

    def _mark(self, one: Candidate) -> None:
        if one.target in self._marked:
            del self._marked[one.target]
        else:
            self._marked[one.target] = None
        if one in self._listed:
            self._draw(self._listed.index(one))
        self._count(len(matching(self._offered, self.query_one(Input).value)))

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        if isinstance(event.option, ItemOption):
            self._mark(event.option.item)

    @on(Input.Submitted)
    def _use(self) -> None:
        """Use what is chosen, or the line under the cursor if nothing is."""
        by_target = {one.target: one for one in self._offered}
        under = self._under_cursor
        chosen = [by_target[target] for target in self._marked] or ([] if under is None else [under])
        self.dismiss(tuple(target_of(one) for one in chosen) or None)


def _parsed(target: str) -> TargetSpec:
    try:
        return parse_target(target)
    except LunscopeError:
        return TargetSpec(target)
