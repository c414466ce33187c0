"""Knobs that one option of fio says all of: a whole number that both tools mean alike (FioNumber of the knob)."""

from __future__ import annotations

from collections.abc import Iterator

from engine.job.knobs import KNOBS, FioNumber, Knob, Knobs
from engine.job.knobs.kinds import WholeNumber
from engine.jobformats.fio_sections import Given
from engine.jobformats.fio_values import Units


def take_numbers(given: Given, units: Units, knobs: Knobs) -> tuple[Knobs, list[str]]:
    """Take all such knobs, and what to warn of.

    Raises:
        UsageError: two options for one knob are given, or a number is out of range.
    """
    notes: list[str] = []
    for knob, number in _numbers():
        value, own = _take(given, units, knob, number)
        if value and _matters(number, knobs):
            knobs = knob.turned(knobs, value)
            notes += own
    return knobs, notes


def number_options(knobs: Knobs) -> dict[str, str | None]:
    """Write all such knobs that are set."""
    values = ((number, knob.of(knobs)) for knob, number in _numbers())
    return {number.name: str(value) for number, value in values if value is not None and _matters(number, knobs)}


def _numbers() -> Iterator[tuple[Knob, FioNumber]]:
    return ((knob, knob.fio_number) for knob in KNOBS.values() if knob.fio_number is not None)


def _matters(number: FioNumber, knobs: Knobs) -> bool:
    return knobs.read_pct < 100 or not number.of_writes


def _take(given: Given, units: Units, knob: Knob, number: FioNumber) -> tuple[int, list[str]]:
    assert isinstance(knob.kind, WholeNumber)
    names = (number.name, *number.also)
    options = [option for option in map(given.take, names) if option is not None]
    asked = [(option, value) for option in options if (value := units.integer(option, most=knob.kind.most))]
    if not asked:
        return 0, []
    if len(asked) > 1:
        raise asked[1][0].error(f"{' and '.join(names)} at once are not driven: give one of them")
    option, value = asked[0]
    return value, [f"{option.name}: {number.also[option.name]}"] if option.name in number.also else []
