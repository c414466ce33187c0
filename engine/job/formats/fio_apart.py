"""Clones of a fio job that work apart on one file (offset_increment): jobs of their own where one load is not the same.

Clones in sequence through parts of one length are one load with streams (engine/job/formats/fio_extent.py). Those with
random order, and those that go on to the end of the file from wherever they begin, are a load each.
"""

from __future__ import annotations

from engine.job.formats.fio_sections import FioSection, Given, Option
from engine.job.formats.fio_values import Units, units_of
from engine.job.group import MOST_LOADS
from engine.job.spec import JobSpec

_OF_THE_FIRST = ("stonewall", "wait_for_previous", "new_group")
"""What only the first of them says of all."""


def apart(section: FioSection) -> tuple[FioSection, ...]:
    """Make a section of each clone that begins elsewhere than the others; the section alone if one load does it.

    Raises:
        UsageError: there are too many of them, or a number cannot be read.
    """
    given = Given(section)
    units = units_of(given)
    step, clones = given.take("offset_increment"), given.take("numjobs")
    begin, file = given.take("offset", "fileoffset"), given.take("filename")
    if (
        step is None
        or clones is None
        or file is None
        or any(each is not None and "%" in each.text for each in (step, begin))
    ):
        return (section,)
    step_bytes, count = units.integer(step), units.integer(clones)
    if not step_bytes or count < 2 or not (_is_random(given) or given.take("size") is None):
        return (section,)
    if count > MOST_LOADS:
        raise clones.error(f"{count} clones that begin apart, which are a load each: at most {MOST_LOADS}")
    return tuple(_clone(section, number, _begin(begin, units) + number * step_bytes, step) for number in range(count))


def _is_random(given: Given) -> bool:
    order = given.take("rw", "readwrite")
    return order is not None and order.text.startswith("rand")


def _begin(option: Option | None, units: Units) -> int:
    return 0 if option is None else units.integer(option)


def _clone(section: FioSection, number: int, begin: int, step: Option) -> FioSection:
    left_out = ("offset_increment", *(_OF_THE_FIRST if number else ()))
    kept = [option for option in section.options if option.name not in left_out]
    own = [Option("numjobs", "1", step.location), Option("offset", f"{begin}b", step.location)]
    if not any(option.name == "randseed" for option in kept):
        own.append(Option("randseed", str(JobSpec().seed + number), step.location))
    return FioSection(section.name, section.location, (*kept, *own))
