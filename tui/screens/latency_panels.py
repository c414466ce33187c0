"""Below the heat map: peaks, slowest I/Os, and the waterfall of the load."""

from __future__ import annotations

import math
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import OptionList

from collectors.latency.load_waterfall import load_waterfall
from collectors.latency.slow_ios import SlowIo
from collectors.latency.subjects import TRACE, LatencySubject
from collectors.latency.summary import Peak
from collectors.model import Frame, Tier
from tui.app_state import MOST_PEAKS
from tui.history.charts import History
from tui.screens.latency_text import SLOW_HEAD, peak_lines, slow_lines, waterfall_lines
from tui.text.glyphs import glyphs_of
from tui.text.safe import disk_labels, luns_of_paths
from tui.widgets.line import TextLine
from tui.widgets.lister import Lister

MOST_SLOW = 60
PANELS = ("peaks", "slow", "waterfall", "split")
"""What can be shown below the heat map; the last is the chart of the screen, in place of these panels."""


@dataclass(frozen=True, slots=True)
class InQuestion:
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

    def __init__(self) -> None:
        super().__init__(classes="extra peaks")
        self._peaks: list[Peak] = []
        self._slow: list[SlowIo] = []
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
        lines = list(peak_lines(self._peaks, disk_labels(frame.topology)))
        self.query_one("#peaks", Lister).put(f" {asked.peaks_title}: {hint}", lines)
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
        self._slow = history.latencies.slow_ios(*stretch, MOST_SLOW, subject)
        known = TRACE in history.latencies.offered()
        exact = known or frame.topology.host.tier is Tier.EXACT
        why = "none in this time" if exact else "they need the exact tier (see: lunscope doctor)"
        if exact and math.isnan(frame.elapsed_s):
            why = "the first sample begins the first interval: none yet"
        head = SLOW_HEAD if self._slow else f" Slowest I/Os: {why}"
        lister.put(head, list(slow_lines(self._slow, luns_of_paths(frame.topology))))

    def _show_waterfall(self, history: History, frame: Frame, stretch: tuple[int, int]) -> None:
        text = self.query_one("#waterfall", TextLine)
        if text.display:
            found = load_waterfall(history.latencies, history.series, frame, *stretch)
            text.put(waterfall_lines(found, text.size.width or self.app.size.width, glyphs_of(self)))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        position = event.option_index
        if event.option_list.parent is not self.query_one("#peaks"):
            if position < len(self._slow):
                self.post_message(self.IoChosen(self._slow[position]))
        elif position < len(self._peaks):
            self._last_taken = self._peaks[position]
            self.post_message(self.PeakChosen(self._peaks[position]))


def _size(peak: Peak) -> tuple[float, int]:
    """Order of peaks; the time orders those of equal latency."""
    return peak.latency_ns, peak.time_ns
