"""What a run measured, epoch by epoch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.backend.outstanding import Outstanding, Stall
from engine.backend.protocol import EpochStats, LoadBackend
from engine.job.spec import JobSpec, Knobs
from engine.results.badge import Badge
from engine.results.cpu_use import CpuUse, add_up
from engine.results.layout_result import (
    LogicalResult,
    PathOutcome,
    PathResult,
    combine_logical,
    logical_result,
    path_results,
)
from engine.results.measured import Split, combine_splits, split_of
from engine.results.steadiness import Steadiness
from engine.verify.run_result import Verified

_READ_IOS, _WRITE_IOS, _SKIPPED = 0, 4, 14
"""Positions in the raw table load."""


class TargetResult(Struct, frozen=True, eq=False):
    """One target in one epoch."""

    name: str
    split: Split
    skipped: int = 0
    """Arrivals that found no free slot in time."""
    paths: tuple[PathResult, ...] = ()
    """Paths of a target that is reached by several."""


class FsyncResult(Struct, frozen=True):
    """Flushes of all targets, which are in no statistic of reads or writes."""

    ios: int
    errors: int
    latency_sum_ns: int
    largest_ns: int

    @property
    def mean_ns(self) -> float | None:
        """Mean latency."""
        return self.latency_sum_ns / self.ios if self.ios else None


class EpochResult(Struct, frozen=True, eq=False):
    """One epoch, without the transient after the turn that opened it."""

    index: int
    knobs: Knobs
    start_s: float | None
    """Time from the start of the run to that of measuring; None if the load never settled."""
    duration_s: float
    """How long was measured; 0 if the load never settled."""
    transient_ios: int
    split: Split
    targets: tuple[TargetResult, ...]
    """Targets inside the stripe width."""
    cpu: CpuUse | None
    """What the measured part cost; None if the load never settled."""
    fsyncs: FsyncResult
    logical: LogicalResult | None = None
    """I/Os before they were cut into parts; None where each was one."""
    policy_ns: float | None = None
    """Time per I/O to choose a path; None where nothing was chosen."""

    @property
    def skipped(self) -> int:
        """Arrivals that found no free slot in time."""
        return sum(target.skipped for target in self.targets)


class ErrorCount(Struct, frozen=True):
    """I/Os of one target and direction that failed in the same way."""

    target: str
    direction: str
    errno: int
    """0 is a short transfer."""
    first_offset: int
    ios: int


class EngineFacts(Struct, frozen=True):
    """Which engine did the I/O and why that one."""

    backend: str
    why: str
    features: tuple[str, ...]


class About(Struct, frozen=True):
    """What a run was, without its numbers."""

    job: JobSpec
    engine: EngineFacts
    targets: tuple[str, ...]
    notices: tuple[str, ...]
    """What a reader must know to judge the numbers, one line each."""
    badges: tuple[Badge, ...]
    """Badges of the targets."""
    ended: str
    """runtime, size, steady, stopped or failed; empty while it runs."""
    elapsed_s: float
    """Time from start to stop."""
    paths: tuple[tuple[str, ...], ...] = ()
    """Names of the paths of every target, none for one with a single path."""
    started_ns: int = 0
    """Start on the monotonic clock."""
    devices: tuple[tuple[int, ...], ...] = ()
    """Numbers of the devices that every target is or is stored on, all paths of it; none where they are not known."""
    solid_state: bool = False
    """Whether a target is a device that does not rotate."""


class RunResult(Struct, frozen=True, eq=False):
    """A whole run."""

    about: About
    epochs: tuple[EpochResult, ...]
    total: Split
    """All epochs together; latencies are merged from their histograms."""
    errors: tuple[ErrorCount, ...]
    """I/Os that failed at any time, transient ones too; the most frequent first. An attempt that failed on one path and
    was sent again over another is none: it is in `paths`."""
    cpu_ns: int
    """CPU time of the engine's threads over the whole run."""
    completed_ios: int
    """All I/Os that succeeded, transient ones too."""
    skipped: int = 0
    """All arrivals that found no free slot in time, transient ones too."""
    verified: Verified | None = None
    """What was verified; None for a load that does not verify."""
    paths: tuple[PathOutcome, ...] = ()
    """Failures of paths, where targets have several."""
    outstanding: tuple[Outstanding, ...] = ()
    """I/Os that never completed, which are in no other figure."""
    failure: str = ""
    """Why the load was ended as failed."""
    stalls: tuple[Stall, ...] = ()
    """Stalls: I/Os outstanding for longer than a second."""
    steadiness: Steadiness | None = None
    """Steadiness of the last epoch; None for a load that was not watched."""

    @property
    def ended_ns(self) -> int:
        """When it ended, on the monotonic clock; now for one that never began."""
        if not self.about.started_ns:
            return time.monotonic_ns()
        return self.about.started_ns + round(self.about.elapsed_s * 1e9)

    @property
    def measured_until_ns(self) -> int:
        """When its last measured epoch ended, on the monotonic clock; its end if none was measured."""
        ends_s = [epoch.start_s + epoch.duration_s for epoch in self.epochs if epoch.start_s is not None]
        return self.about.started_ns + round(max(ends_s) * 1e9) if ends_s else self.ended_ns

    @property
    def ended_in_stall(self) -> bool:
        """Whether I/Os never completed, or stalled after the end for so long that they were reported."""
        return bool(self.outstanding) or any(stall.at_end for stall in self.stalls)

    @property
    def missed_steady(self) -> bool:
        """Whether it was to end in a steady state and ended by itself without it."""
        if not self.about.job.until_steady or self.about.ended in ("stopped", "failed"):
            return False
        return self.steadiness is None or not self.steadiness.state.is_steady

    @property
    def is_damaged(self) -> bool:
        """Whether a verified load found any of its data damaged."""
        return self.verified is not None and self.verified.damaged > 0

    @property
    def logical(self) -> LogicalResult | None:
        """Logical I/Os over all epochs; None where none was cut or had copies."""
        return combine_logical([epoch.logical for epoch in self.epochs if epoch.logical is not None])

    @property
    def duration_s(self) -> float:
        """Seconds measured over all epochs."""
        return sum(epoch.duration_s for epoch in self.epochs)

    @property
    def cpu(self) -> CpuUse | None:
        """What all that was measured cost."""
        return add_up(epoch.cpu for epoch in self.epochs)

    @property
    def failed_ios(self) -> int:
        """I/Os that failed at any time."""
        return sum(error.ios for error in self.errors)


