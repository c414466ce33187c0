"""Dialogs: one question each; Esc cancels."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from engine.text import safe_text
from tui.textual_internals.laid_out import Modal


class Dialog(Modal[str | None]):
    """A box with a text and an input line; Esc returns None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Leave", show=False)]
    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog Vertical {
        width: 72; max-width: 100%; height: auto; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    Dialog Static { height: auto; }
    Dialog .warning { color: $error; text-style: bold; }
    """

    def __init__(self, title: str, text: str, *, warning: str = "", value: str = "") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._warning = warning
        self._value = value

    def compose(self) -> ComposeResult:
        """Text, warning, and the line to type on."""
        box = Vertical()
        box.border_title = self._title
        with box:
            if self._warning:
                yield Static(safe_text(self._warning), markup=False, classes="warning")
            yield Static(self._text, markup=False)
            yield from self.compose_more()
            yield Input(self._value, compact=True)
            yield Static("Enter: confirm   Esc: cancel", markup=False, id="keys")

    def compose_more(self) -> ComposeResult:
        """Compose what stands between the text and the input."""
        return iter(())

    @property
    def is_ready(self) -> bool:
        """Whether an answer is taken; Enter does nothing before."""
        return True

    def answer_of(self, typed: str) -> str | None:
        """Convert the input to the answer."""
        return typed

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        """Close with the answer; subclasses override `answer_of`, as Textual runs the handlers of all base classes."""
        event.stop()
        if self.is_ready:
            self.dismiss(self.answer_of(event.value))


class TypeToConfirm(Dialog):
    """Asks for a word to be typed exactly; returns it, or None for anything else."""

    def __init__(self, title: str, text: str, *, expected: str, warning: str) -> None:
        super().__init__(title, text, warning=warning)
        self._expected = expected

    def answer_of(self, typed: str) -> str | None:
        """Accept only the word itself."""
        return typed if typed == self._expected else None


def confirm_destroy() -> TypeToConfirm:
    """Asks before targets that carry a filesystem or the like may be written."""
    return TypeToConfirm(
        "Destroy data on the targets",
        "Targets that hold data (existing files, and devices that are not blank) "
        "are refused. To overwrite them anyway, type: destroy",
        expected="destroy",
        warning="The data on the targets is destroyed.",
    )
