"""Editing the text of a filter."""

from __future__ import annotations

from textual import events

_LONGEST = 64


class FilterLine:
    """Owns the filter of one grid and whether it is being edited."""

    def __init__(self) -> None:
        self.text = ""
        self.editing = False

    def handle(self, event: events.Key) -> bool:
        """Take a key while editing; false for keys that are not the filter's."""
        if event.key in ("enter", "escape"):
            self.editing = False
            if event.key == "escape":
                self.text = ""
        elif event.key in ("backspace", "ctrl+h"):
            self.text = self.text[:-1]
        elif event.key == "ctrl+u":
            self.text = ""
        elif event.is_printable and event.character is not None:
            self.add(event.character)
        else:
            return False
        return True

    def add(self, text: str) -> None:
        """Append typed or pasted text: its first line, limited to the length of a name."""
        self.text = (self.text + "".join(text.splitlines()[:1]))[:_LONGEST]
