"""What ties a fio job to those that run at the same time: flow, exitall, startdelay (fio(1), I/O rate, Time)."""

from __future__ import annotations

from msgspec import Struct

from engine.job.formats.fio_engine import Workers
from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.fio_values import Units, seconds, switch
from engine.job.formats.text_file import quoted
from engine.job.group import FlowPart, GroupedLoad
from engine.job.spec import Arrival, JobSpec

_MOST_WEIGHT = 1000
"""FLOW_MAX_WEIGHT of fio."""
NAMES = ("flow", "flow_id", "flow_sleep", "exitall", "exitall_on_error", "exit_what", "new_group", "startdelay")
"""Options of this file."""
_ENDS = ("group", "stonewall", "all")


class Ties(Struct, frozen=True):
    """What ties a job to others."""

    load: GroupedLoad
    exits_all: bool = False
    """Whether the file asks that jobs end with the first that ends: one option is for the whole file, as in fio."""
    begins_part: bool = False
    exits_file: bool = False
    """Whether jobs behind a stonewall never begin then, either."""


def take_ties(given: Given, units: Units, workers: Workers, job: JobSpec) -> Ties:
    """Take them; they matter only beside other jobs.

    Raises:
        UsageError: a weight is out of range, or of the older meaning, in which the sign said who waits.
    """
    what, delay = given.take("exit_what"), given.take("startdelay")
    if what is not None and what.text not in _ENDS:
        raise what.error(f"{quoted(what.text)} is none of {', '.join(_ENDS)}")
    on_error = switch(given.take("exitall_on_error"))
    if what is not None and what.text == "all" and on_error:
        raise what.error("'all' with exitall_on_error is not driven: use stonewall")
    load = GroupedLoad(
        job,
        _flow(given, units, workers, job),
        ends_others_on_error=on_error,
        ends_all_parts=what is not None and what.text != "group",
        begins_after_s=0.0 if delay is None else _delay_s(delay),
    )
    return Ties(
        load,
        exits_all=switch(given.take("exitall")),
        begins_part=switch(given.take("new_group")),
        exits_file=what is not None and what.text == "all",
    )


def _delay_s(delay: Option) -> float:
    if "," in delay.text or "-" in delay.text:
        raise delay.error("a delay drawn from a range is not driven: give one time")
    return seconds(delay)


def _flow(given: Given, units: Units, workers: Workers, job: JobSpec) -> FlowPart | None:
    option, number, wait = given.take("flow"), given.take("flow_id"), given.take("flow_sleep")
    if option is None or option.value == "0":
        return None
    if option.text.startswith("-"):
        raise option.error("a weight below 0 is of an older fio: give each job its share, as in flow=8 and flow=2")
    if job.arrival is not Arrival.CLOSED:
        raise option.error("with rate_process=poisson it is not driven: arrivals do not wait for other jobs")
    # In fio each clone has the weight.
    weight = units.integer(option, most=_MOST_WEIGHT) * workers.jobs
    return FlowPart(weight, 0 if number is None else units.integer(number), _wait_s(wait))


def _wait_s(option: Option | None) -> float | None:
    return None if option is None else seconds(option, "us") or None
