"""Style sheets that are parsed once for each theme, not for each screen that is opened or key that turns the theme."""

from __future__ import annotations

from textual.cache import LRUCache
from textual.css.stylesheet import Stylesheet

_MOST_SOURCES = 512
"""Style sheets kept for a theme: more than there are widgets and screens."""
_MOST_THEMES = 8


class ThemeSheets(Stylesheet):
    """Textual's style sheets, with what was parsed kept by the variables it was parsed with.

    Textual parses all of them again whenever a screen is first shown or shown after the theme has changed, which takes
    longer than a key may.
    """

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._of_themes: LRUCache[frozenset[tuple[str, str]], LRUCache[tuple[object, ...], list[object]]]
        self._of_themes = LRUCache(_MOST_THEMES)
        self._use_cache_of(self._variables)

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the variables of a theme; what was parsed with them before is used again."""
        if variables == self._variables:
            return
        self._parse_cache = LRUCache(1)  # Textual clears it, and the one of the theme before is to be kept.
        super().set_variables(variables)
        self._use_cache_of(variables)
        self._require_parse = True

    def reparse(self) -> None:
        """Parse what is new, if anything is."""
        if self._require_parse:
            self.parse()

    def _use_cache_of(self, variables: dict[str, str]) -> None:
        key = frozenset(variables.items())
        if key not in self._of_themes:
            self._of_themes[key] = LRUCache(_MOST_SOURCES)
        self._parse_cache = self._of_themes[key]  # type: ignore[assignment]
