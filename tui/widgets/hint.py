"""One line with the most useful keys, shown until it is dismissed for the first time."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.message import Message

from tui.widgets.line import TextLine


class HintLine(TextLine):
    """Keys of help, filter and palette; Esc or a click hides it for good."""

    DEFAULT_CSS = """
    HintLine { background: $boost; color: $foreground; }
    """

    class Dismissed(Message):
        """The line was clicked."""

    def __init__(self, key_text: Callable[[str], str]) -> None:
        super().__init__(classes="extra")
        self._key_text = key_text

    def on_click(self) -> None:
        """Hide it for good."""
        self.post_message(self.Dismissed())

    def show(self) -> None:
        """Show the keys in force."""
        pairs = ((self._key_text("view.help"), "help"), ("/", "filter"), ("^p", "all commands"))
        parts: list[str | tuple[str, str]] = [" "]
        for key, words in (*pairs, ("Esc", "hide this hint")):
            parts += [(key, "bold $accent"), f" {words}  "]
        self.put(Content.assemble(*parts))
