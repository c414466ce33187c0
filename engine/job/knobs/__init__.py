"""Knobs: what may be turned while the load runs. `values.py` has one entry for each; all else follows from it."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from engine.job.knobs.knob import FioNumber, FormLine, Knob, Row, StepContext, StepKey, StepSize, entries
from engine.job.knobs.values import Knobs
from engine.job.limits import Problem

__all__ = [
    "KNOBS",
    "KNOBS_BY_KEY",
    "FioNumber",
    "FormLine",
    "Knob",
    "Knobs",
    "Row",
    "StepContext",
    "StepKey",
    "StepSize",
    "engine_refusal",
    "knob_problems",
    "knob_rows",
]

KNOBS: Mapping[str, Knob] = MappingProxyType(entries(Knobs))
"""Knobs by field of Knobs."""
KNOBS_BY_KEY: Mapping[str, Knob] = MappingProxyType(
    {each.key: each for each in sorted(KNOBS.values(), key=lambda each: each.position)}
)
"""Knobs by key of a job file, in the order in which people read them."""


def knob_rows() -> list[tuple[Knob, Row]]:
    """List what the load screen shows, from the first line to the last."""
    rows = [(each, each.row) for each in KNOBS.values() if each.row is not None]
    return sorted(rows, key=lambda pair: pair[1].position)


def knob_problems(knobs: Knobs) -> Iterator[Problem]:
    """List what is wrong with single knobs, whatever the targets."""
    for each in KNOBS.values():
        for text in each.problems(knobs):
            yield Problem(each.option, text)


def engine_refusal(text: str) -> str:
    """Say what an engine refuses as people know it: engines begin with the id of the knob, options have its key."""
    name, _, rest = text.partition(" ")
    return f"--{KNOBS[name].option}: {rest}" if name in KNOBS else text
