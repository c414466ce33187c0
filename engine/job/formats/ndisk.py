"""Parameter files in the style of NDISK: `NAME -> values - comment`, and `*` before a line comments it out.

    NBROFPROC -> 1 4 8 24 - threads, one step each
    DURATION  -> 5 - seconds per step
    ACCESS    -> R - R random, S sequential
    RESPONSETIME -> 0.005 0.010 - s: the share of the I/Os within each is reported
    BUCKETS   -> .002 .005 .010 - s: edges of a histogram of response times
    READPROBABILITY -> 0.70
    READLOCALITY -> (0.5 0.5) - share of the reads on each equal slice of the space
    RECSIZE   -> 4096 - bytes

The file names no devices: they are given with --target. Threads are those of all devices together.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError
from engine.job.distribution import Distribution, Uniform, distribution_problem, locality
from engine.job.formats.read_job import ReadJob
from engine.job.formats.text_file import SourceLocation, quoted, read_text
from engine.job.knobs import knob_problems
from engine.job.scenario import Scenario, turn_between
from engine.job.spec import MAX_BLOCK_BYTES, MAX_THREADS, Access, Backend, BlockShare, JobSpec, Knobs
from engine.replacing import replace
from engine.text import decimal_number, safe_text

_LINE = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)\s*->(.*)")
_COMMENT = re.compile(r"(?:^|\s)-(?:\s.*)?$")
_MOST_VALUES = 256


class Parameter(Struct, frozen=True):
    """One line: its name, its values, and its location."""

    name: str
    words: tuple[str, ...]
    location: SourceLocation

    def numbers(self, least: float, most: float) -> tuple[float, ...]:
        """Read all values as numbers in a range.

        Raises:
            UsageError: there are none or too many, or one is no number or out of range.
        """
        if not 1 <= len(self.words) <= _MOST_VALUES:
            raise self.location.error(self.name, f"{len(self.words)} values: give 1 to {_MOST_VALUES}")
        return tuple(self._number(word, least, most) for word in self.words)

    def number(self, least: float, most: float) -> float:
        """Read the one value.

        Raises:
            UsageError: as numbers, or there are several.
        """
        values = self.numbers(least, most)
        if len(values) > 1:
            raise self.location.error(self.name, f"{len(values)} values: give one (text after ' - ' is a comment)")
        return values[0]

    def whole(self, values: Sequence[float]) -> tuple[int, ...]:
        """Take numbers as whole ones.

        Raises:
            UsageError: one is not.
        """
        for value in values:
            if value != int(value):
                raise self.location.error(self.name, f"{value:g} is not a whole number")
        return tuple(map(int, values))

    def _number(self, word: str, least: float, most: float) -> float:
        value = decimal_number(word)
        if value is None or not least <= value <= most:
            raise self.location.error(self.name, f"{quoted(word)} is no number from {least:g} to {most:g}")
        return value


def parameters(text: str, path: str) -> Iterator[Parameter]:
    """Yield the parameters of a file.

    Raises:
        UsageError: a line is none.
    """
    for number, raw in enumerate(text.splitlines(), 1):
        line, location = raw.strip(), SourceLocation(path, number)
        if not line or line.startswith("*"):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise UsageError(f"{location}: {quoted(line)}: write NAME -> value, or * before a comment")
        values = _COMMENT.sub("", match[2]).strip()
        yield Parameter(match[1].upper(), tuple(values.strip("()").replace(",", " ").split()), location)


_WITHOUT_EFFECT = ("RECPERTRK", "SECPERTRK", "PDEV")


def read_ndisk(path: str | Path) -> ReadJob:
    """Read a parameter file.

    Raises:
        LunscopeError: it cannot be read.
        UsageError: a line or a value cannot be meant; names file, line and name.
    """
    given = {parameter.name: parameter for parameter in parameters(read_text(path), str(path))}
    for parameter in given.values():
        if parameter.name not in _KNOWN:
            raise parameter.location.error(parameter.name, f"unknown: known are {', '.join(_KNOWN)}")
    first = _first_knobs(given)
    depths = _depths(given)
    step_s = _one(given, "DURATION", 0.001, 1e7)
    if step_s is None and len(depths) > 1:
        raise given["NBROFPROC"].location.error("NBROFPROC", "several steps need a DURATION, in seconds")
    states = [replace(first, queue_depth=depth) for depth in depths]
    turns = tuple(
        turn_between(number * (step_s or 0), before, after)
        for number, (before, after) in enumerate(itertools.pairwise(states), 1)
    )
    job = JobSpec(
        knobs=states[0],
        access=_access(given),
        backend=Backend.THREADS,
        total_queue_depth=True,
        runtime_s=None if step_s is None else step_s * len(states),
        response_limits_s=_times(given, "RESPONSETIME"),
        response_edges_s=_times(given, "BUCKETS"),
        name=Path(path).stem or "ndisk",
    )
    for problem in knob_problems(first):
        raise UsageError(f"{safe_text(str(path))}: {problem.option}: {problem.text}")
    return ReadJob((Scenario(job, turns),), tuple(_warnings(given, str(path))))


def _first_knobs(given: Mapping[str, Parameter]) -> Knobs:
    size = _one(given, "RECSIZE", 1, MAX_BLOCK_BYTES)
    share = _one(given, "READPROBABILITY", 0, 1)
    reads, writes = _locality(given, "READLOCALITY"), _locality(given, "WRITELOCALITY")
    knobs = Knobs(
        read_pct=100.0 if share is None else round(share * 100, 9),
        distribution=reads or Uniform(),
        write_distribution=writes,
    )
    if size is not None:
        knobs = replace(knobs, blocks=(BlockShare(given["RECSIZE"].whole([size])[0]),))
    return replace(knobs, distribution=Uniform(), write_distribution=None) if _is_sequential(given) else knobs


def _one(given: Mapping[str, Parameter], name: str, least: float, most: float) -> float | None:
    return given[name].number(least, most) if name in given else None


def _depths(given: Mapping[str, Parameter]) -> tuple[int, ...]:
    threads = given.get("NBROFPROC")
    return (1,) if threads is None else threads.whole(threads.numbers(1, MAX_THREADS))


def _is_sequential(given: Mapping[str, Parameter]) -> bool:
    return _access(given) is Access.SEQUENTIAL


def _access(given: Mapping[str, Parameter]) -> Access:
    parameter = given.get("ACCESS")
    if parameter is None or parameter.words == ("R",):
        return Access.RANDOM
    if parameter.words == ("S",):
        return Access.SEQUENTIAL
    raise parameter.location.error(
        "ACCESS", f"{quoted(' '.join(parameter.words))} is neither R (random) nor S (sequential)"
    )


def _locality(given: Mapping[str, Parameter], name: str) -> Distribution | None:
    parameter = given.get(name)
    if parameter is None:
        return None
    try:
        zones = locality([100 * share for share in parameter.numbers(0, 1)])
    except UsageError as error:
        raise parameter.location.error(name, str(error)) from None
    problem = distribution_problem(zones)
    if problem:
        raise parameter.location.error(name, problem)
    return zones


def _times(given: Mapping[str, Parameter], name: str) -> tuple[float, ...]:
    return tuple(sorted(set(given[name].numbers(0, 1e6)))) if name in given else ()


def _warnings(given: Mapping[str, Parameter], path: str) -> Iterator[str]:
    shown = safe_text(path)
    devices = _one(given, "NBROFDEV", 1, 1e6)
    if devices is not None:
        yield f"{shown}: NBROFDEV {devices:g}: the file names no devices: the targets given with --target are driven"
    left = [name for name in _WITHOUT_EFFECT if name in given]
    if left:
        yield f"{shown}: without effect on the load: {', '.join(left)}"
    if "READPROBABILITY" not in given:
        yield f"{shown}: no READPROBABILITY: all I/Os are reads"


_KNOWN: tuple[str, ...] = (
    *("NBROFPROC", "DURATION", "ACCESS", "RESPONSETIME", "BUCKETS", "READPROBABILITY", "READLOCALITY", "WRITELOCALITY"),
    *("RECSIZE", "NBROFDEV", *_WITHOUT_EFFECT),
)
