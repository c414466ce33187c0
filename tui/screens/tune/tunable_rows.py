"""Tunables of a scope, a row each, and the values that can be chosen."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from engine.text import safe_text, signed_number, whole_number
from engine.tune.present_values import AlikeValues
from engine.tune.tunable import Tunable

MOST_LISTED_VALUES = 9
"""Longer ranges are typed."""
MOST_SHOWN = 3


class TunableRow(Struct, frozen=True):
    """One tunable on all targets of a scope."""

    tunable: Tunable
    values: tuple[AlikeValues, ...]

    @property
    def value(self) -> str:
        """The value, or each with the number of targets that have it; safe to print."""
        if len(self.values) == 1:
            return safe_text(self.values[0].first.value)
        counted: dict[str, int] = {}
        for alike in self.values:
            counted[alike.first.value] = counted.get(alike.first.value, 0) + len(alike.names)
        if len(counted) == 1:
            return safe_text(next(iter(counted)))
        parts = [f"{safe_text(value)} x{count}" for value, count in list(counted.items())[:MOST_SHOWN]]
        return ", ".join([*parts, *([".."] if len(counted) > MOST_SHOWN else [])])

    @property
    def default(self) -> str:
        """The default where all targets have the same."""
        return safe_text(_common(alike.first.default for alike in self.values))

    @property
    def legal(self) -> str:
        """Legal values where they are the same on all targets."""
        return safe_text(_common(alike.first.legal for alike in self.values))

    @property
    def refusal(self) -> str:
        """Why it cannot be changed on one of the targets; empty if it can on all."""
        refused = next((alike for alike in self.values if alike.first.refusal), None)
        if refused is None:
            return ""
        where = "" if self.targets == 1 else f"{refused.names[0]}: "
        return safe_text(f"{where}{refused.first.refusal}")

    @property
    def targets(self) -> int:
        """Number of targets that have it."""
        return sum(len(alike.names) for alike in self.values)

    @property
    def present(self) -> str:
        """Value of the first target, as it is written."""
        return self.values[0].first.value

    @property
    def is_changed(self) -> bool:
        """Whether a target has another value than the default."""
        return any(alike.first.default not in {"", alike.first.value} for alike in self.values)

    @property
    def choices(self) -> tuple[str, ...]:
        """All legal values where they are few; empty where a value is typed."""
        parts = self.legal.split("|") if self.legal else []
        found: list[str] = []
        for part in parts:
            least, dots, most = part.partition("..")
            if not dots:
                found.append(part)
                continue
            low, high = signed_number(least), signed_number(most)
            if low is None or high is None or high - low >= MOST_LISTED_VALUES:
                return ()
            found += [str(number) for number in range(low, high + 1)]
        return tuple(dict.fromkeys(found))


def rows_of(values: Iterable[AlikeValues]) -> tuple[TunableRow, ...]:
    """Make a row for each tunable, in the order of the registry."""
    found: dict[Tunable, list[AlikeValues]] = {}
    for alike in values:
        found.setdefault(alike.first.tunable, []).append(alike)
    return tuple(TunableRow(tunable, tuple(group)) for tunable, group in found.items())


def stepped(text: str, legal: str, step: int) -> str:
    """Step a value that is typed: by one, or to half or double for a step of more; within its range.

    Words, such as `max`, stay as they are.
    """
    number = whole_number(text.strip())
    if number is None:
        return text
    new = number + step if abs(step) == 1 else number * 2 if step > 0 else number // 2
    least, most = _bounds(legal)
    if least is not None:
        new = max(new, least)
    if most is not None:
        new = min(new, most)
    return str(max(new, 0))


def _bounds(legal: str) -> tuple[int | None, int | None]:
    span = next((part for part in legal.split("|") if ".." in part), "")
    least, _, most = span.partition("..")
    return signed_number(least), signed_number(most)


def _common(texts: Iterable[str]) -> str:
    found = set(texts)
    return found.pop() if len(found) == 1 else ""
