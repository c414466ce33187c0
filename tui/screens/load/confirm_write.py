"""The dialog before a target is written: what is on it, and its name to be typed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from textual import on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.widgets import Static

from engine.errors import LunscopeError
from engine.job.knobs import Knobs
from engine.text import safe_text
from tui.load.host_guard import WriteQuestion
from tui.screens.shared.dialogs import TypeToConfirm

_LOOKING = "checking what is on it ..."
_PROMPT = "Its present content is lost. Type its name to allow that:"


class WriteAsked(Message, bubble=False):
    """The guard has looked at the target."""

    def __init__(self, question: WriteQuestion) -> None:
        super().__init__()
        self.question = question


class ConfirmWrite(TypeToConfirm):
    """Asks for the name of a target, which is taken only once what is on it is shown."""

    def __init__(self, path: str, ask: Callable[[str], WriteQuestion]) -> None:
        super().__init__(
            "Write to a target",
            f"The load is going to WRITE to\n\n    {safe_text(path)}\n",
            expected=path,
            warning="This destroys data.",
        )
        self._path, self._ask = path, ask
        self.question: WriteQuestion | None = None
        """None until the guard has answered."""

    def compose_more(self) -> ComposeResult:
        """Compose the line of what is on it, and the prompt, which come when it is known."""
        yield Static(_LOOKING, markup=False, id="found")
        yield Static("", markup=False, id="prompt")

    def on_mount(self) -> None:
        """Look at the target in a thread: a slow disk takes seconds."""
        threading.Thread(target=self._look, name="lunscope-confirm", daemon=True).start()

    def _look(self) -> None:
        try:
            question = self._ask(self._path)
        except (LunscopeError, OSError) as error:
            question = WriteQuestion(self._path, "", str(error))
        self.post_message(WriteAsked(question))

    @on(WriteAsked)
    def _asked(self, message: WriteAsked) -> None:
        question = self.question = message.question
        refused = f"Refused: {question.refusal}" if question.refusal else ""
        lines = (question.forgotten, refused or question.found)
        self.query_one("#found", Static).update("\n".join(filter(None, lines)))
        if refused:
            for needless in self.query(".warning, #prompt, Input"):
                needless.display = False
            self.query_one("#keys", Static).update("Esc: close")
        else:
            self.query_one("#prompt", Static).update(_PROMPT)

    @property
    def is_ready(self) -> bool:
        """Whether what is on it is shown, and its name permits to write."""
        return self.question is not None and not self.question.refusal


class Confirming(Protocol):
    """A load whose targets are written once their names were typed."""

    def unconfirmed(self, knobs: Knobs) -> tuple[str, ...]:
        """Paths these knobs would write to whose names were not typed yet."""

    def question(self, path: str) -> WriteQuestion:
        """Look at a target that the load wants to write; blocks as long as it does."""

    def confirm(self, question: WriteQuestion) -> None:
        """Take the name that was typed."""


def when_typed(
    app: App[object], load: Confirming, knobs: Knobs, then: Callable[[], None], otherwise: Callable[[str], None]
) -> None:
    """Continue once the name of every target that these knobs write was typed; `otherwise` takes what is wrong."""
    missing = load.unconfirmed(knobs)
    if not missing:
        then()
        return
    dialog = ConfirmWrite(missing[0], load.question)

    def answered(typed: str | None) -> None:
        if typed is None:
            otherwise(f"{missing[0]}: name does not match: nothing written")
            return
        if dialog.question is not None:
            load.confirm(dialog.question)
        when_typed(app, load, knobs, then, otherwise)

    app.push_screen(dialog, answered)
