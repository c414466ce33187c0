"""Axes of a sweep: a knob and the values it takes, as --vary names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from engine.errors import UsageError
from engine.job.knobs import KNOBS, KNOBS_BY_KEY, Knob, Knobs
from engine.job.knobs.kinds import BlockSizes, ByteSize, WholeNumber
from engine.job.scenario import Scenario
from engine.job.sizes import format_number, format_size, parse_size
from engine.sweep.outer_knob import OuterKnob
from engine.sweep.setting_axis import SETTINGS
from engine.sweep.tuned_axis import PREFIX, TuneKnob, tune_knob

_RANGE = re.compile(r"\s*([0-9]{1,18})\s*\.\.\s*([0-9]{1,18})\s*", re.ASCII)
_LOADS = ("queue_depth", "threads", "stripe_width", "hosts")
"""Knobs that make more load of a higher value; the first one that varies is the axis on which a knee is searched."""


class SweepAxis(Struct, frozen=True):
    """A knob with its values, in the order given; a range is ascending."""

    knob: Knob
    values: tuple[Any, ...]
    is_range: bool = False
    """Whether values between those listed may be measured as well."""

    @property
    def text(self) -> str:
        """As it is typed."""
        if self.is_range:
            return f"{self.knob.key}={self.values[0]}..{self.values[-1]}"
        return f"{self.knob.key}={','.join(self.shown(value) for value in self.values)}"

    def shown(self, value: Any) -> str:  # noqa: ANN401 (each knob has a type of its own)
        """Write one value as people type it."""
        return shown(self.knob, value)


def shown(knob: Knob, value: Any) -> str:  # noqa: ANN401 (each knob has a type of its own)
    """Write the value of a knob as people type it."""
    if isinstance(knob, OuterKnob):
        return str(knob.kind.plain(value))
    plain = knob.plain(knob.turned(Knobs(), value))
    return format_number(plain) if isinstance(plain, float) else str(knob.unset if plain is None else plain)


def document_value(knob: Knob, value: Any, knobs: Knobs) -> object:  # noqa: ANN401 (as above)
    """Convert the value of an axis for the JSON of a sweep."""
    return knob.kind.document(value) if isinstance(knob, OuterKnob) else knob.document(knob.turned(knobs, value))


NO_OTHERS: Mapping[str, Knob] = MappingProxyType({})


def parse_axis(text: str, others: Mapping[str, Knob] = NO_OTHERS) -> SweepAxis:
    """Read `qd=1..256`, `bs=4k..64k`, `policy=round-robin,service-time` or `tune.nr_requests=32,128`.

    Args:
        text: as it is typed.
        others: what may vary beside the knobs of a job, by key.

    Raises:
        UsageError: there is no such knob, or it cannot have these values.
    """
    key, equals, values = text.partition("=")
    knob = others.get(key.strip()) or _knob(text, key.strip(), others)
    key = knob.key
    if not equals or not values.strip():
        raise UsageError(f"--vary {text!r}: no values: write it like {_example(knob)}")
    if ".." not in values:
        return _list(text, knob, values)
    if isinstance(knob.kind, BlockSizes | ByteSize):
        return _sizes(text, knob, values)
    match = _RANGE.fullmatch(values)
    if match and isinstance(knob, TuneKnob):
        return SweepAxis(knob, tuple(map(str, _doubled(int(match[1]), int(match[2])))))
    if not isinstance(knob.kind, WholeNumber):
        raise UsageError(f"--vary {text!r}: a range is for whole numbers and sizes: list the values of {knob.key}")
    if match is None:
        raise UsageError(f"--vary {text!r}: not a range: write both ends and nothing else, like {_whole_range(knob)}")
    return _range(text, knob, int(match[1]), int(match[2]))


def _example(knob: Knob) -> str:
    """Write an axis of a knob with values that it may have."""
    kind = knob.kind
    if isinstance(kind, BlockSizes | ByteSize):
        return f"{knob.key}=4k..64k or {knob.key}=4k,64k"
    if isinstance(kind, WholeNumber):
        return f"{_whole_range(knob)} or {knob.key}={kind.least},{kind.least + 1},{kind.least + 3}"
    return f"{knob.key}=VALUE,VALUE"


def _whole_range(knob: Knob) -> str:
    kind = knob.kind
    assert isinstance(kind, WholeNumber)
    return f"{knob.key}={kind.least}..{min(kind.most, 256)}"


def _knob(text: str, key: str, others: Mapping[str, Knob]) -> Knob:
    if key.startswith(PREFIX):
        try:
            return tune_knob(key)
        except UsageError as error:
            raise UsageError(f"--vary {text!r}: {error}") from None
    name = key.replace("-", "_")
    knob = KNOBS_BY_KEY.get(name) or SETTINGS.get(name)
    if knob is None:
        known = ", ".join((*others, *KNOBS_BY_KEY, *SETTINGS))
        raise UsageError(f"--vary {text!r}: no knob {key!r}: one of {known}, {PREFIX}NAME")
    return knob


def _range(text: str, knob: Knob, low: int, high: int) -> SweepAxis:
    """Double from the lowest to the highest value."""
    kind = knob.kind
    assert isinstance(kind, WholeNumber)
    if not kind.least <= low <= high <= kind.most:
        raise UsageError(f"--vary {text!r}: a range goes upwards within {kind.least}..{kind.most}")
    return SweepAxis(knob, _doubled(low, high), is_range=True)


def _sizes(text: str, knob: Knob, values: str) -> SweepAxis:
    """Double from the smallest to the largest size; sizes between them are not refined."""
    ends = [end.strip() for end in values.split("..")]
    if len(ends) != 2 or "" in ends:
        raise UsageError(f"--vary {text!r}: not a range: write both ends and nothing else, like {knob.key}=4k..64k")
    try:
        low, high = map(parse_size, ends)
    except UsageError as error:
        raise UsageError(f"--vary {text!r}: {error}") from None
    if not 0 < low <= high:
        raise UsageError(f"--vary {text!r}: a range goes upwards from 512 or more")
    return _list(text, knob, ",".join(map(format_size, _doubled(low, high))))


def _doubled(low: int, high: int) -> tuple[int, ...]:
    values = [low]
    while 0 < values[-1] * 2 < high:
        values.append(values[-1] * 2)
    return tuple(dict.fromkeys((*values, high)))


def _list(text: str, knob: Knob, values: str) -> SweepAxis:
    parts = knob.kind.listed(values)
    if "" in parts:
        raise UsageError(f"--vary {text!r}: an empty value: leave out the comma too many")
    read = [_value(text, knob, part) for part in parts]
    if len(set(read)) < len(read):
        raise UsageError(f"--vary {text!r}: a value comes twice: give each once")
    return SweepAxis(knob, tuple(sorted(read)) if isinstance(knob.kind, WholeNumber) else tuple(read))


def _value(text: str, knob: Knob, part: str) -> Any:  # noqa: ANN401 (each knob has a type of its own)
    try:
        value = None if part == knob.unset else knob.kind.parse(part)
    except UsageError as error:
        raise UsageError(f"--vary {text!r}: {error}") from None
    except ValueError:
        raise UsageError(f"--vary {text!r}: {part!r} is no value of {knob.key}") from None
    for problem in () if value is None else knob.kind.problems(value, Knobs()):
        raise UsageError(f"--vary {text!r}: {problem}")
    return value


def load_axis(axes: tuple[SweepAxis, ...]) -> SweepAxis | None:
    """Choose the axis on which the knee is searched: whole numbers of what makes load; None if nothing varies it."""
    by_knob = {axis.knob.id: axis for axis in axes if len(axis.values) > 1}
    return next((by_knob[each] for each in _LOADS if each in by_knob), None)


def axis_of_steps(scenario: Scenario) -> SweepAxis | None:
    """Return the axis of a job that steps through values of one knob, as NDISK parameter files do; None of others."""
    names = {name for turn in scenario.turns for name, _ in turn.changes}
    if len(names) != 1:
        return None
    knob = KNOBS[names.pop()]
    values = [getattr(scenario.job.knobs, knob.id), *(getattr(knobs, knob.id) for _, knobs in scenario.states())]
    once = dict.fromkeys(values)
    return SweepAxis(knob, tuple(sorted(once)) if isinstance(knob.kind, WholeNumber) else tuple(once))
