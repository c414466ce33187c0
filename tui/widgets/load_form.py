"""The form of the job: one line per field."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from engine.job.spec import JobSpec
from tui.load.form import FORM, FormField, form_values
from tui.widgets.line import TextLine


class Choice(Widget, can_focus=True):
    """One of a few words, changed by arrow keys, space or a click."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "turn(1)", "Next", show=False),
        Binding("left", "turn(-1)", "Previous", show=False),
    ]
    DEFAULT_CSS = """
    Choice { height: 1; width: 28; }
    Choice:focus { background: $accent 40%; text-style: bold; }
    """

    class Changed(Message):
        """Another word is chosen."""

    def __init__(self, choices: tuple[str, ...], *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, markup=False)
        self._choices = choices
        self._position = 0

    @property
    def value(self) -> str:
        """The word chosen."""
        return self._choices[self._position]

    @value.setter
    def value(self, word: str) -> None:
        self._position = self._choices.index(word)
        self.refresh()

    def action_turn(self, direction: int) -> None:
        """Take the next or the previous word."""
        self._position = (self._position + direction) % len(self._choices)
        self.refresh()
        self.post_message(self.Changed())

    def on_click(self) -> None:
        """Take the next word."""
        self.action_turn(1)

    def render(self) -> Content:
        """Draw the word between marks that show it can be changed."""
        return Content.assemble(("< ", "dim"), self.value, (" >", "dim"))


class LoadForm(VerticalScroll):
    """The fields of a job."""

    DEFAULT_CSS = """
    LoadForm { height: 1fr; }
    LoadForm Horizontal { height: 1; }
    LoadForm .title { width: 14; color: $text-muted; }
    LoadForm Input { width: 28; }
    LoadForm #targets { width: 1fr; }
    LoadForm .hint { color: $text-muted; padding: 0 0 0 2; }
    """

    class Edited(Message):
        """A field was changed; the screen validates the form."""

    class TargetsWanted(Message):
        """The operator wants to choose the targets from a list."""

    def compose(self) -> ComposeResult:
        """One line per field."""
        for field in FORM:
            with Horizontal(id=f"row_{field.id}"):
                yield TextLine(f" {field.title}", classes="title")
                yield _editor(field)
                if field.id != "targets":
                    yield TextLine(field.hint, classes="hint")
            if field.id == "targets":
                yield TextLine(field.hint, classes="hint")

    def fill(self, job: JobSpec, *, destroy_data: bool) -> None:
        """Show a job."""
        with self.prevent(Input.Changed):
            for field_id, text in form_values(job, destroy_data=destroy_data).items():
                editor = self.query_one(f"#{field_id}")
                if isinstance(editor, (Choice, Input)):
                    editor.value = text

    def values(self) -> dict[str, str]:
        """Read the fields."""
        editors = (self.query_one(f"#{field.id}") for field in FORM)
        return {editor.id or "": editor.value for editor in editors if isinstance(editor, (Choice, Input))}

    def show_policy(self, *, shown: bool) -> None:
        """Show the line of the path policy, or hide it where there is nothing to choose among."""
        self.query_one("#row_policy").display = shown

    @on(Input.Submitted, "#targets")
    def _list_targets(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.TargetsWanted())

    @on(Input.Changed)
    @on(Choice.Changed)
    def _edited(self, event: Message) -> None:
        event.stop()
        self.post_message(self.Edited())


def _editor(field: FormField) -> Choice | Input:
    if field.choices:
        return Choice(field.choices, id=field.id)
    return Input(id=field.id, compact=True)
