"""The effect of doubling block size, disks, controllers, threads and queue depth, and of striping, on each figure."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

import numpy as np
from msgspec import Struct

from engine.errors import UsageError
from engine.job.sizes import format_blocks
from engine.job.spec import Access, JobSpec
from engine.replacing import replace
from engine.statistics.batch_means import interval_of
from engine.statistics.difference import DifferenceInterval
from engine.statistics.verdict import Better, Verdict, judge
from engine.sweep.presets.figures import BLOCK, CONTROLLERS, DEPTH, DETAIL, DISKS
from engine.sweep.presets.preset import HostSize, Preset, PresetPart, disks_of
from engine.sweep.presets.table import Cell, PresetPoint, StudyColumn, StudyFigure, StudyRow, StudyTable, list_table
from engine.sweep.setting_axis import ports_of, targets_by_port
from engine.sweep.trial import Trial
from engine.sweep.tuned_axis import PREFIX
from engine.text import safe_text

_ROUNDS = 6
"""Measurements of each point, an even number: with fewer, Student's t makes each interval much wider."""
_MARGIN = math.log(1.05)
"""An effect of less is called none."""
_LEAST_TARGETS = 4
"""Targets of a controller of which a half can be spread over two."""
_MOST_LOG = 50.0
"""Ends of intervals go no farther."""


class _Factor(Struct, frozen=True):
    """What is doubled, by the knobs and settings in which a point differs from the first one."""

    name: str
    knobs: frozenset[str]
    of: Callable[[PresetPoint], str]


_FACTORS = (
    _Factor("block size", frozenset({"blocks"}), lambda point: format_blocks(point.knobs.blocks)),
    _Factor("disks", frozenset({"stripe_width"}), lambda point: str(point.knobs.stripe_width)),
    _Factor("controllers", frozenset({"controllers"}), lambda point: f"{point.setting('controllers'):g}"),
    _Factor(
        "striping",
        frozenset({"stripe_width", "queue_depth"}),
        lambda point: f"{point.knobs.stripe_width} x QD {point.knobs.queue_depth}",
    ),
    _Factor("threads", frozenset({"threads"}), lambda point: str(point.knobs.threads)),
    _Factor("queue depth", frozenset({"queue_depth"}), lambda point: str(point.knobs.queue_depth)),
)
_FIGURES: tuple[tuple[str, str, Callable[[Trial], float | None]], ...] = (
    ("iops", "IOPS", lambda trial: trial.iops),
    ("megabytes_per_s", "MB/s", lambda trial: trial.bytes_per_s),
    ("mean_ms", "mean", lambda trial: trial.latency_ns),
    ("average_peak_ms", "avg peak", lambda trial: trial.average_peak_ns),
)
_HEADS = tuple(StudyColumn(f"{key}_effect", title) for key, title, _ in _FIGURES)
_STEP = (StudyColumn("factor", "factor"), StudyColumn("from", "from"), StudyColumn("to", "to"))
_INTERVAL = (
    StudyColumn("figure", "figure"),
    StudyColumn("effect_pct", "effect %", 1),
    StudyColumn("low_pct", "low", 1),
    StudyColumn("high_pct", "high", 1),
    StudyColumn("pairs", "n"),
)
_WORKERS = StudyFigure(StudyColumn("threads", "threads"), lambda point: float(point.knobs.threads))


