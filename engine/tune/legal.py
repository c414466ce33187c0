"""Values that a tunable takes on one target: words, a range of whole numbers, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.errors import LunscopeError, UsageError
from engine.job.sizes import parse_size
from engine.text import safe_text, short_text, signed_number


@dataclass(frozen=True, slots=True)
class Legal:
    """Words and range; None where the kernel gives no bound."""

    words: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    check: Callable[[str], str] | None = field(default=None, compare=False)
    """Says why a value that is neither is not legal; empty if it is."""

    @property
    def text(self) -> str:
        """Return it in words, as `4..256`, `none|mq-deadline`, `max|1..`; empty where nothing is known."""
        numbers = self.least is not None or self.most is not None
        bounds = ["" if bound is None else str(bound) for bound in (self.least, self.most)]
        return "|".join([*self.words, *([f"{bounds[0]}..{bounds[1]}"] if numbers else [])])

    def refusal(self, value: str) -> str:
        """Say why a value is not legal; empty if it is, or if nothing is known."""
        if value in self.words or not self.text:
            return ""
        number = signed_number(value)
        if number is not None and self._within(number):
            return ""
        if self.check is not None:
            return self.check(value)
        return f"{safe_text(short_text(value, 80))} is not legal: {self.text}"

    def _within(self, number: int) -> bool:
        if self.least is None and self.most is None:
            return False
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)


def read_value(text: str, unit: str) -> str:
    """Read what a person writes: words as they are, numbers without leading zeros, amounts of bytes as sizes (`1m`).

    Raises:
        UsageError: it is no value at all.
    """
    value = text.strip()
    if not value or not value.isprintable() or not value.isascii():
        raise UsageError(f"'{safe_text(short_text(text, 80))}' is no value: write a number or a word")
    number = signed_number(value)
    if number is not None:
        return str(number)
    if unit in {"B", "B/s"}:
        try:
            return str(parse_size(value))
        except LunscopeError:
            return value
    return value
