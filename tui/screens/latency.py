"""Latencies over time as a heat map, the peaks, and the I/Os behind them."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import OptionList

from collectors.latency_peaks import Peak
from collectors.latency_subject import LatencySubject, Part
from collectors.latency_summary import summarize
from collectors.latency_ticks import LatencyTicks
from collectors.model import Frame
from collectors.slow_ios import SlowIo
from tui.curves import FIRST_SPAN_INTERVALS
from tui.keys import Place, bindings_of
from tui.labels import disk_labels
from tui.latency_subjects import TRACE, first_subject
from tui.latency_text import SLOW_HEAD, peak_lines, slow_lines, subject_line, summary_line
from tui.scope import Scope
from tui.screens.latency_actions import LatencyActions
from tui.widgets.heat_map import HeatMap
from tui.widgets.line import TextLine
from tui.widgets.lister import Lister

MOST_PEAKS, MOST_SLOW = 40, 60
PANELS = ("peaks", "slow")


class LatencyScreen(LatencyActions):
    """One subject's heat map; peaks of all subjects; the slowest I/Os of the moment under the cursor."""

    PLACE = Place.LATENCY
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Place.LATENCY)]
    DEFAULT_CSS = """
    LatencyScreen HeatMap { height: 1fr; min-height: 6; }
    LatencyScreen #panels { height: 6; }
    LatencyScreen #panels Lister { width: 1fr; display: none; }
    LatencyScreen #panels.peaks #peaks, LatencyScreen #panels.slow #slow { display: block; }
    LatencyScreen.-tall #panels { height: 16; }
    LatencyScreen.-wide #panels #peaks { display: block; width: 52; }
    LatencyScreen.-wide #panels #slow { display: block; }
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._peaks: list[Peak] = []
        self._slow: list[SlowIo] = []
        self._next_peak = 0
        self._moment_ns: int | None = None

    def compose_body(self) -> ComposeResult:
        """Whose, heat map, figures, panels."""
        yield TextLine(" ", id="subject")
        yield HeatMap()
        yield TextLine(" ", id="summary")
        with Horizontal(id="panels", classes="extra peaks"):
            yield Lister(id="peaks")
            yield Lister(id="slow")

    def on_mount(self) -> None:
        """Have the cursor at hand."""
        self.heat.focus()

    def latency_subject(self) -> LatencySubject | None:
        """Whose latencies are shown."""
        return self.choice.subject

    # ------------------------------------------------------------------- show

    def show_frame(self, frame: Frame) -> None:
        """Heat map, figures and lists up to the frame's moment."""
        self._take_jump()
        latencies = self.scope.history.latencies
        if self.choice.subject is None:
            self.follow(first_subject(frame, latencies.offered()))
        ticks = latencies.ticks()
        series = self.choice.series(ticks)
        if ticks is None or not series:
            self.heat.show_nothing(self.why_nothing())
            self.heat.window.follow(frame.time_ns, self.scope.span_ns)
        else:
            self.heat.show(ticks, series, self.scope.events.all(), frame.time_ns, self._span_ns(ticks, frame))
        self._show_subject()
        self.show_figures()

    def why_nothing(self) -> str:
        """Say why there is no picture, and the mend."""
        latencies, subject = self.scope.history.latencies, self.choice.subject
        if latencies.ticks() is not None:
            return f"nothing of that kind: {self.key_text('latency.direction')} takes another direction"
        if subject is None:
            return "no latencies yet: start a load, or watch as root with the exact tier"
        if subject.source == TRACE and TRACE not in latencies.offered():
            return "no histograms of this host's disks: they need the exact tier (lunscope doctor says what is missing)"
        return "waiting for I/O"

    def show_figures(self) -> None:
        """Figures of what is shown or marked, its peaks, and the slowest I/Os under the cursor."""
        self._show_summary()
        frame = self.scope.frame
        if frame is not None:
            self._show_peaks(frame)
            self._show_slow()

    def _show_subject(self) -> None:
        choice = self.choice
        if choice.subject is not None:
            line = subject_line(choice.subject, choice.part, choice.direction, self.scope.span_ns)
            self.query_one("#subject", TextLine).put(line)

    def _span_ns(self, ticks: LatencyTicks, frame: Frame) -> int:
        """All there is up to what charts show, and at first as wide as they are."""
        known_ns = frame.time_ns - int(ticks.times_ns[0]) if len(ticks) else 0
        least_ns = round(FIRST_SPAN_INTERVALS * self.scope.interval_s * 1e9)
        return min(max(known_ns, least_ns), self.scope.span_ns)

    def _in_question(self) -> tuple[int, int]:
        """Begin and end of the marked range, or else of what is shown."""
        return self.heat.marked_ns or self.heat.shown_ns

    def _show_summary(self) -> None:
        ticks, line = self.scope.history.latencies.ticks(), self.query_one("#summary", TextLine)
        series = self.choice.series(ticks)
        if ticks is None or not series:
            line.put(" ")
            return
        start_ns, end_ns = self._in_question()
        marked_ns = None if self.heat.marked_ns is None else end_ns - start_ns
        line.put(summary_line(summarize(ticks.between(start_ns, end_ns), series), marked_ns=marked_ns))

    def _show_peaks(self, frame: Frame) -> None:
        self._peaks = self.scope.history.latencies.peaks(*self._in_question(), MOST_PEAKS)
        hint = f"{self.key_text('latency.next_peak')} or Enter goes there" if self._peaks else "none yet"
        lines = list(peak_lines(self._peaks, disk_labels(frame.topology)))
        self.query_one("#peaks", Lister).put(f" Peaks: {hint}", lines)

    def _show_slow(self) -> None:
        asked = None if self._moment_ns is None else (self._moment_ns - 1, self._moment_ns)
        stretch = self.heat.interval_ns or asked or self._in_question()
        self._slow = self.scope.history.latencies.slow_ios(*stretch, MOST_SLOW)
        head = SLOW_HEAD if self._slow else " Slowest I/Os: none told of; they need the exact tier"
        self.query_one("#slow", Lister).put(head, list(slow_lines(self._slow)))

    # ------------------------------------------------------------------ go to

    def _take_jump(self) -> None:
        jump, self.scope.jump = self.scope.jump, None
        if jump is None:
            return
        self.follow(jump.subject)
        self._show_panel("slow")
        self._moment_ns = jump.moment_ns
        if jump.moment_ns is not None:
            self.heat.go_to(jump.moment_ns)

    def _show_panel(self, panel: str) -> None:
        panels = self.query_one("#panels")
        for each in PANELS:
            panels.set_class(each == panel, each)

    @on(HeatMap.Moved)
    def _moved(self) -> None:
        if self.heat.interval_ns is not None:
            self._moment_ns = None
        self.show_figures()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_list.parent is self.query_one("#peaks"):
            self._go_to_peak(event.option_index)
        else:
            self._go_to_io(event.option_index)

    def _go_to_peak(self, place: int) -> None:
        if place >= len(self._peaks):
            return
        peak, self._next_peak = self._peaks[place], place + 1
        if not self.choice.includes(peak.source, peak.key):
            self.follow(LatencySubject(peak.name.partition(" (")[0], peak.source, frozenset({peak.key})))
        if peak.what in tuple(Part):
            self.choice.part = Part(peak.what)
        self._show_there(peak.time_ns, peak.latency_ns)

    def _go_to_io(self, place: int) -> None:
        if place >= len(self._slow):
            return
        slow = self._slow[place]
        if slow.device_key and not self.choice.includes(TRACE, slow.device_key):
            self.follow(LatencySubject(slow.device, TRACE, frozenset({slow.device_key})))
        self._show_there(slow.time_ns, float(slow.service_ns or slow.latency_ns))

    def _show_there(self, time_ns: int, latency_ns: float) -> None:
        self.heat.go_to(time_ns, latency_ns)
        self.heat.focus()
        self.refresh_view()

    def action_latency_next_peak(self) -> None:
        """Go to the largest peak, then to the next."""
        if self._peaks:
            self._go_to_peak(self._next_peak % len(self._peaks))

    def action_latency_panel(self) -> None:
        """Show the next panel."""
        panels = self.query_one("#panels")
        present = next(number for number, name in enumerate(PANELS) if panels.has_class(name))
        self._show_panel(PANELS[(present + 1) % len(PANELS)])
