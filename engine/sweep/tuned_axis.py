"""Tunables of the kernel as axes of a sweep: knobs that the engine does not turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.job.knobs.kinds import KnobKind
from engine.sweep.outer_knob import OuterKnob
from engine.tune.legal import read_value
from engine.tune.registry import find_tunable
from engine.tune.tunable import Tunable

PREFIX = "tune."
"""Prefix of the names of such axes."""
_LAST = 1000
"""Position in lists: after all knobs."""


@dataclass(frozen=True, slots=True)
class TunedValue(KnobKind):
    """A value of a tunable; which ones are legal is known of a device only."""

    unit: str

    def read(self, value: Any) -> str:  # noqa: ANN401 (it comes from a file)
        """Read a number or a word."""
        return self.parse(str(value))

    def parse(self, text: str) -> str:
        """Read what was typed, as `lunscope tune set` does."""
        return read_value(text, self.unit)

    def toml(self, value: str) -> str:
        """Write it as a string."""
        return f'"{value}"'

    def plain(self, value: str) -> str:
        """Return it as it is."""
        return value


@dataclass(frozen=True, slots=True)
class TuneKnob(OuterKnob):
    """A tunable as a knob."""

    tunable: Tunable = field(kw_only=True)


def tune_knob(key: str) -> TuneKnob:
    """Make the knob of a name such as `tune.nr_requests`.

    Raises:
        UsageError: there is no such tunable.
    """
    tunable = find_tunable(key.removeprefix(PREFIX))
    name = f"{PREFIX}{tunable.id}"
    return TuneKnob(name, _LAST, tunable.id, TunedValue(tunable.unit), tunable.help, id=name, tunable=tunable)