class _Step(Struct, frozen=True):
    """One factor from one value to the next; the measurements of both in the order of the rounds."""

    factor: _Factor
    before: Sequence[PresetPoint]
    after: Sequence[PresetPoint]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Name it."""
        return (self.factor.name, self.factor.of(self.before[0]), self.factor.of(self.after[0]))

    def effect(self, of: Callable[[Trial], float | None]) -> tuple[DifferenceInterval, int] | None:
        """Compare the logarithms of a figure round by round: a drift moves both measurements of a round.

        The interval is Student's t over the rounds; None with fewer than two of them.
        """
        pairs = ((of(a.trial), of(b.trial)) for a, b in zip(self.before, self.after, strict=False))
        ratios = np.array([math.log(b / a) for a, b in pairs if a and b])
        interval = interval_of(ratios)
        if interval is None:
            return None
        return DifferenceInterval(interval.mean, interval.low, interval.high), len(ratios)


def _steps(points: Sequence[PresetPoint]) -> Iterator[_Step]:
    """Yield the steps of each factor, from the first point; none before that was measured."""
    by_curve: dict[int, list[PresetPoint]] = {}
    for point in points:
        by_curve.setdefault(point.curve, []).append(point)
    first = by_curve.pop(0, None)
    if first is None:
        return
    for factor in (*_FACTORS, *_tuned(first[0])):
        before: Sequence[PresetPoint] = first
        for after in by_curve.values():
            if _differing(first[0], after[0]) == factor.knobs:
                yield _Step(factor, before, after)
                before = after


def _tuned(point: PresetPoint) -> Iterator[_Factor]:
    """Make a factor of each tunable that varies."""
    for name, _ in point.settings:
        if name.startswith(PREFIX):
            yield _Factor(name, frozenset({name}), functools.partial(_setting, name))


def _setting(name: str, point: PresetPoint) -> str:
    return str(dict(point.settings)[name])


def _differing(one: PresetPoint, other: PresetPoint) -> set[str]:
    settings = dict(other.settings)
    found = {name for name, value in one.settings if settings.get(name) != value}
    names = (each.name for each in fields(one.knobs))
    return found | {name for name in names if getattr(one.knobs, name) != getattr(other.knobs, name)}


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    steps = list(_steps(points))
    signs = tuple(StudyRow((*step.cells, *(_sign(step, of) for _, _, of in _FIGURES))) for step in steps)
    intervals = tuple(row for step in steps for row in _intervals(step))
    every = list_table("every measurement", (BLOCK, CONTROLLERS, DISKS, _WORKERS, DEPTH, *DETAIL), points)
    return (
        StudyTable("effect of each factor, with all others at their first value", (*_STEP, *_HEADS), signs),
        StudyTable("effects with their 95 % intervals", (*_STEP, *_INTERVAL), intervals),
        every,
    )


def _sign(step: _Step, of: Callable[[Trial], float | None]) -> Cell:
    found = step.effect(of)
    if found is None:
        return None
    match judge(found[0], _MARGIN, Better.NEITHER):
        case Verdict.EQUIVALENT:
            return "none"
        case Verdict.UNDECIDED:
            return "undecided"
        case _:
            return f"{_pct(found[0].difference):+,.0f} %"


def _intervals(step: _Step) -> Iterator[StudyRow]:
    for _, title, of in _FIGURES:
        found = step.effect(of)
        if found is not None:
            effect, pairs = found
            ends = map(_pct, (effect.difference, effect.low, effect.high))
            yield StudyRow((*step.cells, title, *ends, float(pairs)))


def _pct(logarithm: float) -> float:
    return 100 * math.expm1(min(logarithm, _MOST_LOG))


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    is_single = bool(_no_controllers(job))
    half = (len(job.targets) if is_single else min(map(len, targets_by_port(job).values()))) // 2
    axes = ["bs=8k,16k", "threads=1,2", "qd=8,16"]
    axes += [f"stripe_width={half},{2 * half}"] if half else []
    axes += [] if is_single else ["controllers=1,2"]
    return (PresetPart("", replace(job, access=Access.RANDOM), tuple(axes)),)


def _no_controllers(job: JobSpec) -> str:
    """Say why the number of controllers cannot be doubled; empty if it can."""
    if any(not target.nodes for target in job.targets):
        return "scratch files are on one"
    if any(len(target.nodes) > 1 for target in job.targets):
        return "the targets have several paths: --vary ports=1,2 without a preset compares these"
    try:
        ports = set(ports_of(job).values())
    except UsageError as error:
        return str(error)
    if len(ports) < 2:
        return f"all targets are on {safe_text(', '.join(ports))}"
    fewest = min(map(len, targets_by_port(job).values()))
    return "" if fewest >= _LEAST_TARGETS else f"it takes {_LEAST_TARGETS} targets on each of two, and one has {fewest}"


def _refusal(job: JobSpec) -> str:
    return "the depth of each disk is a factor: leave out --qd-total" if job.total_queue_depth else ""


def _remarks(job: JobSpec, _host: HostSize) -> tuple[str, ...]:
    none = "one target: neither the number of disks nor striping is a factor; give more with --target"
    why = _no_controllers(job)
    controllers = (f"the number of controllers is no factor: {why}",) if why else ()
    return (*(() if len(job.targets) > 1 else (none,)), *controllers)


FACTORS = Preset(
    name="factors",
    title="effect of doubling block size, disks, controllers, threads and queue depth, and of striping",
    source="Skytap on Azure, IBM Power LPARs, 2024, figure 3; NDISK64 on AIX",
    parts=_parts,
    tables=_tables,
    rounds=_ROUNDS,
    published=(
        "latency falls with the number of disks and of controllers, up to a point; striping alone adds none",
        "a queue depth that is too low raises latency, and so does one that is too high",
        "small blocks for IOPS, 64K for throughput; in most cases only up to two controllers are needed",
    ),
    scratch_targets=disks_of,
    remarks=_remarks,
    refusal=_refusal,
)
