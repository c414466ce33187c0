"""What ties a fio job to those that run at the same time: flow, exitall, startdelay (fio(1), I/O rate, Time)."""

from __future__ import annotations

from engine.job.formats.fio_engine import Workers
from engine.job.formats.fio_sections import FioSection, Given, Option
from engine.job.formats.fio_values import Units, seconds, switch
from engine.job.formats.text_file import quoted
from engine.job.group import FlowPart, GroupedLoad
from engine.job.spec import Arrival, JobSpec

_MOST_WEIGHT = 1000
"""FLOW_MAX_WEIGHT of fio."""
NAMES = ("flow", "flow_id", "flow_sleep", "exitall", "exitall_on_error", "exit_what")
"""Options of this file."""


def take_ties(given: Given, units: Units, workers: Workers, job: JobSpec) -> GroupedLoad:
    """Take them; they matter only beside other jobs.

    Raises:
        UsageError: a weight is out of range, or of the older meaning, in which the sign said who waits.
    """
    what, ends = given.take("exit_what"), switch(given.take("exitall"))
    if what is not None and ends and what.text not in ("group", "stonewall"):
        raise what.error(f"{quoted(what.text)} is not driven: exitall ends the jobs that run at the same time (group)")
    return GroupedLoad(
        job,
        _flow(given, units, workers, job),
        ends_others=ends,
        ends_others_on_error=switch(given.take("exitall_on_error")),
    )


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


def is_delayed(section: FioSection) -> Option | None:
    """Find the option with which a job begins later than those beside it."""
    delays = [option for option in section.options if option.name == "startdelay"]
    return delays[-1] if delays and delays[-1].value not in ("0", "0s") else None
