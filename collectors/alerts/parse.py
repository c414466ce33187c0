"""The grammar of rules, for options and settings alike.

[NAME:] SUBJECT FIELD COMPARISON LIMIT [for TIME] [clear TIME] [on PATTERN]
[NAME:] imbalance [COMPARISON LIMIT] ...    [NAME:] hot [COMPARISON LIMIT] ...
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from collectors.alerts.rule import CLEAR_SHARE, DEFAULT_HOLD_S, AlertRule, AlertSign, RuleKind
from collectors.field import Field, Unit
from collectors.filtering.fields import FilterField, FilterFields, figures_of
from collectors.filtering.quantities import example_of, read_quantity
from collectors.registry import TABLES, fields_of, get_field
from engine.errors import UsageError
from engine.job.sizes import parse_duration
from engine.text import decimal_number, safe_text, short_text

LONGEST_NAME = 32
LONGEST_RULE = 300
MAX_TIME_S = 86_400.0

_NAME = re.compile(r"([A-Za-z0-9][\w.-]*)\s*:\s*(.*)", re.ASCII | re.DOTALL)
_COMPARISON = re.compile(r"(.*?)(>=|<=|=>|=<|==|!=|>|<|=)\s*(\S*)\s*(.*)", re.DOTALL)
_WORDS = ("for", "clear", "on")
_EXAMPLE = "write it like 'disks await_ms>20ms for 10s'"


class _BuiltIn(Struct, frozen=True):
    """A kind of rule that needs no subject and field."""

    limit: float
    """Limit of a rule that names none."""
    table: str
    field_id: str
    multiples_of: str = ""
    """What a limit is a multiple of; empty: limits have the unit of the field."""


_BUILT_IN: Mapping[str, _BuiltIn] = {
    RuleKind.IMBALANCE: _BuiltIn(1.5, "paths", "iops", multiples_of="an even part"),
    RuleKind.HOT: _BuiltIn(80.0, "disks", "heat"),
}
"""Built-in kinds by the word of a rule."""


class _Given(Struct, frozen=True):
    """A rule as written, in parts."""

    name: str
    comparison: AlertSign | None
    limit: str
    options: Mapping[str, str]

    def rule(self, kind: RuleKind, field: Field, unit: Unit | None, comparison: AlertSign, limit: float) -> AlertRule:
        hold_s = _time(self.options["for"], "for") if "for" in self.options else DEFAULT_HOLD_S
        clear_s = _time(self.options["clear"], "clear") if "clear" in self.options else hold_s * CLEAR_SHARE
        scope = self.options.get("on", "")
        if "on" in self.options and (not scope or safe_text(scope) != scope):
            raise UsageError("'on' needs a pattern of names, such as nvme* or mpatha")
        name = self.name or (field.id if kind is RuleKind.FIELD else kind.value)
        return AlertRule(name, kind, field.table, field.id, unit, comparison, limit, hold_s, clear_s, scope)


def parse_rule(text: str, name: str = "") -> AlertRule:
    """Read a rule; one without a name is named after what it compares.

    Raises:
        UsageError: it is none; the text says what is wrong and what is known.
    """
    if len(text) > LONGEST_RULE:
        raise UsageError(f"a rule has at most {LONGEST_RULE} characters: {_shown(text)}")
    named = _NAME.fullmatch(text.strip())
    given, body = (named[1], named[2]) if named is not None else (name, text.strip())
    if named is not None and name and named[1] != name:
        raise UsageError(f"named {_shown(named[1])} in the rule, too: leave that out")
    if len(given) > LONGEST_NAME or safe_text(given) != given:
        raise UsageError(f"{_shown(given)}: a name has 1 to {LONGEST_NAME} printable characters")
    condition, options = _split_options(body)
    head, comparison, limit = _split_comparison(condition)
    words = head.split()
    parts = _Given(given, comparison, limit, options)
    if words and words[0] in _BUILT_IN:
        return _built_in(RuleKind(words[0]), words[1:], parts)
    return _of_field(words, parts)


def with_names(rules: Iterable[AlertRule]) -> tuple[AlertRule, ...]:
    """Check that names are unique.

    Raises:
        UsageError: two rules have one name.
    """
    found: dict[str, AlertRule] = {}
    for rule in rules:
        if rule.name in found:
            raise UsageError(f"two rules are named {rule.name!r}: name one of them, as in '{rule.name}-2: ...'")
        found[rule.name] = rule
    return tuple(found.values())


def _split_options(body: str) -> tuple[str, dict[str, str]]:
    """Separate the words `for`, `clear` and `on` with what follows each."""
    parts = re.split(rf"(?:^|\s+)({'|'.join(_WORDS)})\s+", body)
    options: dict[str, str] = {}
    for word, value in zip(parts[1::2], parts[2::2], strict=True):
        if word in options:
            raise UsageError(f"{word!r} comes twice in {_shown(body)}")
        options[word] = value.strip()
    return parts[0].strip(), options


def _split_comparison(condition: str) -> tuple[str, AlertSign | None, str]:
    found = _COMPARISON.fullmatch(condition)
    if found is None:
        return condition, None, ""
    head, sign, limit, rest = found.groups()
    if sign not in set(AlertSign):
        raise UsageError(f"{sign!r} in {_shown(condition)}: compare with > >= < or <=")
    rest = rest.strip()
    joined = f"{limit}{rest}" if re.fullmatch(r"[^\d\s]{1,5}", rest) else f"{limit} {rest}".strip()
    return head.strip(), AlertSign(sign), joined


def _of_field(words: list[str], given: _Given) -> AlertRule:
    if not words or words[0] not in TABLES:
        first = words[0] if words else ""
        known = (*TABLES, *map(str, _BUILT_IN))
        raise UsageError(f"no subject {_shown(first)}{_close(first, known)}; there are {', '.join(known)}")
    if len(words) != 2 or given.comparison is None:
        raise UsageError(f"{_shown(' '.join(words))} needs one field and a limit: {_EXAMPLE}")
    table, wanted = words
    field = FilterFields(figures_of(fields_of(table))).find(wanted)
    if isinstance(field, str):
        ids = [one.id for one in fields_of(table)]
        raise UsageError(f"{table}: {field.partition(';')[0]}{_close(wanted, ids)}; known: {', '.join(ids)}")
    figure = get_field(table, field.id)
    return given.rule(RuleKind.FIELD, figure, figure.unit, given.comparison, _limit(given.limit, field))


def _built_in(kind: RuleKind, rest: list[str], given: _Given) -> AlertRule:
    what = _BUILT_IN[kind]
    example = f"write it like {kind.value}>{what.limit:g}"
    if rest:
        raise UsageError(f"{_shown(' '.join(rest))} after {kind.value!r}: {example}")
    if given.comparison in {AlertSign.BELOW, AlertSign.AT_MOST}:
        raise UsageError(f"{kind.value} is reported above a limit only: {example}")
    field = get_field(what.table, what.field_id)
    unit = None if what.multiples_of else field.unit
    value = what.limit
    if given.comparison is not None:
        value = _times(given.limit, kind) if unit is None else _limit(given.limit, FilterField(field.id, "", unit))
    return given.rule(kind, field, unit, given.comparison or AlertSign.ABOVE, value)


def _limit(text: str, field: FilterField) -> float:
    assert field.unit is not None, "figures have a unit"
    quantity = read_quantity(text, field.unit)
    if quantity is None:
        raise UsageError(f"{_shown(text)} is no limit of {field.id}: write {example_of(field.unit)}")
    return quantity.value


def _times(text: str, kind: RuleKind) -> float:
    value = decimal_number(text.removesuffix("x"))
    if value is None or not 1 < value <= 1000:
        what = _BUILT_IN[kind]
        raise UsageError(
            f"{_shown(text)} is no limit of {kind}: write {what.limit:g}x, multiples of {what.multiples_of} above 1"
        )
    return value


def _time(text: str, word: str) -> float:
    seconds = parse_duration(text)
    if seconds > MAX_TIME_S:
        raise UsageError(f"{word} {_shown(text)}: at most 1d")
    return seconds


def _close(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _shown(text: str) -> str:
    return f"'{safe_text(short_text(text, 80))}'"
