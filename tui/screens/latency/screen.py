"""Latencies over time as a heat map, the peaks, and the I/Os behind them."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from collectors.latency.cache_bands import CacheBands, cache_bands, cache_over, mean_hit_share
from collectors.latency.nfs_subjects import nfs_subjects
from collectors.latency.subjects import NFS, TRACE, Direction, LatencySubject, first_subject
from collectors.latency.summary import Peak, summarize
from collectors.latency.ticks import LatencyTicks
from collectors.model import Frame, Part
from collectors.session.time_format import clock_text
from collectors.tables.cache.subject import CACHES
from tui.action import with_actions
from tui.app_state import AppState
from tui.keys import bindings_of
from tui.load.candidates import device_of_subject
from tui.screen_registry import LATENCY
from tui.screens.latency.actions import LatencyChoice, LatencyKeys
from tui.screens.latency.latency_text import subject_line, summary_line
from tui.screens.latency.panels import PANELS, SPLIT, InQuestion, LatencyPanels, latency_stack
from tui.screens.shared.base import View
from tui.screens.shared.chart_curves import span_to_show_ns
from tui.transport import ReplayTransport
from tui.widgets.chart.widget import Chart
from tui.widgets.heatmap.widget import HeatMap
from tui.widgets.line import TextLine

_HIT_FIELDS = {Direction.BOTH: "hit_pct", Direction.READ: "read_hit_pct", Direction.WRITE: "write_hit_pct"}


class LatencyScreen(View):
    """One subject's heat map; peaks of all subjects; the slowest I/Os of the interval under the cursor."""

    ENTRY = LATENCY
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(LATENCY.actions)
    DEFAULT_CSS = """
    LatencyScreen HeatMap { height: 1fr; min-height: 6; }
    LatencyScreen #split { height: 6; display: none; }
    LatencyScreen.-split #split { display: block; }
    LatencyScreen.-split LatencyPanels { display: none; }
    LatencyScreen LatencyPanels { height: 6; }
    LatencyScreen.-tall #split { display: block; height: 20%; min-height: 8; max-height: 14; }
    LatencyScreen.-tall LatencyPanels { display: block; height: 22%; min-height: 6; max-height: 16; }
    LatencyScreen.-lite LatencyPanels { height: 1fr; max-height: 100%; display: block; }
    LatencyScreen.-tall LatencyPanels.split #peaks { display: block; }
    LatencyScreen.-wide LatencyPanels #peaks { display: block; width: 52; }
    LatencyScreen.-wide LatencyPanels #slow { display: block; }
    LatencyScreen.-wide LatencyPanels.waterfall #slow { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self.choice = LatencyChoice()
        with_actions(self, LatencyKeys(self))
        self._moment_ns: int | None = None
        """The requested time, while there is no heat map for a cursor."""

    def compose_body(self) -> ComposeResult:
        """Compose subject line, heat map, figures and panels."""
        yield TextLine(" ", id="subject")
        yield HeatMap(classes="chart-area")
        yield TextLine(" ", id="summary")
        chart = SPLIT.make()
        chart.add_class("extra", "chart-area")
        yield chart
        yield LatencyPanels()

    def on_mount(self) -> None:
        """Focus the heat map."""
        self.heat.focus()

    @property
    def heat(self) -> HeatMap:
        """The heat map."""
        return self.query_one(HeatMap)

    def show_peaks(self) -> None:
        """Show what has been read of the recording."""
        super().show_peaks()
        self.show_figures()

    def latency_subject(self) -> LatencySubject | None:
        """Return the subject shown."""
        return self.choice.subject

    def load_device(self) -> str | None:
        """Return the disk, path or LUN shown; None for a port and for the load."""
        frame = self.app_state.frame
        return None if frame is None else device_of_subject(self.choice.subject, frame.topology)

    # ------------------------------------------------------------------- show

    def show_frame(self, frame: Frame) -> None:
        """Update heat map, figures and lists up to the frame's time."""
        self._take_jump()
        latencies = self.app_state.history.latencies
        if self.choice.subject is None:
            offered = latencies.offered()
            mounts = nfs_subjects(offered[NFS].rows) if NFS in offered else iter(())
            self.follow(first_subject(frame, offered) or next(mounts, None))
        ticks = latencies.ticks()
        series = self.choice.series(ticks)
        if ticks is None or not series:
            self.heat.show_nothing(self.empty_reason())
            self.heat.window.follow(frame.time_ns, self.app_state.span_ns)
        elif self.app_state.is_rewound and len(ticks) and frame.time_ns < int(ticks.times_ns[0]):
            self.heat.show_nothing(f"no latencies are kept from before {clock_text(int(ticks.times_ns[0]))}")
            self.heat.window.follow(frame.time_ns, self.app_state.span_ns)
        else:
            self.heat.show(ticks, series, self.app_state.events.all(), frame.time_ns, self._span_ns(ticks, frame))
        self.show_figures()

    def empty_reason(self) -> str:
        """Say why there are no data, and the fix."""
        frame = self.app_state.frame
        if frame is not None and math.isnan(frame.elapsed_s):
            return "the first sample begins the first interval"
        latencies, subject = self.app_state.history.latencies, self.choice.subject
        if latencies.ticks() is not None:
            return f"no such I/Os: {self.key_text('latency.direction')} selects another direction"
        if subject is None:
            return "no latencies yet: start a load, or run as root with the exact tier"
        if subject.source == NFS and NFS not in latencies.offered():
            return "no latencies of NFS calls: they need the exact tier (see: lunscope doctor)"
        if subject.source == TRACE and TRACE not in latencies.offered():
            return "no histograms of disks: they need the exact tier (see: lunscope doctor)"
        return "waiting for I/O"

    def show_figures(self) -> None:
        """Show figures and peaks of the visible or marked range, and the slowest I/Os under the cursor."""
        self._show_subject()
        self._show_summary()
        if self.app_state.frame is not None:
            self._show_panels(self.app_state.frame)

    def show_moved(self) -> None:
        """Show the figures, and the panels once cursor and window rest."""
        self._show_subject()
        self._show_summary()
        self.draw_at_rest(self._show_panels)

    def _show_panels(self, frame: Frame) -> None:
        asked = None if self._moment_ns is None else (self._moment_ns - 1, self._moment_ns)
        question = InQuestion(self._stretch(), self.heat.interval_ns or asked, *self._listed_peaks())
        peak_key = self.key_text("latency.next_peak")
        self.query_one(LatencyPanels).show(self.app_state.history, frame, self.choice.subject, question, peak_key)
        self._show_split()

    def _show_split(self) -> None:
        """Show the mean latencies of the time of the heat map."""
        chart, ticks = self.query_one("#split", Chart), self.app_state.history.latencies.ticks()
        if not chart.display:
            return
        start_ns, end_ns = self.heat.shown_ns
        if ticks is None or not len(seen := ticks.between(start_ns, end_ns)):
            chart.show(np.empty(0, np.int64), ())
            return
        chart.set_axis(self.app_state.latency_axis)
        stack = latency_stack(seen, self.choice.direction)
        chart.show(seen.times_ns, (), self.app_state.events.all(), span_ns=end_ns - start_ns, stack=stack)

    def _listed_peaks(self) -> tuple[list[Peak] | None, str]:
        """Peaks of the whole recording, or of the range if it is marked or live; returns title and peaks."""
        peaks = self.app_state.recording_peaks
        if peaks is None or self.heat.marked_ns is not None:
            return None, "Peaks"
        return peaks.peaks(), "Peaks of the recording" if peaks.share >= 1 else f"Peaks, {peaks.share:.0%} read"

    def _show_subject(self) -> None:
        choice = self.choice
        if choice.subject is not None:
            newest = not self.heat.window.is_fixed and not self.app_state.is_rewound
            line = subject_line(choice.subject, choice.part, choice.direction, self.heat.shown_ns, newest=newest)
            self.query_one("#subject", TextLine).put(line)

    def _span_ns(self, ticks: LatencyTicks, frame: Frame) -> int:
        """Show all data up to the charts' time, initially with their span."""
        known_ns = frame.time_ns - int(ticks.times_ns[0]) if len(ticks) else 0
        return span_to_show_ns(known_ns, self.app_state)

    def _stretch(self) -> tuple[int, int]:
        """Begin and end of the marked range, or else of the visible one."""
        return self.heat.marked_ns or self.heat.shown_ns

    def _show_summary(self) -> None:
        ticks, line = self.app_state.history.latencies.ticks(), self.query_one("#summary", TextLine)
        series = self.choice.series(ticks)
        if ticks is None or not series:
            line.put(" ")
            self.heat.show_bands(None)
            return
        start_ns, end_ns = self._stretch()
        self.heat.show_bands(self._bands(ticks.between(start_ns, end_ns), series))
        marked_ns = None if self.heat.marked_ns is None else end_ns - start_ns
        line.put(summary_line(summarize(ticks.between(start_ns, end_ns), series), marked_ns=marked_ns))

    def _bands(self, ticks: LatencyTicks, series: tuple[str, ...]) -> CacheBands | None:
        """Find the bands of the cache over the shown device, if its hit rate explains the latencies."""
        frame, subject = self.app_state.frame, self.choice.subject
        cache = None if frame is None or subject is None else cache_over(frame, subject)
        if cache is None or not len(ticks):
            return None
        start_ns, end_ns = self._stretch()
        history = self.app_state.history.series(CACHES.table, cache, end_ns, end_ns - start_ns)
        field_id = _HIT_FIELDS[self.choice.direction]
        return None if history is None else cache_bands(ticks, series, mean_hit_share(history.values, field_id))

    # ------------------------------------------------------------------ go to

    def follow(self, subject: LatencySubject | None) -> None:
        """Show another subject; in a replay its data are read again if not kept."""
        if subject is None or subject == self.choice.subject:
            return
        self.choice.subject = subject
        self.heat.start_over()
        complete = self.app_state.history.latencies.follow(subject)
        transport = self.app_state.transport
        if not complete and isinstance(transport, ReplayTransport):
            transport.seek(transport.position_ns)

    def _take_jump(self) -> None:
        jump, self.app_state.jump = self.app_state.jump, None
        if jump is None:
            return
        self.follow(jump.subject)
        self._show_panel("slow")
        self._moment_ns = jump.moment_ns
        if jump.moment_ns is not None:
            self.heat.go_to(jump.moment_ns)

    @on(HeatMap.Moved)
    def _moved(self) -> None:
        if self.heat.interval_ns is not None:
            self._moment_ns = None
        self.show_moved()

    @on(LatencyPanels.PeakChosen)
    def _peak_chosen(self, event: LatencyPanels.PeakChosen) -> None:
        self._go_to_peak(event.peak)

    @on(LatencyPanels.IoChosen)
    def _io_chosen(self, event: LatencyPanels.IoChosen) -> None:
        io = event.io
        if io.device_key and not self.choice.includes(TRACE, io.device_key):
            self.follow(LatencySubject(io.device, TRACE, frozenset({io.device_key})))
        self._show_there(io.time_ns, float(io.service_ns or io.latency_ns))

    @on(LatencyPanels.CallChosen)
    def _call_chosen(self, event: LatencyPanels.CallChosen) -> None:
        call = event.call
        part_ns = call.rtt_ns if self.choice.part is Part.RTT else call.execute_ns
        self._show_there(call.time_ns, float(part_ns or 0))

    def _go_to_peak(self, peak: Peak) -> None:
        if not self.choice.includes(peak.source, peak.key):
            self.follow(LatencySubject(peak.name.partition(" (")[0], peak.source, frozenset({peak.key})))
        if peak.what in tuple(Part):
            self.choice.part = Part(peak.what)
        self._seek_to(peak.time_ns)
        self._show_there(peak.time_ns, peak.latency_ns)

    def _seek_to(self, time_ns: int) -> None:
        """Seek a recording to a time that was not played yet, or is no longer kept."""
        transport, frame, ticks = (
            self.app_state.transport,
            self.app_state.frame,
            self.app_state.history.latencies.ticks(),
        )
        if not isinstance(transport, ReplayTransport) or frame is None:
            return
        earliest_ns = int(ticks.times_ns[0]) if ticks is not None and len(ticks) else frame.time_ns
        if not earliest_ns <= time_ns <= frame.time_ns:
            transport.seek(time_ns)

    def _show_there(self, time_ns: int, latency_ns: float) -> None:
        self.heat.go_to(time_ns, latency_ns)
        self.heat.focus()
        self.refresh_view()

    def action_latency_next_peak(self) -> None:
        """Go to the largest peak, then to the next."""
        peak = self.query_one(LatencyPanels).take_peak()
        if peak is not None:
            self._go_to_peak(peak)

    def action_latency_panel(self) -> None:
        """Show the next panel."""
        panels = self.query_one(LatencyPanels)
        # On a tall screen the chart is always there, in a lite view never.
        fixed = self.has_class("-tall") or self.has_class("-lite")
        offered = [name for name in PANELS if not fixed or name != SPLIT.id]
        present = offered.index(panels.panel) if panels.panel in offered else -1
        self._show_panel(offered[(present + 1) % len(offered)])
        self.call_after_refresh(self.show_figures)

    def _show_panel(self, panel: str) -> None:
        self.query_one(LatencyPanels).show_panel(panel)
        self.set_class(panel == SPLIT.id, "-split")
