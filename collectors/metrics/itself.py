"""What the values depend on: version, tier, time of the sample, cost of sampling, losses of exact time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collectors.metrics.family import ColumnFamily, MetricPart, MetricPoint, Values, counter, gauge, labels, of_columns
from collectors.metrics.view import MetricLevel, MetricView
from collectors.tables.block.schema import TRACER
from engine.version import version

_INFO = gauge(
    "lunscope_info", "Version, and how latency is measured: exact, sampled or kernel counters.", "version", "tier"
)
_TIME = gauge("lunscope_last_sample_timestamp_seconds", "When the counters were read.")
_CPU = counter("lunscope_sampling_cpu_seconds_total", "CPU time of sampling.")
_LOSSES = ("table_full", "unseen", "stale", "untracked_devices", "series_without_histogram", "recursion_misses")
_LOST = ColumnFamily(
    counter("lunscope_exact_losses_total", "What exact time missed, by reason.", "reason"),
    tuple(MetricPart(reason, f'reason="{reason}"') for reason in _LOSSES),
)


def _measure(view: MetricView) -> Iterator[MetricPoint]:
    tier = view.sample.topology.host.tier.name.lower()
    yield MetricPoint(_INFO, (Values([labels(version=version(), tier=tier)], [1]),))
    yield MetricPoint(_TIME, (Values([""], [view.sample.time_ns / 1e9]),))
    yield MetricPoint(_CPU, (Values([""], [view.cpu_ns / 1e9]),))
    yield from of_columns((_LOST,), view.table(TRACER.name), [""], np.zeros(1, np.intp))


ITSELF_LEVEL = MetricLevel("itself", "version, tier, cost and losses", (_INFO, _TIME, _CPU, _LOST.family), _measure)
