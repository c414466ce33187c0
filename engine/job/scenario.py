"""A load with knob turns at set times, and its text form.

Scenario files: a job, and when which knob is turned to what.

schema = "lunscope.scenario/1"

[job]                  # the keys of a job file
target = ["/dev/sdb"]
qd = 8
runtime = "30s"

[[turn]]               # at a time of the run: knobs by the same keys
at = "10s"
qd = 16

[[turn]]
at = "20s"
bs = "8k"
rate = "unlimited"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from msgspec import Struct

from engine.errors import RefusedError, UsageError
from engine.job.file import JobSource, dump_job, job_of, parse_toml, read_values
from engine.job.formats.text_file import quoted as shown_value
from engine.job.knobs import KNOBS, KNOBS_BY_KEY, Knob
from engine.job.sizes import format_duration, parse_duration
from engine.job.spec import Backend, JobSpec, Knobs, Permissions
from engine.job.toml_values import WrongTypeError, quoted
from engine.job.validate import validate
from engine.replacing import replace
from engine.text import safe_text

MAX_TURNS = 10_000


class Turn(Struct, frozen=True):
    """Knobs turned together at one time of the run."""

    at_s: float
    changes: tuple[tuple[str, Any], ...]
    """Fields of Knobs and their new values."""

    def turned(self, knobs: Knobs) -> Knobs:
        """Knobs after this turn."""
        return replace(knobs, **dict(self.changes))


class Scenario(Struct, frozen=True):
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


def unseen_turns_text(turns: Sequence[Turn], ended_s: float) -> str:
    """Say of a load which ended by its bytes that it did not live to see these turns."""
    ended, first = format_duration(round(ended_s, 1)), format_duration(turns[0].at_s)
    return f"the load ended after {ended}, before {len(turns)} of its turns: the first was due after {first}"


def validate_scenario(scenario: Scenario) -> None:
    """Check the job with the knobs of every turn, without touching its targets.

    Raises:
        UsageError: a turn comes before the one above it or after the end, or makes a job that cannot be meant.
    """
    if len(scenario.turns) > MAX_TURNS:
        raise UsageError(f"{len(scenario.turns)} turns: a scenario has at most {MAX_TURNS}")
    validate(scenario.job)
    if scenario.turns and scenario.job.until_steady:
        raise UsageError("--until-steady: a steady state needs knobs that stay: leave out the turns, or this option")
    before_s, runtime_s = 0.0, scenario.job.runtime_s
    for at_s, knobs in scenario.states():
        if at_s < before_s:
            raise UsageError(f"the turn at {format_duration(at_s)} comes after one at {format_duration(before_s)}")
        if runtime_s is not None and at_s >= runtime_s:
            over = f"the runtime of {format_duration(runtime_s)} is over then: give a longer one"
            raise UsageError(f"the turn at {format_duration(at_s)}: {over}")
        try:
            validate(replace(scenario.job, knobs=knobs))
            _require_mode(scenario.job, knobs)
        except UsageError as error:
            raise UsageError(f"the turn at {format_duration(at_s)}: {error}") from None
        before_s = at_s


def _require_mode(job: JobSpec, knobs: Knobs) -> None:
    if job.backend is Backend.AIO and knobs.mode.is_direct != job.knobs.mode.is_direct:
        raise UsageError(
            "--mode: the aio engine turns direct I/O neither on nor off: it needs --engine uring or threads"
        )


def validate_together(phase: Sequence[Scenario]) -> None:
    """Check jobs that run at the same time, without touching their targets.

    Raises:
        UsageError: one of them cannot be meant; with its name, where there are several.
    """
    for scenario in phase:
        try:
            validate_scenario(scenario)
        except UsageError as error:
            if len(phase) == 1:
                raise
            raise UsageError(f"[{safe_text(scenario.job.name)}] {error}") from None


def require_permission(phases: Sequence[Sequence[Scenario]], permissions: Permissions) -> None:
    """Make sure before the first start that nothing later is refused for want of permission to write.

    Raises:
        RefusedError: a turn, or a scenario after those that begin first, writes to a path that may not be written.
    """
    for number, scenario in ((number, each) for number, phase in enumerate(phases) for each in phase):
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


SCHEMA = "lunscope.scenario/1"
_TURN = re.compile(r"\s*\[\[\s*turn\s*\]\]")
_TABLES = ("schema", "job", "turn")


def parse_scenario(text: str, path: str = "scenario") -> Scenario:
    """Make a scenario of the text of a file; `path` names it in errors.

    Raises:
        UsageError: it is no scenario, a turn or a key cannot be meant, or turns are out of order.
    """
    document = parse_toml(text, path, "scenario")
    if document.get("schema") != SCHEMA:
        raise UsageError(f'{path}: not a scenario: it does not say schema = "{SCHEMA}"')
    for key in document:
        if key not in _TABLES:
            raise JobSource(path, text).error(key, "unknown key: a scenario has [job] and [[turn]] tables")
    job, turns = document.get("job", {}), document.get("turn", [])
    if not isinstance(job, dict):
        raise JobSource(path, text).error("job", "is not a table: write [job] and its keys below")
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        raise JobSource(path, text).error("turn", "is not a list of tables: write [[turn]] and its keys below")
    if len(turns) > MAX_TURNS:
        raise UsageError(f"{path}: {len(turns)} turns: a scenario has at most {MAX_TURNS}")
    source = JobSource(path, text, _first_lines(text, re.compile(r"\s*\[\s*job\s*\]"), 1)[0])
    lines = _first_lines(text, _TURN, len(turns))
    scenario = Scenario(
        job_of(source, read_values(source, job)),
        tuple(_turn(JobSource(path, text, line), turn) for line, turn in zip(lines, turns, strict=True)),
    )
    try:
        validate_scenario(scenario)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return scenario


def _first_lines(text: str, header: re.Pattern[str], count: int) -> list[int]:
    """Return the lines of the first tables of a kind; line 1 for those written in another way."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if header.match(line)][:count]
    return lines + [1] * (count - len(lines))


