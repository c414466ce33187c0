"""Which loads of one axis to measure next: a ladder, bisection around the knee, repetitions in random order."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from engine.sweep.knee import Answer, answer
from engine.sweep.trial import SearchStage, Trial

_REPEATS = 2
"""Measurements of each load around the knee, of the lowest and the highest; all others have one."""


_POSITIONS: dict[str, int] = {stage: position for position, stage in enumerate(SearchStage)}


class Search(Struct, frozen=True):
    """The search along one axis; a pure function of what was measured, so that it goes on from a file."""

    loads: tuple[int, ...]
    """Loads of the ladder, ascending."""
    seed: int = 1
    bisects: bool = True
    """Whether loads between those of the ladder can be set."""
    is_grid: bool = False
    """Whether each load of the ladder is measured once, and nothing else."""

    @property
    def expected(self) -> int:
        """Measurements in all, about; exactly only when they are known."""
        count = len(self.loads)
        if self.is_grid:
            return count
        if count <= 2:
            return (1 + _REPEATS) * count
        return 2 * (count + (4 if self.bisects else 0)) + 4

    def wanted(self, stage: SearchStage, trials: Sequence[Trial]) -> tuple[int, ...]:
        """List the loads to measure in a stage, in their order, those already measured left out."""
        before = [trial for trial in trials if _position(trial.stage) < _position(stage)]
        done = Counter(round(trial.load) for trial in trials if trial.stage == stage)
        left = []
        if self.is_grid and stage is not SearchStage.LADDER:
            return ()
        for load in self._all(stage, before):
            if done[load]:
                done[load] -= 1
            else:
                left.append(load)
        return tuple(left)

    def _all(self, stage: SearchStage, before: Sequence[Trial]) -> list[int]:
        match stage:
            case SearchStage.LADDER:
                return list(self.loads)
            case SearchStage.BISECT | SearchStage.BISECT_AGAIN:
                return self._between(before) if self.bisects else []
            case _:
                return self._repeated(before)

    def _between(self, before: Sequence[Trial]) -> list[int]:
        """Choose loads half-way, in logarithms, from the knee to its measured neighbours."""
        found = _interesting(answer(before, with_usl=False))
        measured = sorted({round(trial.load) for trial in before})
        wanted = set()
        for load in found:
            below = max((each for each in measured if each <= load), default=None)
            for low, high in itertools.pairwise(measured):
                middle = round(math.sqrt(low * high))
                is_near = low <= load <= high or below in (low, high)
                if is_near and low < middle < high:
                    wanted.add(middle)
        return sorted(wanted)

    def _repeated(self, before: Sequence[Trial]) -> list[int]:
        measured = sorted({round(trial.load) for trial in before})
        near = {
            each
            for load in _interesting(answer(before, with_usl=False))
            for each in measured
            if abs(math.log2(each / load)) <= 1
        }
        often = near | set(measured[:1]) | set(measured[-1:])
        wanted = [each for each in measured for _ in range(_REPEATS if each in often else 1)]
        random.Random(self.seed).shuffle(wanted)  # noqa: S311 (order of measurements, not secrets)
        return wanted


def _position(stage: str) -> int:
    return _POSITIONS[stage] if stage else -1


def _interesting(found: Answer) -> list[float]:
    """Find the loads around which to measure more finely."""
    optima = (found.balance, found.highest)
    return [optimum.found for optimum in optima if optimum is not None]
