"""Textual's style sheets, without parsing or searching the same rules again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from msgspec import Struct
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RenderStyles, RulesMap
from textual.css.stylesheet import Stylesheet
from textual.css.tokenizer import Token
from textual.dom import DOMNode

if TYPE_CHECKING:
    from textual.widget import Widget

_MOST_SOURCES = 512
"""Cached style sheets per theme: more than there are widgets and screens."""
_MOST_THEMES = 8
_MOST_CANDIDATES = 512
"""A theme in use has some 300."""
_MOST_STYLES = 1024
"""Cached styles of widgets, and of component classes: all screens of one size have some 350 of each."""
_MOST_NODE_STATES = 1024
"""Shared parts of the keys of cached styles."""

_FLAGS = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
"""Attributes of a node that Textual sets with its styles."""

_Parsed = LRUCache[tuple[Any, ...], list[RuleSet]]


class _Styled(Struct, frozen=True):
    """What styling a widget sets."""

    rules: RulesMap
    flags: tuple[bool, ...]
    """Flags of what its styles depend on, as in _FLAGS."""


class _Candidates(Struct, frozen=True, eq=False):
    """The rules that end in one of some names, in the order of all rules."""

    rules: list[RuleSet]
    by_name: dict[str, list[RuleSet]]
    pseudo_classes: frozenset[str]
    """Pseudo-classes on which their selectors depend, of the node or of one above it."""


@lru_cache(_MOST_NODE_STATES)
def _shared(part: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Return the same object for equal parts: keys of one cached style each would take several KB otherwise."""
    return part


class _PathState:
    """What selectors may depend on in the nodes from the app down to a widget."""

    def __init__(self, widget: DOMNode) -> None:
        self._nodes = [(node, _shared((type(node), node.id, node.classes))) for node in widget.css_path_nodes]
        self._known: dict[frozenset[str], Hashable] = {}

    def of(self, pseudo_classes: frozenset[str]) -> Hashable:
        """Return the state, as far as these pseudo classes are part of it."""
        found = self._known.get(pseudo_classes)
        if found is None:
            found = tuple(
                _shared((fixed, tuple([name for name in pseudo_classes if _is_in(node, name)])))
                for node, fixed in self._nodes
            )
            self._known[pseudo_classes] = found
        return found


def _is_in(node: DOMNode, pseudo_class: str) -> bool:
    """Whether a node is in a state; unlike Textual's method without a set and a generator."""
    tests = cast("dict[str, Callable[[DOMNode], bool]]", node._PSEUDO_CLASSES)
    test = tests.get(pseudo_class)
    return test is not None and test(node)


@cache
def _selector_names(component: str) -> frozenset[str]:
    """Return the names that selectors know the virtual node of a component class by."""
    return frozenset(DOMNode(classes=component)._selector_names)


class _ComponentStyles(dict[str, RenderStyles]):
    """Styles of the component classes of a widget, made whenever they are asked for.

    That is once: widgets keep what they make of them. It has no items, as Textual makes a node of 6 KB for each, and a
    chart has 16 of them.
    """

    __slots__ = ("_sheets", "_widget", "given")

    def __init__(self, sheets: ThemeSheets, widget: DOMNode) -> None:
        super().__init__()
        self._sheets, self._widget = sheets, widget
        self.given: dict[str, RulesMap] = {}
        """What the rules gave each component class that was asked for."""

    def __contains__(self, component: object) -> bool:
        return component in self._widget._get_component_classes()

    def __getitem__(self, component: str) -> RenderStyles:
        if component not in self:
            raise KeyError(component)
        styles, self.given[component] = self._sheets.style_component(self._widget, component)
        return styles


