"""The load that lunscope drives: its counters, latency histograms, outstanding I/Os and knobs, by target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import aligned
from collectors.metrics.exposition import exposition
from collectors.metrics.family import (
    ColumnFamily,
    Family,
    FamilyKind,
    MetricHistogram,
    MetricPart,
    MetricPoint,
    Values,
    counter,
    first_of_each,
    gauge,
    labels,
    name_labels,
    of_columns,
)
from collectors.metrics.running_sums import LatencySums
from collectors.model import MISSING, Histograms, Step, Table
from collectors.tables.load.schema import LOAD
from engine.job.knobs import KNOBS, Knobs
from engine.job.sizes import BlockShare

_NS = 1_000_000_000
_PER_OCTAVE = 2
_SERIES = ("read", "write")


def _by_operation(name: str, help_: str, column: str, per: int = 1) -> ColumnFamily:
    parts = tuple(MetricPart(f"{each}_{column}", f'operation="{each}"') for each in _SERIES)
    return ColumnFamily(counter(f"lunscope_load_{name}_total", help_, "target", "operation"), parts, per=per)


def _counted(name: str, help_: str, column: str) -> ColumnFamily:
    return ColumnFamily(counter(f"lunscope_load_{name}_total", help_, "target"), (MetricPart(column),))


def _now(name: str, help_: str, column: str) -> ColumnFamily:
    return ColumnFamily(gauge(f"lunscope_load_{name}", help_, "target"), (MetricPart(column),))


_COUNTERS = (
    _by_operation("ios", "I/Os of the load that completed.", "ios"),
    _by_operation("bytes", "Bytes the load read or wrote.", "bytes"),
    _counted("errors", "I/Os of the load that failed.", "errors"),
    _counted("skipped_arrivals", "Arrivals of an open loop that found no room in time.", "skipped"),
)
_SERVICE = _by_operation(
    "service_seconds", "Time of I/Os from submission to completion, in an open loop only.", "service_ns", _NS
)
_GAUGES = (
    _now("outstanding_ios", "I/Os of the load that are outstanding.", "in_flight_now"),
    _now("target_queue_depth", "Queue depth in force on the target.", "queue_depth"),
    _now("target_active", "Whether the target is inside the stripe width.", "active"),
    _now("target_failing", "Whether the target is only probed after repeated errors.", "failing"),
    _now("epoch", "Number of times the knobs were turned in this run.", "epoch"),
)
_LATENCY = Family(
    "lunscope_load_latency_seconds",
    FamilyKind.HISTOGRAM,
    "Latency of I/Os of the load; in an open loop from the moment each was meant to be issued.",
    ("target", "operation"),
)
_RUNNING = gauge("lunscope_load_running", "Whether a load is running.")
_TIME = gauge("lunscope_load_last_sample_timestamp_seconds", "When the counters of the load were read.")
_QUEUE_DEPTH = gauge("lunscope_load_queue_depth", "Knob: outstanding I/Os of each target.")
_WIDTH = gauge("lunscope_load_stripe_width", "Knob: number of targets driven.")
_THREADS = gauge("lunscope_load_threads", "Knob: threads that issue I/Os.")
_READS = gauge("lunscope_load_read_ratio", "Knob: share of reads, 0 to 1.")
_RATE = gauge("lunscope_load_rate_limit_ios_per_second", "Knob: I/Os per second at most, or those of an open loop.")
_BLOCK = gauge("lunscope_load_block_bytes", "Knob: mean block size.", "operation")
_TEXTS = ("mode", "distribution", "policy")
_INFO = gauge("lunscope_load_knobs_info", "Knobs whose values are words.", *_TEXTS)

LOAD_FAMILIES: tuple[Family, ...] = (
    *(one.family for one in (*_COUNTERS, _SERVICE, *_GAUGES)),
    _LATENCY,
    _RUNNING,
    _TIME,
    _QUEUE_DEPTH,
    _WIDTH,
    _THREADS,
    _READS,
    _RATE,
    _BLOCK,
    _INFO,
)


class LoadMetrics:
    """Takes the samples of a run in one thread; `text` may be called in any.

    Counters of the last run stay when it is over, without what is true only while it runs.
    """

    def __init__(self, knobs: Callable[[], Knobs | None]) -> None:
        self._knobs = knobs
        self._lock = threading.Lock()
        self._table: Table | None = None
        self._latency: LatencySums | None = None
        self._is_running = False
        self._time_ns = 0

    def add(self, step: Step) -> None:
        """Take over a sample."""
        table = step.current.tables.get(LOAD.name)
        with self._lock:
            self._time_ns, self._is_running = step.current.time_ns, table is not None
            if table is None:
                return
            self._add_latency(table, step.current.histograms.get(LOAD.name))
            self._table = table

    def end(self) -> None:
        """Note that the run is over."""
        with self._lock:
            self._is_running = False

    def text(self) -> bytes:
        """Render the exposition."""
        with self._lock:
            return "".join(exposition(self._measured())).encode()

    def _add_latency(self, table: Table, cells: Histograms | None) -> None:
        """Add an interval; the I/Os of a new run count from 0."""
        if cells is None or cells.rows.keys != table.rows.keys:
            return
        if self._latency is None or self._latency.scale != cells.scale:
            self._latency = LatencySums(cells.scale, _SERIES, _PER_OCTAVE)
        columns = [LOAD.index(f"{each}_latency_ns") for each in _SERIES]
        now, before = _known(table.values[:, columns]), _known(aligned(self._table, table)[:, columns])
        increase: NDArray[np.float64] = np.where(before > now, now, now - before).astype(np.float64)
        self._latency.add(table.rows.keys, cells, increase)
        self._latency.keep(table.rows.keys)

    def _measured(self) -> Iterator[MetricPoint]:
        yield MetricPoint(_RUNNING, (Values([""], [int(self._is_running)]),))
        yield MetricPoint(_TIME, (Values([""], [self._time_ns / 1e9]),))
        if self._table is None:
            return
        rendered = name_labels(self._table.rows, "target")
        at = first_of_each(rendered)
        chosen = [rendered[row] for row in at.tolist()]
        of_open_loop = (_SERVICE,) if _is_open_loop(self._table) else ()
        now = _GAUGES if self._is_running else ()
        yield from of_columns((*_COUNTERS, *of_open_loop, *now), self._table, chosen, at)
        if self._latency is not None:
            keys = [self._table.rows.keys[row] for row in at.tolist()]
            yield MetricPoint(_LATENCY, distributions=tuple(_distributions(self._latency, keys, chosen)))
        knobs = self._knobs() if self._is_running else None
        if knobs is not None:
            yield from _of_knobs(knobs)


def _is_open_loop(table: Table) -> bool:
    """Whether it has service times besides latencies: they are 0 in a closed loop, where both are one."""
    return any(_known(table.column(part.column)).any() for part in _SERVICE.parts)


def _known(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.where(values == MISSING, np.uint64(0), values)


def _distributions(sums: LatencySums, keys: list[str], chosen: list[str]) -> Iterator[MetricHistogram]:
    for each in _SERIES:
        part = sums.distribution(
            each, [(key, f'{one},operation="{each}"') for key, one in zip(keys, chosen, strict=True)]
        )
        if part.labels:
            yield part


def _of_knobs(knobs: Knobs) -> Iterator[MetricPoint]:
    simple: tuple[tuple[Family, int | float | None], ...] = (
        (_QUEUE_DEPTH, knobs.queue_depth),
        (_WIDTH, knobs.stripe_width),
        (_THREADS, knobs.threads),
        (_READS, knobs.read_pct / 100),
        (_RATE, knobs.rate_iops),
    )
    for family, value in simple:
        if value is not None:
            yield MetricPoint(family, (Values([""], [value]),))
    sizes = {"read": knobs.blocks, "write": knobs.drawn_write_blocks}
    driven = {"read": knobs.read_pct > 0, "write": knobs.read_pct < 100}
    named = [each for each in _SERIES if driven[each]]
    yield MetricPoint(
        _BLOCK, (Values([labels(operation=each) for each in named], [_mean_bytes(sizes[each]) for each in named]),)
    )
    texts = {name: str(KNOBS[name].plain(knobs)) for name in _TEXTS}
    yield MetricPoint(_INFO, (Values([labels(**texts)], [1]),))


def _mean_bytes(blocks: tuple[BlockShare, ...]) -> float:
    return sum(each.block_bytes * each.percent for each in blocks) / sum(each.percent for each in blocks)
