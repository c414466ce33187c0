"""What every app that shows our widgets starts from: their style sheet, the themes and the marks."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Generic

from textual.app import App, ReturnType
from textual.scrollbar import ScrollBar, ScrollBarRender

from tui.looks.theming import BASE_CSS, ansi_color, default_theme, register_themes, variable_defaults
from tui.text.glyphs import UNICODE, Glyphs, choose_glyphs


class PlainScrollBarRender(ScrollBarRender):
    """A scrollbar without the block characters that smooth its ends."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


class ThemedApp(App[ReturnType], Generic[ReturnType]):
    """An app with our themes registered and one chosen that suits the terminal."""

    CSS_PATH = BASE_CSS

    def __init__(self, *, glyphs: Glyphs | None = None, theme_folder: Path | None = None) -> None:
        super().__init__(ansi_color=ansi_color())
        self.glyphs = choose_glyphs("auto") if glyphs is None else glyphs
        ScrollBar.renderer = ScrollBarRender if self.glyphs is UNICODE else PlainScrollBarRender
        self.theme_notices = register_themes(self, theme_folder)
        """One line for each broken theme file of the user's."""
        self.theme = default_theme(self.console.color_system)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Give our variables to themes that lack them, Textual's own among them."""
        return variable_defaults(self.current_theme)
