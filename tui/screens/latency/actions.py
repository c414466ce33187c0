"""Actions of the latency screen."""

from __future__ import annotations

from abc import abstractmethod

from msgspec import Struct

from collectors.latency.nfs_subjects import all_subjects
from collectors.latency.subjects import Direction, LatencySubject, parts_of, series_of
from collectors.latency.ticks import LatencyTicks
from collectors.model import Part
from tui.app_state import AppState
from tui.screens.shared.base import View
from tui.screens.shared.chooser import Chooser, ChooserLine
from tui.transport import ReplayTransport
from tui.widgets.heatmap.widget import HeatMap


class LatencyChoice(Struct):
    """Owned by the latency screen; a part that a subject lacks falls back to one it has."""

    subject: LatencySubject | None = None
    part: Part | None = None
    direction: Direction = Direction.BOTH

    def series(self, ticks: LatencyTicks | None) -> tuple[str, ...]:
        """Series to add up; none if there are none of that kind."""
        offered = () if ticks is None else parts_of(ticks.series)
        if ticks is None or not offered:
            return ()
        if self.part not in offered:
            self.part = Part.SERVICE if Part.SERVICE in offered else offered[0]
        return series_of(ticks.series, self.part, self.direction)

    def next_direction(self) -> None:
        """Take the next of both, reads, writes."""
        every = tuple(Direction)
        self.direction = every[(every.index(self.direction) + 1) % len(every)]

    def next_part(self, ticks: LatencyTicks | None) -> bool:
        """Take the next part the subject has; whether there is another."""
        offered = () if ticks is None else parts_of(ticks.series)
        if self.part not in offered or len(offered) < 2:
            return False
        self.part = offered[(offered.index(self.part) + 1) % len(offered)]
        return True

    def includes(self, source: str, key: str) -> bool:
        """Whether a row belongs to the subject."""
        subject = self.subject
        return subject is not None and subject.source == source and subject.has(key)


class LatencyActions(View):
    """Selection and zoom; the screen shows the result."""

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self.choice = LatencyChoice()

    @property
    def heat(self) -> HeatMap:
        """The heat map."""
        return self.query_one(HeatMap)

    @abstractmethod
    def empty_reason(self) -> str:
        """Say why there are no data, and the fix."""

    @abstractmethod
    def show_figures(self) -> None:
        """Update figures and lists."""

    @abstractmethod
    def show_moved(self) -> None:
        """Update the figures, and the lists once cursor and window rest."""

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

    def action_latency_subject(self) -> None:
        """Ask for a subject."""
        frame = self.app_state.frame
        if frame is None:
            return
        subjects = all_subjects(frame, self.app_state.history.latencies.offered())
        choices = [ChooserLine(subject.title, subject) for subject in subjects]
        if choices:
            self.app.push_screen(
                Chooser("Latency of which subject", choices, present=self.choice.subject), self._picked
            )
        else:
            self.notify(self.empty_reason(), markup=False)

    def _picked(self, subject: LatencySubject | None) -> None:
        self.follow(subject)
        self.refresh_view()

    def action_latency_direction(self) -> None:
        """Take the next of both, reads, writes."""
        self.choice.next_direction()
        self.refresh_view()

    def action_latency_part(self) -> None:
        """Take the next part that this subject has."""
        if self.choice.next_part(self.app_state.history.latencies.ticks()):
            self.heat.start_over()
            self.refresh_view()
        elif self.choice.part is not None:
            self.notify(f"only the {self.choice.part} time of these I/Os is known", timeout=3, markup=False)

    def action_latency_mark(self) -> None:
        """Mark from here on, or clear the mark."""
        self.heat.toggle_mark()
        self.show_figures()

    def action_latency_zoom_in(self) -> None:
        """Half the time."""
        self.heat.zoom_time(0.5)
        self.show_moved()

    def action_latency_zoom_out(self) -> None:
        """Twice the time."""
        self.heat.zoom_time(2.0)
        self.show_moved()

    def action_latency_narrow(self) -> None:
        """Half the decades."""
        self.heat.zoom_latency(0.5)

    def action_latency_widen(self) -> None:
        """Twice the decades."""
        self.heat.zoom_latency(2.0)

    def action_latency_zoom_off(self) -> None:
        """All of it."""
        self.heat.zoom_off()
        self.show_moved()

    def action_latency_lines(self) -> None:
        """Percentile lines on or off."""
        self.heat.toggle_lines()

    def action_latency_seek(self) -> None:
        """Seek to the cursor."""
        interval = self.heat.interval_ns
        if interval is not None:
            self.app_state.transport.seek(interval[1])
