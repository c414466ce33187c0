"""A rule: which figure must not pass which limit, and for how long."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from collectors.field import Unit
from engine.job.sizes import format_duration
from engine.text import three_digits, with_prefix

DEFAULT_HOLD_S = 10.0
"""How long a limit must be passed if the rule does not say."""
CLEAR_SHARE = 0.5
"""Time until an alert is cleared, as a share of the time until it is raised, if the rule does not say."""
DEAD_BAND = 0.1
"""Share of the limit by which a figure must be back before that time counts: else noise at the limit would flap."""


class AlertSign(StrEnum):
    """What a figure does to be reported."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="


class RuleKind(StrEnum):
    """What a rule compares with its limit."""

    FIELD = "field"
    IMBALANCE = "imbalance"
    """Part of the busiest path of a LUN, in multiples of an even part."""
    HOT = "hot"
    """Hotness of a disk, with its reason."""


class AlertRule(Struct, frozen=True):
    """One rule; `limit` is in the unit of the field."""

    name: str
    kind: RuleKind
    table: str
    """Frame table of its objects."""
    field_id: str
    unit: Unit | None
    """None for multiples of what the kind compares with."""
    comparison: AlertSign
    limit: float
    hold_s: float = DEFAULT_HOLD_S
    """Time for which the limit must be passed."""
    clear_s: float = DEFAULT_HOLD_S * CLEAR_SHARE
    """Time for which it must not be passed until the alert is cleared."""
    scope: str = ""
    """Pattern of the names, with * and ?; empty for all."""

    @property
    def upward(self) -> bool:
        """Whether larger values are worse."""
        return self.comparison in {AlertSign.ABOVE, AlertSign.AT_LEAST}

    @property
    def back(self) -> float:
        """Value that a figure must reach before a raised alert may be cleared."""
        band = abs(self.limit) * DEAD_BAND
        return self.limit - band if self.upward else self.limit + band

    @property
    def condition(self) -> str:
        """The rule without its name, as `parse_rule` reads it."""
        what = f"{self.table} {self.field_id}" if self.kind is RuleKind.FIELD else self.kind.value
        limit = f"{self.comparison}{limit_text(self.limit, self.unit)}"
        scope = f" on {self.scope}" if self.scope else ""
        return f"{what}{limit} for {format_duration(self.hold_s)} clear {format_duration(self.clear_s)}{scope}"

    def amount(self, value: float) -> str:
        """Write a figure of this rule."""
        return value_text(value, self.unit)


_SUFFIXES = {Unit.MILLISECONDS: "ms", Unit.PERCENT: "%", None: "x"}
_STEPS = {Unit.BYTES: 1024.0, Unit.BYTES_PER_SECOND: 1024.0, Unit.COUNT: 1000.0, Unit.PER_SECOND: 1000.0}


def value_text(value: float, unit: Unit | None) -> str:
    """Write a figure with its unit for reading: `35.2 ms`, `1.5 MB/s`."""
    digits, suffix = three_digits(value), _SUFFIXES.get(unit, "")
    if unit in _STEPS:
        digits, prefix = with_prefix(value, _STEPS[unit])
        suffix = prefix + {Unit.BYTES: "B", Unit.BYTES_PER_SECOND: "B/s", Unit.PER_SECOND: "/s"}.get(unit, "")
    return digits + (suffix if unit is None else f" {suffix}" if suffix else "")


def limit_text(value: float, unit: Unit | None) -> str:
    """Write a limit so that the grammar of rules reads the same."""
    whole = str(int(value)) if value == int(value) else repr(value)
    return whole + (_SUFFIXES.get(unit, "") if unit not in _STEPS else "")
