"""A few lines of text that repaint only when they change."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget


class TextLine(Widget):
    """Text of a fixed height; it is data and never read as markup, and a change never lays the screen out anew."""

    DEFAULT_CSS = """
    TextLine { height: 1; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    can_focus = False

    def __init__(self, content: Content | str = "", *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes, markup=False)
        self._content = content if isinstance(content, Content) else Content(content)

    @property
    def content(self) -> Content:
        """What is shown now."""
        return self._content

    def put(self, content: Content | str) -> None:
        """Show this from now on."""
        new = content if isinstance(content, Content) else Content(content)
        if not new.is_same(self._content):
            self._content = new
            self.refresh()

    def render(self) -> Content:
        """Draw the text as it was put."""
        return self._content
