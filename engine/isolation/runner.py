"""Measures a victim alone, then beside an aggressor at each of its loads, without and with each cap on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from engine.errors import LunscopeError, StoppedError
from engine.isolation.aggressor import Aggressor
from engine.isolation.aggressor_group import AggressorGroup, LimitHierarchy
from engine.isolation.caps import NO_CAP, Cap, shares_of
from engine.isolation.events import begin_event, end_event, left_out_event, point_event
from engine.isolation.plan import IsolationPlan, disks_of
from engine.isolation.study import AggressorLoad, IsolationPoint, IsolationStudy, point_name
from engine.isolation.victim import VictimMeter, VictimSecond
from engine.replacing import replace
from engine.study.load import Load
from engine.study.trial_file import TrialFile
from engine.sweep.interruptible import SkippingPoints
from engine.tune.change import make_change
from engine.tune.plan import make_plan, parse_settings
from engine.tune.scope import Host
from engine.tune.tree import KernelTree

_SETTLE_S = 1.0
"""From the first I/O of the aggressor, or from its end, to what is measured."""
_POLL_S = 0.05

Note = Callable[[str, Mapping[str, str | float | None]], None]
"""Takes text and data of an event of the session."""


class _SkippedError(Exception):
    """The point in hand is left out."""


class IsolationProgress(Struct, frozen=True):
    """Where it stands."""

    now: IsolationPoint | None
    """The point being measured, with the seconds so far; None between points."""
    left_s: float
    is_paused: bool


class IsolationRunner(SkippingPoints):
    """Takes a plan from its first point to its last; `run` blocks, everything else may be called from any thread."""

    def __init__(
        self,
        plan: IsolationPlan,
        load: Load,
        hierarchy: LimitHierarchy,
        sysfs: Path,
        *,
        note: Note = lambda _text, _data: None,
        say: Callable[[str], None] = lambda _text: None,
        kept: TrialFile[IsolationPoint] | None = None,
    ) -> None:
        """Nothing is made yet.

        Args:
            plan: what to measure.
            load: the victim, which runs.
            hierarchy: where the group of the aggressor is made.
            sysfs: root of sysfs.
            note: takes events for the recording.
            say: takes a line of progress.
            kept: the file of its points: those in it are not measured again.
        """
        super().__init__()
        self.plan, self._load, self._hierarchy, self._sysfs = plan, load, hierarchy, sysfs
        self._note, self._say, self._kept = note, say, kept
        self.study = replace(plan.study, points=() if kept is None else in_order([point for _, point in kept.done]))
        """What was measured up to now."""
        self.failure: LunscopeError | None = None
        """What ended it; None if nothing did."""
        self._now: IsolationPoint | None = None
        self._now_s = 0.0
        """When the point in hand began."""
        self._meter = VictimMeter(load, self._rest)
        self._disks: tuple[str, ...] = ()

    # ------------------------------------------------------------------ how far it is

    @property
    def progress(self) -> IsolationProgress:
        """Where it stands now."""
        now, done = self._now, len(self.study.points) + len(self.study.left_out)
        left_s = (self.plan.points - done) * self.plan.point_s
        left_s -= 0.0 if now is None else time.monotonic() - self._now_s
        return IsolationProgress(now, max(left_s, 0.0), self.is_paused)

    def progress_line(self) -> str:
        """Say in one line how far it is."""
        progress, done = self.progress, len(self.study.points) + len(self.study.left_out)
        left_s, now = progress.left_s, progress.now
        left = f"{left_s / 60:.0f} min" if left_s >= 90 else f"{left_s:.0f} s"
        name = "" if now is None else point_name(now.aggressor, now.cap)
        return f"{done}/{self.plan.points} measured, about {left} left  {name}"

    def result_so_far(self, ended: str) -> IsolationStudy:
        """Return what was measured up to now, also while something hangs."""
        return replace(self.study, ended=ended)

    # ------------------------------------------------------------------ measuring

    def run(self) -> IsolationStudy:
        """Measure all points; everything that was made for them is gone afterwards."""
        self.study = replace(self.study, targets=self._load.status.targets)
        self._note(*begin_event(self.plan, self.study))
        for point in self.study.points:
            self._note(*point_event(self.study, point))
        ended = ""
        try:
            self._disks = disks_of(self._load.status.devices, self._sysfs)
            with AggressorGroup(self._hierarchy) as group:
                self._measure(group)
        except StoppedError:
            ended = "stopped"
        except LunscopeError as error:
            self.failure, ended = error, str(error)
        self._now = None
        self.study = replace(self.study, ended=ended)
        self._note(*end_event(self.study))
        return self.study

    def _measure(self, group: AggressorGroup) -> None:
        if all(point.aggressor is not None for point in self.study.points):
            self._measure_point(None, NO_CAP, group)
        for load in self._loads_without(NO_CAP):
            self._measure_point(load, NO_CAP, group)
        for cap in self._caps():
            loads = self._loads_without(cap)
            if loads:
                with self._capped(cap, group):
                    for load in loads:
                        self._measure_point(load, cap, group)
        if not has_end(self.study.points):
            self._measure_point(None, NO_CAP, group)

    def _loads_without(self, cap: Cap) -> list[AggressorLoad]:
        """List the loads of which no point with this cap is kept."""
        done = {point.aggressor for point in self.study.points if point.cap == cap}
        return [load for load in self.plan.loads if load not in done]

    def _caps(self) -> list[Cap]:
        if self.plan.caps is not None:
            return [cap for cap in self.plan.caps if cap != NO_CAP]
        highest = max((point.aggressor_iops or 0.0 for point in self.study.points), default=0.0)
        return list(shares_of(highest))

    def _measure_point(self, load: AggressorLoad | None, cap: Cap, group: AggressorGroup) -> None:
        self._wait_to_go_on()
        self._skip.clear()
        done = len(self.study.points) + len(self.study.left_out)
        self._now_s, self._now = time.monotonic(), IsolationPoint(load, cap, None, ())
        self._say(f"{done + 1}/{self.plan.points} {point_name(load, cap)}")
        try:
            point = self._alone() if load is None else self._beside(load, cap, group)
        except _SkippedError:
            name = point_name(load, cap)
            self.study = replace(self.study, left_out=(*self.study.left_out, name))
            self._note(*left_out_event(name))
        else:
            self.study = replace(self.study, points=in_order((*self.study.points, point)))
            if self._kept is not None:
                self._kept.append(0, point)
            self._note(*point_event(self.study, point))
        finally:
            self._now = None

    def _alone(self) -> IsolationPoint:
        self._rest(_SETTLE_S)
        return IsolationPoint(None, NO_CAP, None, self._seconds(lambda: None))

    def _beside(self, load: AggressorLoad, cap: Cap, group: AggressorGroup) -> IsolationPoint:
        aggressor = Aggressor(self.plan.aggressor(load), group.folder)
        try:
            aggressor.wait_begun(self._rest)
            self._rest(_SETTLE_S)
            before, begun_s = aggressor.ios(), time.monotonic()
            seconds = self._seconds(aggressor.check)
            iops = (aggressor.ios() - before) / (time.monotonic() - begun_s)
            aggressor.end()
        except BaseException:
            aggressor.abandon()
            raise
        return IsolationPoint(load, cap, iops, seconds)

    def _seconds(self, check: Callable[[], None]) -> tuple[VictimSecond, ...]:
        return self._meter.seconds(self.plan.seconds, check, self._show)

    def _show(self, seconds: tuple[VictimSecond, ...]) -> None:
        if self._now is not None:
            self._now = replace(self._now, seconds=seconds)

    def _rest(self, duration_s: float) -> None:
        """Let time pass.

        Raises:
            StoppedError: it is to end.
            _SkippedError: the point is to be left out.
        """
        until_s = time.monotonic() + duration_s
        while True:
            left_s = until_s - time.monotonic()
            if self._stop.wait(max(min(left_s, _POLL_S), 0.0)):
                raise StoppedError("stopped")
            if self._skip.is_set():
                raise _SkippedError
            if left_s <= _POLL_S:
                return

    def _wait_to_go_on(self) -> None:
        if self._stop.is_set():
            raise StoppedError("stopped")
        if self._go_on.is_set():
            return
        while not self._go_on.wait(_POLL_S):
            if self._load.wait(0):
                raise LunscopeError(f"the victim ended: {self._load.status.message or 'no reason is known'}")
        if self._stop.is_set():
            raise StoppedError("stopped")
        # They may have been turned by hand meanwhile.
        self._load.turn(self.plan.victim.knobs)

    @contextmanager
    def _capped(self, cap: Cap, group: AggressorGroup) -> Iterator[None]:
        """Hold a cap through the watchdog of engine.tune, which restores it after kill -9, too."""
        with KernelTree() as tree:
            host = Host(tree)
            scopes = [f"cgroup:{group.name}@{disk}" for disk in self._disks]
            given = parse_settings(cap.settings(unified=self._hierarchy.unified))
            change = make_change(tree, make_plan(host, given, host.select(scopes)), given)
            try:
                yield
            finally:
                problems = change.end().problems
            if problems:
                raise LunscopeError(f"the cap of the group: {problems[0]}")


def has_end(points: Sequence[IsolationPoint]) -> bool:
    """Whether the last of them is the victim alone once more."""
    return len(points) > 1 and points[-1].aggressor is None


def in_order(points: Sequence[IsolationPoint]) -> tuple[IsolationPoint, ...]:
    """Leave out the victim alone but for the first and the last point: after an earlier end others were measured."""
    ends = (0, len(points) - 1)
    return tuple(point for at, point in enumerate(points) if point.aggressor is not None or at in ends)
