"""Measures a victim alone, then beside an aggressor at each of its loads, without and with each cap on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from engine.errors import LunscopeError
from engine.isolation.aggressor import Aggressor
from engine.isolation.aggressor_group import AggressorGroup, LimitHierarchy
from engine.isolation.caps import NO_CAP, Cap, shares_of
from engine.isolation.study import AggressorLoad, IsolationPoint, IsolationStudy
from engine.isolation.victim import VictimMeter
from engine.job.spec import JobSpec
from engine.tune.change import make_change
from engine.tune.plan import make_plan, parse_settings
from engine.tune.scope import Host
from engine.tune.tree import KernelTree

_SETTLE_S = 1.0
"""From the first I/O of the aggressor, or from its end, to what is measured."""


@dataclass(frozen=True, slots=True)
class IsolationPlan:
    """What is to be measured."""

    loads: tuple[AggressorLoad, ...]
    caps: tuple[Cap, ...] | None
    """None: a half and a tenth of what the aggressor reaches without one."""
    seconds: int
    """Of each point."""
    job: Callable[[AggressorLoad], JobSpec]
    """The aggressor at one of its loads."""
    disks: tuple[str, ...]
    """Kernel names of those that a cap is for."""

    @property
    def points(self) -> int:
        """How many there are, the victim alone at both ends included."""
        caps = 2 if self.caps is None else len([cap for cap in self.caps if cap != NO_CAP])
        return 2 + len(self.loads) * (1 + caps)


@dataclass
class IsolationRunner:
    """Takes a plan from its first point to its last; `study` has what was measured, at any time."""

    plan: IsolationPlan
    hierarchy: LimitHierarchy
    meter: VictimMeter
    study: IsolationStudy
    is_stopped: Callable[[float], bool]
    say: Callable[[str], None]
    _group: AggressorGroup = field(init=False)

    def run(self) -> None:
        """Measure all points; everything that was made for them is gone afterwards.

        Raises:
            StoppedError: a signal came.
            LunscopeError: a load ended, or a cap could not be set.
        """
        with AggressorGroup(self.hierarchy) as self._group:
            self._measure_alone()
            self._measure_beside(NO_CAP)
            for cap in self._caps():
                with self._capped(cap):
                    self._measure_beside(cap)
            self._measure_alone()

    def _caps(self) -> list[Cap]:
        if self.plan.caps is not None:
            return [cap for cap in self.plan.caps if cap != NO_CAP]
        highest = max((point.aggressor_iops or 0.0 for point in self.study.points), default=0.0)
        return list(shares_of(highest))

    def _measure_alone(self) -> None:
        self.say(self._progress("the victim alone"))
        self.meter.rest(_SETTLE_S)
        seconds = self.meter.seconds(self.plan.seconds, lambda: None)
        self._add(IsolationPoint(None, NO_CAP, None, seconds))

    def _measure_beside(self, cap: Cap) -> None:
        for load in self.plan.loads:
            self.say(self._progress(f"beside {load.text}, cap {cap.text}"))
            self._add(self._point(load, cap))

    def _point(self, load: AggressorLoad, cap: Cap) -> IsolationPoint:
        aggressor = Aggressor(self.plan.job(load), self._group.folder)
        try:
            aggressor.wait_begun(self.is_stopped)
            self.meter.rest(_SETTLE_S)
            before, begun_s = aggressor.ios(), time.monotonic()
            seconds = self.meter.seconds(self.plan.seconds, aggressor.check)
            iops = (aggressor.ios() - before) / (time.monotonic() - begun_s)
            aggressor.end()
        except BaseException:
            aggressor.abandon()
            raise
        return IsolationPoint(load, cap, iops, seconds)

    def _add(self, point: IsolationPoint) -> None:
        self.study = replace(self.study, points=(*self.study.points, point))

    def _progress(self, what: str) -> str:
        return f"{len(self.study.points) + 1}/{self.plan.points} {what}"

    @contextmanager
    def _capped(self, cap: Cap) -> Iterator[None]:
        """Hold a cap through the watchdog of engine.tune, which restores it after kill -9, too."""
        with KernelTree() as tree:
            host = Host(tree)
            scopes = [f"cgroup:{self._group.name}@{disk}" for disk in self.plan.disks]
            given = parse_settings(cap.settings(unified=self.hierarchy.unified))
            change = make_change(tree, make_plan(host, given, host.select(scopes)), given)
            try:
                yield
            finally:
                left = change.end().left
            if left:
                raise LunscopeError(f"the cap was not removed: {left[0]}")
