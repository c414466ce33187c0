"""Textual's style sheets, without parsing or searching the same rules again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

_MOST_SOURCES = 512
"""Cached style sheets per theme: more than there are widgets and screens."""
_MOST_THEMES = 8

_Parsed = LRUCache[tuple[Any, ...], list[RuleSet]]


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The rules that end in one of some names, in the order of all rules."""

    rules: list[RuleSet]
    by_name: dict[str, list[RuleSet]]


class ThemeSheets(Stylesheet):
    """Textual's style sheets, with parsed rules cached by theme variables, and rules cached by the names of a node.

    Textual parses all of them again for the first show of a screen and after each change of theme, and goes through all
    rules for each node and each of its component classes, which makes keys feel slow.
    """

    _of_themes: ClassVar[LRUCache[Hashable, _Parsed]] = LRUCache(_MOST_THEMES)

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self.generation = 0
        """Counts how often rules were added or changed: nodes styled since then need no other pass."""
        self._candidates: _Candidates | None = None
        self._cached_candidates: dict[frozenset[str], _Candidates] = {}
        self._cached_from: dict[str, list[RuleSet]] = {}
        self._use_cache_of(self._variables)

    @property
    def rules(self) -> list[RuleSet]:
        """All rules; while a node is styled, those that may apply to it."""
        return super().rules if self._candidates is None else self._candidates.rules

    @property
    def rules_map(self) -> dict[str, list[RuleSet]]:
        """Rules by the names they end in: all; while a node is styled, those that may apply to it."""
        return super().rules_map if self._candidates is None else self._candidates.by_name

    def apply(
        self, node: DOMNode, *, animate: bool = False, cache: dict[tuple[Any, ...], RulesMap] | None = None
    ) -> None:
        """Style a node; it styles its component classes in turn."""
        outer, self._candidates = self._candidates, None
        try:
            self._candidates = self._candidates_of(frozenset(node._selector_names))
            super().apply(node, animate=animate, cache=cache)
        finally:
            self._candidates = outer

    def set_variables(self, variables: dict[str, str]) -> None:
        """Set the variables of a theme; rules parsed with them before are reused."""
        if variables == self._variables:
            return
        self._parse_cache = LRUCache(1)  # Textual clears it, and the cache of the previous theme must stay.
        super().set_variables(variables)
        self._use_cache_of(variables)
        self._require_parse = True

    def parse(self) -> None:
        """Parse all style sheets."""
        super().parse()
        self.generation += 1

    def reparse(self) -> None:
        """Parse new style sheets, if there are any."""
        if self._require_parse:
            self.parse()

    def _candidates_of(self, names: frozenset[str]) -> _Candidates:
        rules, by_name = self.rules, self.rules_map
        if by_name is not self._cached_from:
            self._cached_from, self._cached_candidates = by_name, {}
        found = self._cached_candidates.get(names)
        if found is None:
            kept = {name: by_name[name] for name in names & by_name.keys()}
            wanted = {id(rule) for ending in kept.values() for rule in ending}
            found = _Candidates([rule for rule in rules if id(rule) in wanted], kept)
            self._cached_candidates[names] = found
        return found

    def _use_cache_of(self, variables: dict[str, str]) -> None:
        key = frozenset(variables.items())
        if key not in self._of_themes:
            self._of_themes[key] = LRUCache(_MOST_SOURCES)
        self._parse_cache = self._of_themes[key]
