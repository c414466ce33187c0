"""The answers of the curves, computed beside the screen: fitting many curves takes longer than a frame may."""

from __future__ import annotations

import threading
from collections.abc import Callable

from msgspec import Struct

from engine.sweep.knee import Answer, answer
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan
from engine.sweep.points import SweepPoints
from engine.sweep.trial import Trial


class _Wanted(Struct, frozen=True):
    limits: tuple[Limit, ...]
    trials: tuple[tuple[Trial, ...], ...]


class CurveAnswers:
    """Keeps the answer of each curve for the trials it was last asked about."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        """Called from the thread that computed an answer."""
        self._lock = threading.Lock()
        self._known: dict[int, tuple[tuple[Trial, ...], Answer]] = {}
        self._limits: tuple[Limit, ...] = ()
        self._wanted: _Wanted | None = None
        self._is_at_work = False

    def of(self, plan: SweepPlan, points: SweepPoints) -> tuple[Answer | None, ...]:
        """Return what is known by curve, None where it is not yet; never blocks, and asks for what is missing."""
        with self._lock:
            if plan.limits != self._limits:
                self._known, self._limits = {}, plan.limits
            known = tuple(self._answer(curve, trials) for curve, trials in enumerate(points.trials))
            if any(each is None for each in known):
                self._wanted = _Wanted(plan.limits, points.trials)
                if not self._is_at_work:
                    self._is_at_work = True
                    threading.Thread(target=self._work, name="lunscope-answers", daemon=True).start()
        return known

    def _answer(self, curve: int, trials: tuple[Trial, ...]) -> Answer | None:
        known = self._known.get(curve)
        return known[1] if known is not None and known[0] == trials else None

    def _work(self) -> None:
        while True:
            with self._lock:
                wanted, self._wanted = self._wanted, None
                if wanted is None:
                    self._is_at_work = False
                    return
                missing = [
                    (curve, trials) for curve, trials in enumerate(wanted.trials) if self._answer(curve, trials) is None
                ]
            for curve, trials in missing:
                found = answer(trials, wanted.limits)
                with self._lock:
                    if wanted.limits == self._limits:
                        self._known[curve] = (trials, found)
            self._changed()