def _turn(source: JobSource, table: Mapping[str, Any]) -> Turn:
    changes = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name == "at":
            continue
        knob = KNOBS_BY_KEY.get(name)
        if knob is None:
            raise source.error(key, f"no knob: turned are {', '.join(KNOBS_BY_KEY)}")
        changes[knob.id] = _value(source, key, knob, value)
    if "at" not in table:
        raise source.error("turn", 'without a time: add at = "10s"')
    return Turn(_at(source, table["at"]), tuple(changes.items()))


def _value(source: JobSource, key: str, knob: Knob, value: object) -> object:
    try:
        return knob.read(value)
    except WrongTypeError as wrong:
        raise source.error(key, f"{shown_value(str(value))} is not {wrong}") from None
    except UsageError as error:
        raise source.error(key, str(error)) from None


def _at(source: JobSource, value: object) -> float:
    try:
        at_s = parse_duration(value) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    except (UsageError, TypeError, ValueError, OverflowError):
        at_s = -1.0
    if not 0 <= at_s < 1e12:
        raise source.error("at", f"{shown_value(str(value))} is not a time of the run: write it like 10s or 1.5s")
    return at_s


def dump_scenario(scenario: Scenario) -> str:
    """Write a scenario so that `parse_scenario` reads the same."""
    parts = [f"schema = {quoted(SCHEMA)}\n\n[job]\n{dump_job(scenario.job)}"]
    for turn in scenario.turns:
        knobs = (KNOBS[field].line(value) for field, value in turn.changes)
        parts.append("\n".join(("\n[[turn]]", f"at = {quoted(format_duration(turn.at_s))}", *knobs)) + "\n")
    return "".join(parts)
