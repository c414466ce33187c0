"""Measures a victim alone, then beside an aggressor at each of its loads, without and with each cap on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.errors import LunscopeError
from engine.isolation.aggressor import Aggressor
from engine.isolation.aggressor_group import AggressorGroup, LimitHierarchy
from engine.isolation.caps import NO_CAP, Cap, shares_of
from engine.isolation.events import begin_event, end_event, left_out_event, point_event
from engine.isolation.plan import IsolationPlan, disks_of
from engine.isolation.study import AggressorLoad, IsolationPoint, IsolationStudy, point_name
from engine.isolation.victim import VictimMeter, VictimSecond
from engine.replacing import replace
from engine.study.events import Data, Note
from engine.study.load import EndedError, Load, PointWatch
from engine.study.points import LeftOut
from engine.study.runner import COMPLETE, STOPPED, StudyRunner, Wanted
from engine.tune.change import make_change
from engine.tune.planned_writes import make_plan, parse_settings
from engine.tune.scope import Host
from engine.tune.tree import KernelTree

_SETTLE_S = 1.0
"""Time from the first I/O of the aggressor, or from its end, to what is measured."""
_POLL_S = 0.05


class IsolationRunner(StudyRunner[IsolationPoint, IsolationPoint, IsolationStudy]):
    """Takes a plan from its first point to its last; the point in hand has the seconds so far."""

    WHAT = "isolation curve"
    NO_KNOBS = "a point of this curve has no knobs to set: caps are set with lunscope tune"

    def __init__(
        self,
        plan: IsolationPlan,
        load: Load,
        keep: Callable[[int, IsolationPoint], None] = lambda _curve, _point: None,
        done: Sequence[tuple[int, IsolationPoint]] = (),
        *,
        hierarchy: LimitHierarchy,
        sysfs: Path,
        note: Note = lambda _text, _data: None,
        watch: PointWatch | None = None,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Nothing is made yet.

        Args:
            plan: what to measure.
            load: the victim, which runs.
            keep: takes each point once it is measured.
            done: points that were measured before.
            hierarchy: where the group of the aggressor is made.
            sysfs: root of sysfs.
            note: takes events for the recording.
            watch: observes nothing here.
            say: takes a line of progress.
        """
        before = [(0, point) for point in in_order([each for _, each in done])]
        super().__init__(load, 1, keep, before, note=note, watch=watch)
        self.plan, self._hierarchy, self._sysfs, self._say = plan, hierarchy, sysfs, say
        self._targets: tuple[str, ...] = ()
        self._now_s = 0.0
        """Time at which the point in hand began."""
        self._meter = VictimMeter(load, self._rest)
        self._disks: tuple[str, ...] = ()

    # ------------------------------------------------------------------ how far it is

    @property
    def study(self) -> IsolationStudy:
        """What was measured up to now."""
        return self.result_so_far(self._ended)

    @property
    def shown_plan(self) -> IsolationStudy:
        """What was measured up to now."""
        return self.study

    @property
    def how_ended(self) -> str:
        """How it ended; empty before."""
        return self.study.how_ended if self._ended else ""

    @property
    def done(self) -> int:
        """Points measured or left out."""
        return len(self.study.points) + len(self._left_out)

    @property
    def expected(self) -> int:
        """Points in all."""
        return self.plan.points

    @property
    def left_s(self) -> float:
        """Time left."""
        left_s = (self.expected - self.done) * self.plan.point_s
        return max(left_s - (0.0 if self.now is None else self._clock() - self._now_s), 0.0)

    def result_so_far(self, ended: str) -> IsolationStudy:
        """Return what was measured up to now, also while something hangs."""
        return replace(
            self.plan.study,
            targets=self._targets,
            points=in_order(self._trials[0]),
            left_out=tuple(str(each.point) for each in self._left_out),
            ended="" if ended == COMPLETE else ended,
        )

    def name_of(self, point: IsolationPoint) -> str:
        """Name a point by what the aggressor does."""
        return point_name(point.aggressor, point.cap)

    def begin_event(self) -> tuple[str, Data]:
        """Text and data of the start."""
        self._targets = self._load.status.targets
        return begin_event(self.plan, self.study)

    def trial_event(self, _curve: int, trial: IsolationPoint) -> tuple[str, Data]:
        """Text and data of a point."""
        return point_event(self.study, trial)

    def end_event(self, _ended: str) -> tuple[str, Data]:
        """Text and data of the end."""
        return end_event(self.study)

    # ------------------------------------------------------------------ measuring

    def _run(self) -> str:
        try:
            return super()._run()
        except LunscopeError as error:
            self.failure = error
            return str(error)

    def wanted(self) -> Generator[Wanted[IsolationPoint, IsolationPoint]]:
        """Take the victim alone, without a cap, with each cap, and alone again; what was made for it is gone then."""
        self._disks = disks_of(self._load.status.devices, self._sysfs)
        with AggressorGroup(self._hierarchy) as group:
            yield from self._points(group)

    def _points(self, group: AggressorGroup) -> Generator[Wanted[IsolationPoint, IsolationPoint]]:
        if all(point.aggressor is not None for point in self.study.points):
            yield self._wanted(None, NO_CAP, group)
        for load in self._loads_without(NO_CAP):
            yield self._wanted(load, NO_CAP, group)
        for cap in self._caps():
            loads = self._loads_without(cap)
            if loads:
                with self._capped(cap, group):
                    for load in loads:
                        yield self._wanted(load, cap, group)
        if not has_end(self.study.points):
            yield self._wanted(None, NO_CAP, group)

    def _wanted(
        self, load: AggressorLoad | None, cap: Cap, group: AggressorGroup
    ) -> Wanted[IsolationPoint, IsolationPoint]:
        def measure() -> IsolationPoint:
            self._now_s = self._clock()
            self._say(f"{self.done + 1}/{self.expected} {point_name(load, cap)}")
            return self._alone() if load is None else self._beside(load, cap, group)

        return Wanted(IsolationPoint(load, cap, None, ()), 0, measure)

    def failed(self, point: IsolationPoint, error: LunscopeError | None) -> str:
        """Leave out what was skipped."""
        if error is not None:
            raise error
        self._left_out.append(LeftOut(self.name_of(point)))
        self._now = None
        self._note(*left_out_event(self.name_of(point)))
        return ""

    @property
    def why_ended(self) -> str:
        """Why nothing more is measured.

        Raises:
            LunscopeError: the victim ended.
        """
        if not self._stop.is_set():
            raise LunscopeError(f"the victim ended: {self._load.status.message or 'no reason is known'}")
        return STOPPED

    def resumed(self) -> None:
        """Turn the knobs of the victim back."""
        self._load.turn(self.plan.victim.knobs)

    def _loads_without(self, cap: Cap) -> list[AggressorLoad]:
        """List the loads for which no point with this cap is kept."""
        done = {point.aggressor for point in self.study.points if point.cap == cap}
        return [load for load in self.plan.loads if load not in done]

    def _caps(self) -> list[Cap]:
        if self.plan.caps is not None:
            return [cap for cap in self.plan.caps if cap != NO_CAP]
        highest = max((point.aggressor_iops or 0.0 for point in self.study.points), default=0.0)
        return list(shares_of(highest))

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
            EndedError: all is to end, or the point is to be left out.
        """
        until_s = time.monotonic() + duration_s
        while True:
            left_s = until_s - time.monotonic()
            if self._stop.wait(max(min(left_s, _POLL_S), 0.0)) or self._skip.is_set():
                raise EndedError
            if left_s <= _POLL_S:
                return

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
