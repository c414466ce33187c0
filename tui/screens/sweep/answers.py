"""The answers of the curves, computed beside the screen: fitting many curves takes longer than a frame may."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from engine.newest_work import NewestWork
from engine.sweep.knee import Answer, answer
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan
from engine.sweep.points import SweepPoints
from engine.sweep.trial import Trial


class CurveAnswers:
    """Keeps the answer of each curve for the trials it was last asked about."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        """Called from the thread that computed an answer."""
        self._lock = threading.Lock()
        self._known: dict[int, tuple[tuple[Trial, ...], Answer]] = {}
        self._limits: tuple[Limit, ...] = ()
        self._work = NewestWork("lunscope-answers")

    def of(self, plan: SweepPlan, points: SweepPoints) -> tuple[Answer | None, ...]:
        """Return what is known by curve, None where it is not yet; never blocks, and asks for what is missing."""
        with self._lock:
            if plan.limits != self._limits:
                self._known, self._limits = {}, plan.limits
            known = tuple(self._answer(curve, trials) for curve, trials in enumerate(points.trials))
            if any(each is None for each in known):
                self._work.request(functools.partial(self._compute, plan.limits, points.trials))
        return known

    def _answer(self, curve: int, trials: tuple[Trial, ...]) -> Answer | None:
        known = self._known.get(curve)
        return known[1] if known is not None and known[0] == trials else None

    def _compute(self, limits: tuple[Limit, ...], trials: tuple[tuple[Trial, ...], ...]) -> None:
        with self._lock:
            missing = [(curve, each) for curve, each in enumerate(trials) if self._answer(curve, each) is None]
        for curve, each in missing:
            found = answer(each, limits)
            with self._lock:
                if limits == self._limits:
                    self._known[curve] = (each, found)
        self._changed()