class ThemeSheets(Stylesheet):
    """Textual's style sheets, with parsed rules cached by theme variables, and rules cached by the names of a node.

    What rules give a widget or a component class is kept for the same state of the nodes from the app down to it.

    Textual parses all of them again for the first show of a screen and after each change of theme, and goes through all
    rules for each node and each of its component classes, which makes keys feel slow.
    """

    _of_themes: ClassVar[LRUCache[Hashable, _Parsed]] = LRUCache(_MOST_THEMES)
    _shared_candidates: ClassVar[LRUCache[Hashable, _Candidates]] = LRUCache(_MOST_CANDIDATES)
    """Candidates by the names of a node and the identity of the rules, which they keep alive."""
    _styled_widgets: ClassVar[LRUCache[tuple[_Candidates, Hashable], _Styled]] = LRUCache(_MOST_STYLES)
    """What the rules give a widget, by the state of the nodes from the app down."""
    _styled_components: ClassVar[LRUCache[tuple[_Candidates, Hashable], RulesMap]] = LRUCache(_MOST_STYLES)
    """The same for a component class."""
    _tokens_of_themes: ClassVar[LRUCache[Hashable, dict[str, list[Token]]]] = LRUCache(_MOST_THEMES)

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self.generation = 0
        """Counts how often rules were added or changed: nodes styled since then need no other pass."""
        self._candidates: _Candidates | None = None
        self._cached_candidates: dict[frozenset[str], _Candidates] = {}
        self._cached_from: dict[str, list[RuleSet]] = {}
        self._position_of: dict[int, int] = {}
        """Position among all rules, by identity."""
        self._theme_key: Hashable = None
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
        """Style a node. Textual's cache, which is of one pass, is unused."""
        del cache
        outer, self._candidates = self._candidates, None
        try:
            self._candidates = self._candidates_of(frozenset(node._selector_names))
            self._apply_widget(node, self._candidates, animate=animate)
        finally:
            self._candidates = outer

    @classmethod
    def replace_rules(cls, node: DOMNode, rules: RulesMap, animate: bool = False) -> None:
        """Give a node its rules; Textual sets each of them even if all are what they were."""
        if node.styles.base._rules != rules:
            super().replace_rules(node, rules, animate)
        elif not animate:
            node.notify_style_update()

    def _apply_widget(self, node: DOMNode, candidates: _Candidates, *, animate: bool) -> None:
        """Style a widget with what another got in the same state."""
        path = _PathState(node)
        key = candidates, path.of(candidates.pseudo_classes)
        known = self._styled_widgets.get(key)
        if known is None:
            found: dict[tuple[Any, ...], RulesMap] = {}
            super().apply(node, animate=animate, cache=found)
            for rules in found.values():
                self._styled_widgets[key] = _Styled(rules, tuple(getattr(node, name) for name in _FLAGS))
            return
        for name, flag in zip(_FLAGS, known.flags, strict=True):
            setattr(node, name, flag)
        self.replace_rules(node, known.rules, animate=animate)
        self._process_component_classes(node)

    def _process_component_classes(self, node: DOMNode) -> None:
        """Draw a widget again if the styles of its component classes are not what it was given."""
        if not node._get_component_classes():
            return
        styles = node._component_styles
        if not isinstance(styles, _ComponentStyles):
            node._component_styles = _ComponentStyles(self, node)
        elif styles.given and self._are_outdated(node, styles.given):
            styles.given.clear()
            cast("Widget", node).refresh()

    def _are_outdated(self, node: DOMNode, given: dict[str, RulesMap]) -> bool:
        outer, self._candidates = self._candidates, None
        path = _PathState(node)
        try:
            for component, rules in given.items():
                candidates = self._candidates_of(_selector_names(component))
                known = self._styled_components.get((candidates, path.of(candidates.pseudo_classes)))
                if rules is not known and rules != (known or self.style_component(node, component)[1]):
                    return True
            return False
        finally:
            self._candidates = outer

    def style_component(self, node: DOMNode, component: str) -> tuple[RenderStyles, RulesMap]:
        """Style a component class of a widget; returns also the rules, which widgets in the same state share."""
        virtual = DOMNode(classes=component)
        virtual._attach(node)
        outer, self._candidates = self._candidates, None
        try:
            self._candidates = candidates = self._candidates_of(_selector_names(component))
            key = candidates, _PathState(node).of(candidates.pseudo_classes)
            known = self._styled_components.get(key)
            if known is None:
                super().apply(virtual)
                known = self._styled_components[key] = virtual.styles.base.get_rules()
            else:
                virtual.styles.base.merge_rules(known)
        finally:
            self._candidates = outer
        return virtual.styles, known

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
        by_name = self.rules_map
        if by_name is not self._cached_from:
            self._cached_from, self._cached_candidates = by_name, {}
            self._position_of = {id(rule): position for position, rule in enumerate(self.rules)}
        found = self._cached_candidates.get(names)
        if found is None:
            kept = {name: by_name[name] for name in names & by_name.keys()}
            wanted = {self._position_of[id(rule)]: rule for ending in kept.values() for rule in ending}
            found = self._shared(names, [wanted[position] for position in sorted(wanted)], kept)
            self._cached_candidates[names] = found
        return found

    @classmethod
    def _shared(cls, names: frozenset[str], rules: list[RuleSet], by_name: dict[str, list[RuleSet]]) -> _Candidates:
        """Return candidates that all sheets with these rules share."""
        key = names, tuple(map(id, rules))
        found = cls._shared_candidates.get(key)
        if found is None:
            selectors = (selector for rule in rules for each in rule.selector_set for selector in each.selectors)
            pseudo_classes = frozenset(name for selector in selectors for name in selector.pseudo_classes)
            found = _Candidates(rules, by_name, pseudo_classes)
            cls._shared_candidates[key] = found
        return found

    @property
    def _variable_tokens(self) -> dict[str, list[Token]]:
        """Tokens of the values of a theme's variables, some hundred."""
        found = self._tokens_of_themes.get(self._theme_key)
        if found is None:
            found = self._tokens_of_themes[self._theme_key] = super()._variable_tokens
        return found

    def _use_cache_of(self, variables: dict[str, str]) -> None:
        key = self._theme_key = frozenset(variables.items())
        if key not in self._of_themes:
            self._of_themes[key] = LRUCache(_MOST_SOURCES)
        self._parse_cache = self._of_themes[key]
