"""The line that starts a search for the highest rate on the screen."""

from __future__ import annotations

from engine.errors import UsageError
from engine.job.spec import JobSpec
from engine.rate_search.plan import RatePlan, make_rate_plan, open_depth, parse_rate_range
from engine.replacing import replace
from engine.sweep.axes import parse_axis
from engine.sweep.limit import Limit
from tui.options.job import with_scratch_targets
from tui.sweep.preset_group import measurable

EXAMPLE = "p99<=5ms p99.9<=20ms"
HELP = (
    "Rate at which I/Os may arrive so that each limit is kept, such as\n\n"
    f"    {EXAMPLE}\n\n"
    "mean, p50, p90, p99, p99.9 and max may be limited. "
    "rate=LOW..HIGH (I/Os per second) bounds the search, "
    "qd=N the I/Os outstanding per target [128]."
)


def asked_rates(text: str, job: JobSpec) -> RatePlan:
    """Plan a search of a line of limits, for the job of a load.

    Raises:
        UsageError: it is no such line, or the job cannot be an open loop.
    """
    rates, depth, limits = None, open_depth(job), list[Limit]()
    for word in text.split():
        word = word.strip(",")  # noqa: PLW2901 (a list may have commas)
        found = parse_rate_range(word)
        if found is not None:
            rates = found
        elif word.startswith("qd="):
            (depth,) = _depths(word)
        else:
            limits.append(Limit.parse(word))
    if not limits:
        raise UsageError(f"a search for a rate needs a limit, such as {EXAMPLE}")
    job = with_scratch_targets(measurable(job), 1)
    return make_rate_plan(replace(job, knobs=replace(job.knobs, queue_depth=depth)), limits, None, rates)


def _depths(word: str) -> tuple[int, ...]:
    axis = parse_axis(word)
    if len(axis.values) != 1:
        raise UsageError(f"{word}: one queue depth, such as qd=64")
    return tuple(axis.values)
