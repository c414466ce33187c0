"""Knobs that one option of fio says all of: a whole number that both tools mean alike (FioNumber of the knob)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.job.formats.fio_sections import Given
from engine.job.formats.fio_values import Units
from engine.job.knobs import KNOBS, FioNumber, Knob, Knobs
from engine.job.knobs.kinds import WholeNumber


def take_numbers(given: Given, units: Units, knobs: Knobs) -> Knobs:
    """Take all such knobs.

    Raises:
        UsageError: two options for one knob are given, or a number is out of range.
    """
    for knob, number in _numbers():
        name, value = _take(given, units, knob, number)
        if value and _matters(number, knobs):
            knobs = replace(knob.turned(knobs, value), **number.names[name])
    return knobs


def number_options(knobs: Knobs) -> dict[str, str | None]:
    """Write all such knobs that are set."""
    values = ((number, knob.of(knobs)) for knob, number in _numbers())
    return {_name(number, knobs): str(value) for number, value in values if value and _matters(number, knobs)}


def _numbers() -> Iterator[tuple[Knob, FioNumber]]:
    return ((knob, knob.fio_number) for knob in KNOBS.values() if knob.fio_number is not None)


def _matters(number: FioNumber, knobs: Knobs) -> bool:
    return knobs.read_pct < 100 or not number.of_writes


def _name(number: FioNumber, knobs: Knobs) -> str:
    """Choose the option that says what the other knobs are."""
    fitting = (
        name for name, others in number.names.items() if all(getattr(knobs, id_) == others[id_] for id_ in others)
    )
    return next(fitting)


def _take(given: Given, units: Units, knob: Knob, number: FioNumber) -> tuple[str, int]:
    assert isinstance(knob.kind, WholeNumber)
    options = [option for option in map(given.take, number.names) if option is not None]
    asked = [(option, value) for option in options if (value := units.integer(option, most=knob.kind.most))]
    if len(asked) > 1:
        raise asked[1][0].error(f"{' and '.join(number.names)} at once are not driven: give one of them")
    return (asked[0][0].name, asked[0][1]) if asked else ("", 0)
