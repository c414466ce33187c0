"""Numbers on the command line: ASCII digits only, as in job files."""

from __future__ import annotations

import math

import click

from engine.text import decimal_number, safe_text, short_text, signed_number


class Whole(click.ParamType):  # type: ignore[type-arg] # generic in some versions only
    """A whole number, at least `least` if that is given."""

    name = "integer"

    def __init__(self, least: int | None = None) -> None:
        self._least = least

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a given value; a default passes unchanged."""
        number = value if isinstance(value, int) else signed_number(str(value))
        if number is None:
            self.fail(f"{_shown(value)} is not a whole number", param, ctx)
        if self._least is not None and number < self._least:
            self.fail(f"{number} is below {self._least}", param, ctx)
        return number


class Decimal(click.ParamType):  # type: ignore[type-arg] # generic in some versions only
    """A finite number."""

    name = "float"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a given value; a default passes unchanged."""
        number = float(value) if isinstance(value, int | float) else decimal_number(str(value))
        if number is None or not math.isfinite(number):
            self.fail(f"{_shown(value)} is not a number", param, ctx)
        return number


WHOLE = Whole()
FROM_ONE = Whole(least=1)
DECIMAL = Decimal()


def _shown(value: object) -> str:
    return f"'{safe_text(short_text(str(value), 80))}'"
