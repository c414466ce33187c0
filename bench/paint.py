"""CPU per repaint of the line-API widgets: new figures in, terminal sequences out. `python -m bench.paint`."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from textual.app import App, ComposeResult
from textual.widget import Widget

from collectors.derive.percentiles import bucket_midpoints_ns
from collectors.field import Unit
from collectors.latency.subjects import LatencySubject
from collectors.latency.ticks import LatencyTick, LatencyTicks, LatencyTrack, RowPeaks
from collectors.model import FrameTable, Histograms, HistogramScale, Rows, Tier
from engine.events import Event, EventKind
from tui.text.columns import grid_columns
from tui.text.glyphs import UNICODE
from tui.textual_internals.themed_app import ThemedApp
from tui.theming import DEFAULT_THEME
from tui.widgets.chart.widget import Chart, ChartSeries
from tui.widgets.grid.table import Grid
from tui.widgets.heatmap.widget import HeatMap

ROWS = 19_200
COLUMNS = (
    "heat", "iops", "bytes_per_s", "queue_ms", "service_ms", "in_flight", "busy_pct", "max_ms",
    "read_await_ms", "write_await_ms", "p99_ms", "reads_per_s", "writes_per_s",
)  # fmt: skip
POINTS = 600
REPEATS = 60
QUICK_REPEATS = 10
GOAL_MS = 6
"""For each case; the aim is 3."""
WARM_UP = 5


@dataclass(frozen=True, slots=True)
class PaintCost:
    """Medians over the repeats of one case."""

    case: str
    milliseconds: float
    bytes_sent: float
    lines_sent: float


class _Bench(ThemedApp[None]):
    def __init__(self, widget: Widget) -> None:
        super().__init__(glyphs=UNICODE)
        self.theme = DEFAULT_THEME
        self._widget = widget

    def compose(self) -> ComposeResult:
        yield self._widget


def _paint(app: App[None], widget: Widget, show: Callable[[], None]) -> tuple[float, int, int]:
    """CPU seconds, bytes and lines of one repaint, on the path that Textual takes to the terminal."""
    compositor = app.screen._compositor
    started = time.thread_time()
    show()
    compositor.update_widgets({widget})
    update = compositor.render_partial_update()
    sent = "" if update is None else update.render_segments(app.console)
    return time.thread_time() - started, len(sent.encode()), 0 if update is None else len(update.spans)


async def _measure(
    case: str, size: tuple[int, int], widget: Widget, shows: Sequence[Callable[[], None]], repeats: int
) -> PaintCost:
    app = _Bench(widget)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        costs = [_paint(app, widget, shows[i % len(shows)]) for i in range(repeats + WARM_UP)][WARM_UP:]
    seconds, sent, lines = (statistics.median(values) for values in zip(*costs, strict=True))
    return PaintCost(case, seconds * 1e3, sent, lines)


def _frame(rows: Rows, generator: np.random.Generator) -> FrameTable:
    values = {field_id: generator.lognormal(1, 2, len(rows)) for field_id in COLUMNS}
    values["busy_pct"] = generator.uniform(0, 100, len(rows))
    values["heat"] = generator.uniform(0, 100, len(rows))
    tiers = {field_id: np.full(len(rows), Tier.SAMPLED, dtype=np.uint8) for field_id in ("queue_ms", "service_ms")}
    return FrameTable(rows, values, tiers)


def _one_changed(frame: FrameTable) -> FrameTable:
    """Copy a frame with one changed figure near the top, in the same row order."""
    top = int(np.argsort(-frame.columns["heat"])[3])
    iops = frame.columns["iops"].copy()
    iops[top] += 1000.0
    return FrameTable(frame.rows, {**frame.columns, "iops": iops}, frame.tiers)


async def _grid_costs(repeats: int) -> list[PaintCost]:
    generator = np.random.default_rng(1)
    rows = Rows(tuple(f"k{i}" for i in range(ROWS)), tuple(f"sd{i}" for i in range(ROWS)))
    frames = [_frame(rows, generator) for _ in range(4)]
    same = FrameTable(rows, dict(frames[0].columns), frames[0].tiers)
    cases = {
        f"grid {ROWS} rows, all new": frames,
        f"grid {ROWS} rows, one row changed": [frames[0], _one_changed(frames[0])],
        f"grid {ROWS} rows, unchanged": [frames[0], same],
    }
    costs = []
    for case, shown in cases.items():
        grid = Grid("disks", grid_columns("disks", COLUMNS), sort="heat")
        shows = [lambda grid=grid, frame=frame: grid.show(frame) for frame in shown]
        costs.append(await _measure(case, (160, 50), grid, shows, repeats))
    return costs


async def _chart_costs(repeats: int) -> list[PaintCost]:
    generator = np.random.default_rng(2)
    seconds = np.arange(POINTS + 8, dtype=np.int64)
    times = 1_700_000_000_000_000_000 + seconds * 1_000_000_000
    curves = [np.exp(np.cumsum(generator.normal(0, 0.15, POINTS + 8))) * scale for scale in (1.0, 2.0, 5.0)]
    events = [Event(EventKind.KNOB, "queue depth 32", int(times[i]), 0) for i in (100, 300, 500)]
    names = (("read", "chart--read"), ("write", "chart--write"), ("peak", "chart--peak"))

    def show(chart: Chart, start: int) -> None:
        window = slice(start, start + POINTS)
        series = [ChartSeries(name, c[window], style) for (name, style), c in zip(names, curves, strict=True)]
        chart.show(times[window], series, events)

    costs = []
    for case, starts in (("chart 160x40, 3 x 600, all new", range(8)), ("chart 160x40, unchanged", (0,))):
        chart = Chart("Latency", Unit.MILLISECONDS)
        shows = [lambda chart=chart, start=start: show(chart, start) for start in starts]
        costs.append(await _measure(case, (160, 40), chart, shows, repeats))
    return costs


def _latencies(generator: np.random.Generator, ticks: int) -> LatencyTicks:
    """Make the histograms of a busy load: some hundred buckets per second and direction, and rare peaks."""
    rows = Rows(("load",), ("load",))
    track = LatencyTrack(LatencySubject("load", "load", frozenset()), HistogramScale(1, 6), ("read", "write"))
    for tick in range(ticks):
        slowest = 1500 + tick * 37 % 200
        values = np.append(generator.normal(720, 60, 20_000), slowest).astype(np.uint16)
        bucket, ios = np.unique(values, return_counts=True)
        series = (np.arange(len(bucket)) % 2).astype(np.uint8)
        row, count = np.zeros(len(bucket), np.uint32), ios.astype(np.uint64)
        cells = Histograms(track.scale, rows, track.series, row, series, bucket, count)
        peak_ns = bucket_midpoints_ns(track.scale, bucket[-1:]).repeat(2).reshape(1, 2)
        peaks = RowPeaks(rows, ("read_peak_ns", "write_peak_ns"), np.zeros(1, np.int64), peak_ns)
        track.add(LatencyTick(1_700_000_000_000_000_000 + tick * 10**9, 10**9, cells, peaks))
    return track.view()


async def _heat_costs(repeats: int) -> list[PaintCost]:
    ticks = _latencies(np.random.default_rng(3), POINTS + 64)
    events = [Event(EventKind.KNOB, "queue depth 32", int(ticks.times_ns[i]), 0) for i in (100, 300, 500)]

    def show(heat: HeatMap, end: int) -> None:
        end_ns = int(ticks.times_ns[end])
        heat.show(ticks.between(0, end_ns), ("read", "write"), events, end_ns, POINTS * 10**9)

    costs = []
    for size in ((106, 32), (200, 44)):
        name = f"heat map {size[0] - 6}x{size[1] - 2}"
        cases = {f"{name}, {POINTS} intervals": range(POINTS, POINTS + 64, 8), f"{name}, unchanged": (POINTS,)}
        for case, ends in cases.items():
            heat = HeatMap()
            shows = [lambda heat=heat, end=end: show(heat, end) for end in ends]
            costs.append(await _measure(case, size, heat, shows, repeats))
    return costs


async def _all(repeats: int) -> list[PaintCost]:
    return [*await _grid_costs(repeats), *await _chart_costs(repeats), *await _heat_costs(repeats)]


def measure(repeats: int = REPEATS) -> list[PaintCost]:
    """Run all cases; needs no terminal and no root."""
    return asyncio.run(_all(repeats))


def main(*, quick: bool = False) -> None:
    print(f"{'case':36} {'CPU ms':>7} {'goal':>5} {'bytes':>8} {'lines':>6}")
    for cost in measure(QUICK_REPEATS if quick else REPEATS):
        print(f"{cost.case:36} {cost.milliseconds:7.2f} {GOAL_MS:>5} {cost.bytes_sent:8.0f} {cost.lines_sent:6.0f}")


if __name__ == "__main__":
    main()
