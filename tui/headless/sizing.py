"""How many disks a need takes: measured by a sweep, or read from a file of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from collectors.reports.documents.sizing import sizing_section
from collectors.reports.documents.sizing_file import sizings_of_file
from engine.errors import UsageError
from engine.job.spec import JobSpec
from engine.sizing.document import sizing_file
from engine.sizing.measured import DEPTH, DISKS
from engine.sizing.need import Need
from engine.sizing.outcome import SizedSweep
from engine.strict_json import dump_json
from engine.study.order import Results
from engine.sweep.axes import SweepAxis, parse_axis
from engine.sweep.limit import rule_for
from engine.sweep.plan import SweepPlan, make_plan
from engine.sweep.presets.preset import doubled
from tui.headless.shown import print_sections

_DEPTHS = "qd=1..128"


def parse_need(text: str) -> Need:
    """Read the value of --need.

    Raises:
        UsageError: it is none.
    """
    try:
        return Need.parse(text)
    except UsageError as error:
        raise UsageError(f"--need: {error}") from None


def size_from_file(path: Path, need: str | None, others: Mapping[str, object], *, as_json: bool) -> int:
    """Answer a need by what was measured before; returns the exit code.

    Raises:
        UsageError: no need is given, or an option that only a measurement has.
        LunscopeError: the file cannot be read.
    """
    if need is None:
        raise UsageError("--from: it is read for a need: give --need, such as --need '300k IOPS, p99<2ms'")
    given = next((name for name, value in others.items() if value), None)
    if given is not None:
        raise UsageError(f"{given}: nothing is measured with --from: leave it out")
    wanted = parse_need(need)
    found = sizings_of_file(path, wanted)
    if as_json:
        click.echo(dump_json(sizing_file(wanted, found, str(path))))
    else:
        print_sections([sizing_section(wanted, found)])
    return 0


def sizing_axes(axes: tuple[SweepAxis, ...], job: JobSpec, chosen: Mapping[str, object]) -> tuple[SweepAxis, ...]:
    """Add the axes that a size is made of, unless they or single values of them are given.

    Raises:
        UsageError: the queue depth is that of all disks together.
    """
    if job.total_queue_depth:
        raise UsageError("--need: a size is a number of disks and the depth of each: leave out --qd-total")
    given = {axis.knob.id for axis in axes}
    if DISKS not in given and chosen.get(DISKS) is None and len(job.targets) > 1:
        axes = (parse_axis(f"{DISKS}={doubled(len(job.targets))}"), *axes)
    if DEPTH not in given and chosen.get("qd") is None:
        axes = (parse_axis(_DEPTHS), *axes)
    return axes


def plan_need(job: JobSpec, axes: tuple[SweepAxis, ...], need: Need) -> SweepPlan:
    """Plan a sweep whose percentiles have the I/Os that the limits of a need take.

    Raises:
        UsageError: as of `make_plan`.
    """
    return make_plan(job, axes, (), rule_for(need.limits))


def sized(need: Need) -> Callable[[Results, tuple[str, ...]], SizedSweep]:
    """Return what makes the answer of the sweep that was measured."""

    def whole(results: Results, _targets: tuple[str, ...]) -> SizedSweep:
        return SizedSweep(results[0], need)

    return whole