def evaluate(about: About, engine: LoadBackend, counters: NDArray[np.uint64], now_ns: int) -> RunResult:
    """Evaluate what an engine measured; an epoch that is still open is measured up to `now_ns`."""
    stats = engine.epochs()
    epochs = tuple(epoch_result(epoch, about.targets, stats[0].turned_ns, now_ns, about.paths) for epoch in stats)
    return RunResult(
        about=about,
        epochs=epochs,
        total=combine_splits([epoch.split for epoch in epochs]),
        errors=error_counts(engine.errors(), about.targets),
        cpu_ns=engine.cpu_ns(),
        completed_ios=int(counters[:, [_READ_IOS, _WRITE_IOS]].sum()),
        skipped=int(counters[:, _SKIPPED].sum()),
    )


def nothing_measured(job: JobSpec) -> RunResult:
    """Build the result of a run that was stopped before it began."""
    about = About(job, EngineFacts("", "not started", ()), (), (), (), "stopped", 0.0)
    return RunResult(about, (), combine_splits([]), (), cpu_ns=0, completed_ios=0)


def error_counts(rows: Iterable[tuple[int, str, int, int, int]], names: Sequence[str]) -> tuple[ErrorCount, ...]:
    """Name the targets in what LoadBackend.errors returns."""
    return tuple(
        ErrorCount(names[target], direction, code, offset, ios) for target, direction, code, offset, ios in rows
    )


def epoch_result(
    stats: EpochStats,
    names: Sequence[str],
    run_start_ns: int,
    now_ns: int,
    paths: Sequence[Sequence[str]] = (),
) -> EpochResult:
    """Evaluate one epoch; one that is still open is measured up to `now_ns`."""
    end_ns = now_ns if stats.end_ns is None else stats.end_ns
    start_ns = end_ns if stats.start_ns is None else stats.start_ns
    split, path_names = split_of(stats, None), paths or [()] * len(names)
    targets = zip(names[: stats.knobs.stripe_width], path_results(stats, path_names), strict=False)
    return EpochResult(
        index=stats.index,
        knobs=stats.knobs,
        start_s=None if stats.start_ns is None else (start_ns - run_start_ns) / 1e9,
        duration_s=max(end_ns - start_ns, 0) / 1e9,
        transient_ios=stats.transient_ios,
        split=split,
        targets=tuple(
            TargetResult(name, split_of(stats, row), int(stats.skipped[row]), path)
            for row, (name, path) in enumerate(targets)
        ),
        cpu=None if stats.cpu_ns is None else CpuUse(*stats.cpu_ns),
        fsyncs=_fsyncs(stats),
        logical=logical_result(stats, names, split.total),
        policy_ns=stats.policy_ns,
    )


def _fsyncs(stats: EpochStats) -> FsyncResult:
    ios, latency_ns, _, errors = stats.fsyncs.sum(axis=0, dtype=np.uint64).tolist()
    return FsyncResult(ios, errors, latency_ns, int(stats.fsyncs[:, 2].max()))
