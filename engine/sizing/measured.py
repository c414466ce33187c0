"""Trials by what sizes are made of: number of disks and queue depth of each, for each load on its own."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from engine.job.limits import MAX_QUEUE_DEPTH, MAX_TARGETS
from engine.replacing import replace
from engine.sweep.axes import shown
from engine.sweep.plan import SweepPlan
from engine.sweep.trial import Trial

DISKS, DEPTH = "stripe_width", "queue_depth"
"""Knobs by which disks and their queue depths are counted."""


_MOST = 1 << 32


class MeasuredCurve(Struct, frozen=True):
    """Trials that differ in one knob at most, as any kind of file has them."""

    knobs: Mapping[str, str | float]
    """The other axes by id: numbers of disks and depths, and of all others what is typed, such as "bs=4k"."""
    load: str
    """Id of the knob that differs; empty if none does."""
    trials: Sequence[Trial]


class DiskLoad(Struct, frozen=True):
    """One load on several numbers of disks."""

    name: str
    """Values of all other axes; empty without any."""
    widths: tuple[tuple[int, tuple[Trial, ...]], ...]
    """Numbers of disks, ascending, with their trials, each with the queue depth of a disk as its load."""

    @property
    def bytes_per_io(self) -> float:
        """Mean size of an I/O."""
        every = [trial for _, trials in self.widths for trial in trials]
        return statistics.median(trial.bytes_per_s / trial.iops for trial in every)


def curves_of(plan: SweepPlan, trials: Iterable[Sequence[Trial]]) -> Iterable[MeasuredCurve]:
    """Take the curves of a plan with their trials."""
    load = "" if plan.load is None else plan.load.knob.id
    for curve, measured in zip(plan.curves, trials, strict=True):
        knobs = {
            knob.id: value if knob.id in (DISKS, DEPTH) else f"{knob.key}={shown(knob, value)}"
            for knob, value in curve.values
        }
        yield MeasuredCurve(knobs, load, measured)


def disk_loads(curves: Iterable[MeasuredCurve]) -> list[DiskLoad]:
    """Put the trials of each load together; without those that failed, in which nothing completed, or out of range.

    Where no axis says it, the disks are the targets of the trial, and the depth is the I/Os outstanding on each.
    """
    found: dict[str, dict[int, list[Trial]]] = {}
    for curve in curves:
        for trial in curve.trials:
            if trial.failing or min(trial.iops, trial.bytes_per_s, trial.latency_ns, trial.in_flight) <= 0:
                continue
            knobs = {**curve.knobs, curve.load: trial.load} if curve.load else dict(curve.knobs)
            disks = _whole(knobs.pop(DISKS, None)) or max(len(trial.targets), 1)
            depth = _whole(knobs.pop(DEPTH, None)) or max(round(trial.in_flight / disks), 1)
            if disks > MAX_TARGETS or depth > MAX_QUEUE_DEPTH:
                continue
            name = " ".join(value if isinstance(value, str) else f"{knob}={value:g}" for knob, value in knobs.items())
            found.setdefault(name, {}).setdefault(disks, []).append(replace(trial, load=float(depth)))
    return [
        DiskLoad(name, tuple((disks, tuple(trials)) for disks, trials in sorted(by_disks.items())))
        for name, by_disks in found.items()
    ]


def _whole(value: object) -> int | None:
    return round(value) if isinstance(value, int | float) and 1 <= value < _MOST else None
