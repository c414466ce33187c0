"""A few lines of text that repaint only when they change."""

from __future__ import annotations

from textual.content import Content

from tui.widgets.direct_refresh import DirectRefresh


class TextLine(DirectRefresh):
    """Text of a fixed height; never parsed as markup, and a change causes no layout."""

    DEFAULT_CSS = """
    TextLine { height: 1; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    can_focus = False

    def __init__(self, content: Content | str = "", *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes, markup=False)
        self._content = content if isinstance(content, Content) else Content(content)

    @property
    def content(self) -> Content:
        """The current text."""
        return self._content

    def put(self, content: Content | str) -> None:
        """Replace the text."""
        new = content if isinstance(content, Content) else Content(content)
        if not new.is_same(self._content):
            self._content = new
            self.refresh()

    def render(self) -> Content:
        """Draw the text."""
        return self._content
