"""Mean latency of the subject of the latency screen over time, as queue time on service time."""

from __future__ import annotations

import numpy as np

from collectors.field import Unit
from collectors.latency.subjects import Direction, Part, series_of
from collectors.latency.summary import means_ns
from collectors.latency.ticks import LatencyTicks
from tui.screens.chart_curves import Panel
from tui.widgets.chart.model import ChartSeries, Stack

SPLIT = Panel("split", "Mean latency", Unit.MILLISECONDS, ())
_NS_PER_MS = 1e6


def latency_stack(ticks: LatencyTicks, direction: Direction) -> Stack:
    """Stack the mean queue time of each interval on its mean service time.

    The load has no parts: the engine sees the whole time only.
    """
    whole, lower, upper = (_means_ms(ticks, part, direction) for part in (Part.TOTAL, Part.SERVICE, Part.QUEUE))
    return Stack(
        ChartSeries("", whole, "chart--total"),
        ChartSeries("S", lower, "chart--service"),
        ChartSeries("Q", upper, "chart--queue"),
    )


def _means_ms(ticks: LatencyTicks, part: Part, direction: Direction) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    series = series_of(ticks.series, part, direction)
    return means_ns(ticks, series) / _NS_PER_MS if series else np.full(len(ticks), np.nan)
