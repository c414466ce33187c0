"""CPU of a scrape of 2,000 devices, by this exposition and by that of prometheus_client where it is installed."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable

import numpy as np

from bench.derive import samples
from collectors.exact.tracer import SCALE
from collectors.metrics.collection import MetricsCollection
from collectors.metrics.registry import chosen_levels
from collectors.model import Histograms, Step, Table
from collectors.tables.block.schema import TRACE, TRACE_SERIES
from engine.replacing import replace

DEVICES = 2_000
GOAL_MS = 50.0


def main(*, quick: bool = False) -> None:
    rounds = 3 if quick else 15
    counters = _collection("disks", traced=False)
    cpu_ms = _cpu_ms(counters.text, rounds)
    print(f"counters of {DEVICES:,} devices, {counters.series:,} series: {cpu_ms:.1f} ms, goal {GOAL_MS:.0f} ms")
    histograms = _collection("latency", traced=True)
    print(f"histograms of {DEVICES:,} devices, {histograms.series:,} series: {_cpu_ms(histograms.text, rounds):.1f} ms")
    if importlib.util.find_spec("prometheus_client") is None:
        print("prometheus_client: left out, not installed")
    else:
        print(f"the same counters by prometheus_client: {_library_ms(counters.text(), rounds):.1f} ms")


def _library_ms(text: bytes, rounds: int) -> float:
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 (an extra)
    from prometheus_client.metrics_core import Metric  # noqa: PLC0415 (an extra)
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 (an extra)

    families = list(text_string_to_metric_families(text.decode()))

    class Parsed:
        def collect(self) -> list[Metric]:
            return families

    registry = CollectorRegistry()
    registry.register(Parsed())
    return _cpu_ms(lambda: generate_latest(registry), rounds)


def _collection(levels: str, *, traced: bool) -> MetricsCollection:
    before, sample, _ = samples(DEVICES, 1.0)
    if traced:
        random = np.random.default_rng(1)
        rows = sample.tables["disk"].rows
        cells = DEVICES * len(TRACE_SERIES) * 20
        histograms = Histograms(
            SCALE,
            rows,
            TRACE_SERIES,
            random.integers(0, DEVICES, cells, np.uint32),
            random.integers(0, len(TRACE_SERIES), cells, np.uint8),
            random.integers(150, 350, cells, np.uint16),
            random.integers(1, 1_000, cells, np.uint64),
        )
        table = Table(TRACE, rows, random.integers(0, 1 << 40, (DEVICES, len(TRACE.columns)), np.uint64))
        sample = replace(sample, tables={**sample.tables, TRACE.name: table}, histograms={TRACE.name: histograms})
    collection = MetricsCollection(chosen_levels([levels]), per_octave=2, node_names=True)
    collection.add(Step(before, sample))
    return collection


def _cpu_ms(work: Callable[[], object], rounds: int) -> float:
    """Median CPU time of one call; the first, which renders labels, is not counted."""
    work()
    found: list[float] = []
    for _ in range(rounds):
        before = time.thread_time_ns()
        work()
        found.append((time.thread_time_ns() - before) / 1e6)
    return statistics.median(found)
