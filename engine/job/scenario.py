"""A load with knob turns at set times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from engine.errors import RefusedError, UsageError
from engine.job.sizes import format_duration
from engine.job.spec import JobSpec, Knobs, Permissions
from engine.job.validate import validate
from engine.text import safe_text

MAX_TURNS = 10_000


@dataclass(frozen=True, slots=True)
class Turn:
    """Knobs turned together at one time of the run."""

    at_s: float
    changes: tuple[tuple[str, Any], ...]
    """Fields of Knobs and their new values."""

    def turned(self, knobs: Knobs) -> Knobs:
        """Knobs after this turn."""
        return replace(knobs, **dict(self.changes))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A job, and the turns of its knobs in the order of time; without turns it is the job alone."""

    job: JobSpec
    turns: tuple[Turn, ...] = ()

    @property
    def last_turn_s(self) -> float:
        """When the last knob is turned; 0 if none is."""
        return self.turns[-1].at_s if self.turns else 0.0

    def states(self) -> Iterator[tuple[float, Knobs]]:
        """Yield the knobs after each turn with the time of it."""
        knobs = self.job.knobs
        for turn in self.turns:
            knobs = turn.turned(knobs)
            yield turn.at_s, knobs


def turn_between(at_s: float, before: Knobs, after: Knobs) -> Turn:
    """Make the turn from one set of knobs to another."""
    names = (field.name for field in fields(Knobs))
    return Turn(
        at_s, tuple((name, getattr(after, name)) for name in names if getattr(after, name) != getattr(before, name))
    )


def validate_scenario(scenario: Scenario) -> None:
    """Check the job with the knobs of every turn, without touching its targets.

    Raises:
        UsageError: a turn comes before the one above it or after the end, or makes a job that cannot be meant.
    """
    if len(scenario.turns) > MAX_TURNS:
        raise UsageError(f"{len(scenario.turns)} turns: a scenario has at most {MAX_TURNS}")
    validate(scenario.job)
    before_s, runtime_s = 0.0, scenario.job.runtime_s
    for at_s, knobs in scenario.states():
        if at_s < before_s:
            raise UsageError(f"the turn at {format_duration(at_s)} comes after one at {format_duration(before_s)}")
        if runtime_s is not None and at_s >= runtime_s:
            over = f"the runtime of {format_duration(runtime_s)} is over then: give a longer one"
            raise UsageError(f"the turn at {format_duration(at_s)}: {over}")
        try:
            validate(replace(scenario.job, knobs=knobs))
        except UsageError as error:
            raise UsageError(f"the turn at {format_duration(at_s)}: {error}") from None
        before_s = at_s


def require_permission(scenarios: Sequence[Scenario], permissions: Permissions) -> None:
    """Make sure before the first start that nothing later is refused for want of permission to write.

    Raises:
        RefusedError: a turn, or a scenario after the first, writes to a path that may not be written.
    """
    for number, scenario in enumerate(scenarios):
        start = [] if number == 0 else [(0.0, scenario.job.knobs)]
        for at_s, knobs in (*start, *scenario.states()):
            for path in sorted(_written(scenario.job, knobs) - permissions.allow_write):
                shown, when = safe_text(path), f" from {format_duration(at_s)} on" if at_s else ""
                raise RefusedError(
                    f"{shown}: {safe_text(scenario.job.name)} writes to it{when}: allow it with --allow-write {shown}"
                )


def _written(job: JobSpec, knobs: Knobs) -> frozenset[str]:
    targets = job.targets[: knobs.stripe_width] if knobs.read_pct < 100 else ()
    return frozenset(path for target in targets for path in target.nodes)
