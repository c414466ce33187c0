"""Measures one point of a sweep: turns the knobs, waits out the warm-up, goes on as long as the figures need."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from engine.errors import LunscopeError
from engine.job.spec import Backend, Knobs, Mode
from engine.replacing import replace
from engine.results.cpu_use import per_gb_s
from engine.results.measured import Measured
from engine.results.result import EpochResult
from engine.results.waiting import waiting_share
from engine.running.counter_reader import ERRORS, FAILING, IOS, InFlight, in_flight_between
from engine.statistics.batch_means import ConfidenceInterval, Stop, StopRule, batch_interval, relative_spread
from engine.statistics.warmup import Trend, cut_warm_up, trend_of
from engine.study.load import EndedError, Load, NotWatched, PointWatch
from engine.sweep.target_share import target_shares
from engine.sweep.trial import LITTLE_HOLDS, Trial, little_deviation

_WINDOW_S = 0.02
"""One value of the series that warm-up and interval are judged by."""
_JUDGE_WINDOWS = 12
"""How many windows pass from one judgement to the next."""
_GAP_S = 2.0
"""A window this long means that the process or the machine was stopped; the measurement begins again."""
_MOST_SETTLING_S = 15.0
"""How long I/Os of before may take; a point that begins later still has measured nothing."""
_SETTLING_POLL_S = 0.005
_ATTEMPTS = 3
_ROUNDS = 100
"""Completed I/Os per I/O in flight with which those that outlast the epoch hardly count."""
_PERCENTILES = (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9))


class _GapError(Exception):
    """A window took so long that the series is worth nothing."""


class _Windows(Struct):
    """Counters window by window."""

    at_s: list[float] = field(default_factory=list)
    ios: list[int] = field(default_factory=list)
    counters: list[NDArray[np.uint64]] = field(default_factory=list)
    """The first and the last."""
    errors: list[int] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)

    def add(self, at_s: float, counters: NDArray[np.uint64]) -> None:
        if self.at_s and at_s - self.at_s[-1] > _GAP_S:
            raise _GapError
        self.at_s.append(at_s)
        totals = counters.sum(axis=0)
        self.ios.append(int(totals[IOS].sum()))
        self.counters[1:] = [counters]
        self.errors.append(int(totals[ERRORS]))
        if totals[FAILING]:
            self.failing.update(np.flatnonzero(counters[:, FAILING]).tolist())

    @property
    def elapsed_s(self) -> float:
        return self.at_s[-1] - self.at_s[0] if self.at_s else 0.0

    @property
    def in_flight(self) -> InFlight:
        return in_flight_between(self.counters[0], self.counters[-1], self.elapsed_s)

    @property
    def rates(self) -> NDArray[np.float64]:
        return np.asarray(np.diff(self.ios) / np.maximum(np.diff(self.at_s), 1e-9), np.float64)


class _Series(Struct, frozen=True):
    """What was seen from the end of the warm-up on."""

    windows: _Windows
    interval: ConfidenceInterval | None
    stop: Stop
    trend: Trend


class PointMeter(Struct, frozen=True):
    """Measures points of a running load."""

    load: Load
    rule: StopRule
    ended: Callable[[], bool]
    """Whether to give the measurement up."""
    clock: Callable[[], float] = time.monotonic
    watch: PointWatch = field(default_factory=NotWatched)
    drops_cache: bool = False
    """Whether modes are compared, so that no point may find in memory what another one left there."""

    def measure(self, knobs: Knobs, value: float, stage: str, sweep_start_s: float) -> Trial:
        """Measure one point; blocks for seconds.

        Raises:
            EndedError: it was given up, or the load ended.
            LunscopeError: the knobs are refused.
        """
        start_s = self.clock()
        if self.drops_cache and knobs.mode is not Mode.DIRECT:
            self._drop_cache(knobs)
        self.load.turn(knobs)
        for _ in range(_ATTEMPTS):
            try:
                self._warm_up()
                series = self._series()
            except _GapError:
                continue
            return replace(self._trial(series), load=value, stage=stage, start_s=start_s - sweep_start_s)
        raise EndedError

    def _drop_cache(self, knobs: Knobs) -> None:
        """Turn to direct I/O for a moment: it writes back and drops what is cached of targets that may be written.

        The cache of other targets is left alone: it may be of use to others.
        """
        try:
            self.load.turn(replace(knobs, mode=Mode.DIRECT))
        except LunscopeError:
            return  # A file that takes no direct I/O keeps its cache, as its points say of themselves.
        self._wait_until_begun()

    def _warm_up(self) -> None:
        """Wait until the warm-up is over, or for the longest time that is given to it."""
        windows = _Windows()
        while True:
            self._add_windows(windows, self.rule.least_warm_up_s, self.rule.most_warm_up_s)
            if windows.elapsed_s < self.rule.least_warm_up_s:
                continue
            if cut_warm_up(windows.rates).is_settled or windows.elapsed_s >= self.rule.most_warm_up_s:
                return

    def _series(self) -> _Series:
        """Measure until the figures are good enough; begin again while they move one way and time is left."""
        begun_s: float | None = None
        while True:
            self.watch.begin()
            self.load.part_epoch()
            self._wait_until_begun()
            begun_s = self.clock() if begun_s is None else begun_s
            series = self._steady_series(begun_s)
            if series.trend is Trend.NONE or self.clock() - begun_s > self.rule.most_s / 2:
                return series

    def _wait_until_begun(self) -> None:
        """Wait for the I/Os outstanding at the parting: only then does the epoch count, which takes as long as they."""
        most_s = self.clock() + _MOST_SETTLING_S
        while self.clock() < most_s:
            epoch = self.load.last_epoch()
            if epoch is not None and epoch.duration_s > 0:
                return
            if self.ended() or self.load.wait(_SETTLING_POLL_S):
                raise EndedError

    def _steady_series(self, begun_s: float) -> _Series:
        windows, noise = _Windows(), list[float]()
        # At once: I/Os of the epoch before the first window would be in the latencies and not among those in flight.
        self._add_counters(windows)
        while True:
            self._add_windows(windows, self.rule.least_s, self.rule.most_s)
            rates = windows.rates
            interval = batch_interval(rates)
            noise.append(relative_spread(rates))
            spent_s = windows.at_s[-1] - begun_s
            stop = self.rule.decide(interval, windows.ios[-1] - windows.ios[0], windows.elapsed_s, noise)
            if spent_s >= self.rule.most_s:
                stop = Stop.TIME
            elif stop is not Stop.GO_ON and self._is_cut_short(windows):
                continue
            if stop is not Stop.GO_ON:
                return _Series(windows, interval, stop, trend_of(rates))

    def _is_cut_short(self, windows: _Windows) -> bool:
        """Whether the epoch is too short for its slowest I/Os, which outlast it and are missing in the latencies.

        Little's law tells: more are in flight than throughput x latency explains.
        """
        in_flight, epoch = windows.in_flight.mean, self.load.last_epoch()
        if epoch is None or windows.ios[-1] - windows.ios[0] >= _ROUNDS * in_flight:
            return False
        total = epoch.split.total
        deviation = little_deviation(in_flight, _per_second(total.ios, epoch), total.mean_ns or 0.0)
        # Half, as the epoch goes on for a moment until it is read.
        return deviation is not None and deviation > LITTLE_HOLDS / 2

    def _add_windows(self, windows: _Windows, *bounds_s: float) -> None:
        """Add as many windows as are judged together, fewer where a time is over at which the measurement may end."""
        for _ in range(_JUDGE_WINDOWS):
            if self.ended() or self.load.wait(_WINDOW_S):
                raise EndedError
            before_s = windows.elapsed_s
            self._add_counters(windows)
            if any(before_s < bound_s <= windows.elapsed_s for bound_s in bounds_s):
                return

    def _add_counters(self, windows: _Windows) -> None:
        """Add the counters now, which end a window unless they are the first."""
        at_s, counters = self.clock(), self.load.peek()
        if counters is None:
            raise EndedError
        windows.add(at_s, counters)

    def _trial(self, series: _Series) -> Trial:
        epoch, windows, names = self.load.last_epoch(), series.windows, self.load.status.targets
        if epoch is None:
            raise EndedError
        devices, total, in_flight = self.watch.end(), epoch.split.total, windows.in_flight
        return Trial(
            load=0.0,
            in_flight=in_flight.mean,
            iops=_per_second(total.ios, epoch),
            latency_ns=total.mean_ns or 0.0,
            service_ns=in_flight.service_ns,
            half_width=1.0 if series.interval is None else min(series.interval.relative, 1.0),
            latencies_ns=_latencies(total),
            bytes_per_s=_per_second(total.bytes, epoch),
            duration_s=epoch.duration_s,
            ios=total.ios,
            errors=windows.errors[-1] - windows.errors[0],
            stop=series.stop,
            is_settled=series.trend is Trend.NONE,
            trend=series.trend,
            failing=_failing(windows, epoch, names),
            targets=target_shares(epoch) if len(names) > 1 else (),
            average_peak_ns=total.average_peak_ns,
            host_cpu_s_per_gb=None if epoch.cpu is None else per_gb_s(epoch.cpu.host_used_ns, total.bytes),
            engine_cpus=_engine_cpus(epoch),
            engine_share=self._engine_share(epoch),
            engine_waiting_share=waiting_share(epoch, self.load.status.backend or ""),
            host_busy_pct=None if epoch.cpu is None else epoch.cpu.host_busy_pct,
            devices=devices,
        )

    def _engine_share(self, epoch: EpochResult) -> float | None:
        """Share of their time that the threads of io_uring used; other engines have a thread for each I/O."""
        status, cpus = self.load.status, _engine_cpus(epoch)
        if cpus is None or status.backend != Backend.URING or status.job is None or status.job.stays_awake:
            return None
        return cpus / epoch.knobs.threads


def _failing(windows: _Windows, epoch: EpochResult, names: tuple[str, ...]) -> tuple[str, ...]:
    """Name the failing targets inside the stripe width; others were dropped before and are of no load here."""
    driven = {target.name for target in epoch.targets}
    return tuple(names[index] for index in sorted(windows.failing) if names[index] in driven)


def _per_second(count: int, epoch: EpochResult) -> float:
    return count / epoch.duration_s if epoch.duration_s else 0.0


def _engine_cpus(epoch: EpochResult) -> float | None:
    return None if epoch.cpu is None or not epoch.duration_s else epoch.cpu.engine_ns / 1e9 / epoch.duration_s


def _latencies(total: Measured) -> dict[str, float]:
    known = {name: total.percentile_ns(percent) for name, percent in _PERCENTILES}
    known["max"] = total.largest_ns
    return {name: float(value) for name, value in known.items() if value is not None}
