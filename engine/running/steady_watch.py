"""Watches whether a running load is steady: rounds of equal length, and a coarse series for what falls over time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.job.spec import JobSpec, Knobs
from engine.results.steadiness import Steadiness, SteadyFigure, figure_of
from engine.running.knob_turns import InForce
from engine.statistics.decline import BATCHES, Decline, decline_of
from engine.statistics.steady_state import SteadyRounds

_SETTLE_S = 0.1
"""Beginning of an epoch that is not measured."""
_MARK_S = 0.5
_MOST_MARKS = 4096
"""Beyond, every second one is dropped: the series of a run of days stays as small."""
_BATCH_S = 6.0
"""Least length of a batch: below, noise that storage correlates over seconds passes for a trend."""
_NEARLY = 0.9
"""Share of a round that makes a last one."""
_SIDES = {"read": slice(0, 3), "write": slice(4, 7)}
"""Columns of the raw table load: I/Os, bytes, sum of latencies in ns."""

Sums = NDArray[np.float64]


class SteadyWatch:
    """Takes the counters of a run; `observe` is called by one thread, the rest by any."""

    def __init__(self, job: JobSpec) -> None:
        self._job = job
        self._round_begun: tuple[int, Sums] | None = None
        self._marks: list[tuple[int, Sums]] = []
        self._mark_ns = 0
        self._begin(InForce(job.knobs, -1), 0)

    @property
    def is_steady(self) -> bool:
        """Whether the rule holds for the rounds of the open epoch."""
        return self._rounds.state.is_steady

    @property
    def found(self) -> Steadiness:
        """What the rounds of the last epoch say."""
        figure, directions = self._what
        decline = self._decline(figure)
        return Steadiness(figure, directions, self._job.steady_round_s, self._rounds.state, decline)

    def observe(self, counters: NDArray[np.uint64], now: InForce, now_ns: int) -> None:
        """Take the counters of a moment, columns as the raw table load."""
        if now.epoch != self._epoch:
            self._begin(now, now_ns)
        if now_ns < self._settled_ns:
            return
        sums = _sums(counters)
        if not self._marks or now_ns - self._marks[-1][0] >= self._mark_ns:
            self._mark(now_ns, sums)
        if self._round_begun is None:
            self._round_begun = now_ns, sums
        elif now_ns - self._round_begun[0] >= self._job.steady_round_s * 1e9:
            self._close_round(self._round_begun, (now_ns, sums))

    def end(self, counters: NDArray[np.uint64], now_ns: int) -> None:
        """Take the counters of the end: a last round that lacks little, as the load settled first, is a round."""
        if self._round_begun is None:
            return
        elapsed_s = (now_ns - self._round_begun[0]) / 1e9
        if elapsed_s >= _NEARLY * self._job.steady_round_s:
            self._close_round(self._round_begun, (now_ns, _sums(counters)))

    def _close_round(self, begun: tuple[int, Sums], ended: tuple[int, Sums]) -> None:
        self._rounds.add(self._figures(begun, ended))
        self._round_begun = ended

    def _begin(self, now: InForce, now_ns: int) -> None:
        self._epoch = now.epoch
        self._what = figure_of(self._job, now.knobs), _directions(now.knobs)
        self._settled_ns = now_ns + round(max(_SETTLE_S, self._job.ramp_s) * 1e9)
        self._rounds = SteadyRounds()
        self._round_begun = None
        self._marks = []
        self._mark_ns = round(_MARK_S * 1e9)

    def _mark(self, now_ns: int, sums: Sums) -> None:
        self._marks.append((now_ns, sums))
        if len(self._marks) > _MOST_MARKS:
            self._marks = self._marks[::2]
            self._mark_ns *= 2

    def _figures(self, begun: tuple[int, Sums], ended: tuple[int, Sums]) -> tuple[float, ...]:
        figure, directions = self._what
        elapsed_s = (ended[0] - begun[0]) / 1e9
        return tuple(_figure(figure, (ended[1] - begun[1])[_SIDES[each]], elapsed_s) for each in directions)

    def _decline(self, figure: SteadyFigure) -> Decline | None:
        marks = self._marks
        if len(marks) <= 2 * BATCHES or marks[-1][0] - marks[0][0] < BATCHES * _BATCH_S * 1e9:
            return None
        ends = [marks[round(position)] for position in np.linspace(0, len(marks) - 1, BATCHES + 1)]
        return decline_of([_speed(figure, *pair) for pair in pairwise(ends)])


def _sums(counters: NDArray[np.uint64]) -> Sums:
    return np.asarray(counters.sum(axis=0, dtype=np.uint64), np.float64)


def _directions(knobs: Knobs) -> tuple[str, ...]:
    used = {"read": knobs.read_pct > 0, "write": knobs.read_pct < 100}
    return tuple(name for name, is_used in used.items() if is_used)


def _figure(figure: SteadyFigure, done: Sums, elapsed_s: float) -> float:
    """Return the figure from I/Os, bytes and latencies of an interval; NaN for the latency of no I/O."""
    ios, size_bytes, latency_ns = map(float, done)
    if figure is SteadyFigure.LATENCY:
        return latency_ns / 1e3 / ios if ios else float("nan")
    return (ios if figure is SteadyFigure.IOPS else size_bytes) / elapsed_s


def _speed(figure: SteadyFigure, begun: tuple[int, Sums], ended: tuple[int, Sums]) -> float:
    """Return the figure of all I/Os, the greater the better: for latencies the reciprocal."""
    done = ended[1] - begun[1]
    value = _figure(figure, done[_SIDES["read"]] + done[_SIDES["write"]], (ended[0] - begun[0]) / 1e9)
    return 1 / value if figure is SteadyFigure.LATENCY and value else value
