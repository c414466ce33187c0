"""Below the heat map: peaks, slowest I/Os or NFS calls, waterfall of the load, or the parts of the mean latency."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message

from collectors.field import Unit
from collectors.latency.load_waterfall import load_waterfall
from collectors.latency.slow_calls import SlowCall
from collectors.latency.slow_ios import SlowIo
from collectors.latency.subjects import NFS, TRACE, Direction, LatencySubject, parts_of, series_of
from collectors.latency.summary import Peak, means_ns
from collectors.latency.ticks import LatencyTicks
from collectors.model import Frame, Part, Tier
from tui.app_state import MOST_PEAKS
from tui.history.charts import History
from tui.screens.latency.latency_text import CALLS_HEAD, SLOW_HEAD, call_line, peak_line, slow_line, waterfall_lines
from tui.screens.shared.chart_curves import Panel
from tui.text.glyphs import glyphs_of
from tui.text.safe import disk_labels, luns_of_paths
from tui.widgets.chart.model import ChartSeries, Stack
from tui.widgets.line import TextLine
from tui.widgets.line_list import LineList, Lister

MOST_SLOW = 60
PANELS = ("peaks", "slow", "waterfall", "split")
"""What can be shown below the heat map; the last is the chart of the screen, in place of these panels."""


class InQuestion(Struct, frozen=True):
    """Time ranges of the panels, as begin and end."""

    shown_ns: tuple[int, int]
    """The visible or marked range, for peaks."""
    moment_ns: tuple[int, int] | None
    """The interval under the cursor, if any, for slow I/Os and waterfall."""
    peaks: list[Peak] | None = None
    """Peaks to list, the largest first, if not those of `shown`."""
    peaks_title: str = "Peaks"


class LatencyPanels(Horizontal):
    """One panel at a time; on a wide screen peaks and one other. Its height is that of the screen's style."""

    DEFAULT_CSS = """
    LatencyPanels Lister { width: 1fr; display: none; }
    LatencyPanels #waterfall { height: 100%; display: none; }
    LatencyPanels.peaks #peaks, LatencyPanels.slow #slow, LatencyPanels.waterfall #waterfall { display: block; }
    """

    @dataclass
    class PeakChosen(Message):
        """A peak was chosen with Enter."""

        peak: Peak

    @dataclass
    class IoChosen(Message):
        """An I/O was chosen with Enter."""

        io: SlowIo

    @dataclass
    class CallChosen(Message):
        """An NFS call was chosen with Enter."""

        call: SlowCall

    def __init__(self) -> None:
        super().__init__(classes="extra peaks")
        self._peaks: list[Peak] = []
        self._last_taken: Peak | None = None

    def compose(self) -> ComposeResult:
        """Two lists and a text."""
        yield Lister(id="peaks")
        yield Lister(id="slow")
        yield TextLine(" ", id="waterfall")

    def show(
        self, history: History, frame: Frame, subject: LatencySubject | None, asked: InQuestion, peak_key: str
    ) -> None:
        """Show the data of the ranges; `peak_key` is the key that goes to the next peak."""
        self._peaks = asked.peaks if asked.peaks is not None else history.latencies.peaks(*asked.shown_ns, MOST_PEAKS)
        hint = f"{peak_key} or Enter goes there" if self._peaks else "none yet"
        line_of = functools.partial(peak_line, names=disk_labels(frame.topology))
        self.query_one("#peaks", Lister).put(f" {asked.peaks_title}: {hint}", self._peaks, line_of)
        stretch = asked.moment_ns or asked.shown_ns
        self._show_slow(history, frame, subject, stretch)
        self._show_waterfall(history, frame, stretch)

    @property
    def panel(self) -> str:
        """The panel that is chosen."""
        return next(name for name in PANELS if self.has_class(name))

    def show_panel(self, panel: str) -> None:
        """Show one of PANELS."""
        for each in PANELS:
            self.set_class(each == panel, each)

    def take_peak(self) -> Peak | None:
        """Return the peak after the last returned one, the largest first; None without peaks."""
        if not self._peaks:
            return None
        last = self._last_taken
        smaller = (peak for peak in self._peaks if last is not None and _size(peak) < _size(last))
        self._last_taken = next(smaller, self._peaks[0])
        return self._last_taken

    def _show_slow(
        self, history: History, frame: Frame, subject: LatencySubject | None, stretch: tuple[int, int]
    ) -> None:
        lister = self.query_one("#slow", Lister)
        if not lister.display:
            return
        if subject is not None and subject.source == NFS:
            calls = history.latencies.slow_calls(*stretch, MOST_SLOW, subject)
            head = CALLS_HEAD if calls else f" Slowest NFS calls: {_why_none(history, frame, NFS)}"
            lister.put(head, calls, call_line)
        else:
            ios = history.latencies.slow_ios(*stretch, MOST_SLOW, subject)
            head = SLOW_HEAD if ios else f" Slowest I/Os: {_why_none(history, frame, TRACE)}"
            lister.put(head, ios, functools.partial(slow_line, luns=luns_of_paths(frame.topology)))

    def _show_waterfall(self, history: History, frame: Frame, stretch: tuple[int, int]) -> None:
        text = self.query_one("#waterfall", TextLine)
        if text.display:
            found = load_waterfall(history.latencies, history.series, frame, *stretch)
            text.put(waterfall_lines(found, text.size.width or self.app.size.width, glyphs_of(self)))

    @on(LineList.Chosen)
    def _chosen(self, event: LineList.Chosen) -> None:
        event.stop()
        match event.item:
            case SlowCall() as call:
                self.post_message(self.CallChosen(call))
            case SlowIo() as io:
                self.post_message(self.IoChosen(io))
            case Peak() as peak:
                self._last_taken = peak
                self.post_message(self.PeakChosen(peak))


def _why_none(history: History, frame: Frame, source: str) -> str:
    """Say why nothing is listed."""
    if source not in history.latencies.offered() and frame.topology.host.tier is not Tier.EXACT:
        return "they need the exact tier (see: lunscope doctor)"
    if math.isnan(frame.elapsed_s):
        return "the first sample begins the first interval: none yet"
    return "none in this time"


def _size(peak: Peak) -> tuple[float, int]:
    """Order of peaks; the time orders those of equal latency."""
    return peak.latency_ns, peak.time_ns


SPLIT = Panel("split", "Mean latency", Unit.MILLISECONDS, ())
_NS_PER_MS = 1e6


def latency_stack(ticks: LatencyTicks, direction: Direction) -> Stack:
    """Stack the mean queue time of each interval on its mean service time, of NFS on its mean RTT.

    The load has no parts: the engine sees the whole time only.
    """
    below, letter = (Part.RTT, "RTT") if Part.RTT in parts_of(ticks.series) else (Part.SERVICE, "S")
    whole, lower, upper = (_means_ms(ticks, part, direction) for part in (Part.TOTAL, below, Part.QUEUE))
    return Stack(
        ChartSeries("", whole, "chart--total"),
        ChartSeries(letter, lower, "chart--service"),
        ChartSeries("Q", upper, "chart--queue"),
    )


def _means_ms(ticks: LatencyTicks, part: Part, direction: Direction) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    series = series_of(ticks.series, part, direction)
    return means_ns(ticks, series) / _NS_PER_MS if series else np.full(len(ticks), np.nan)
