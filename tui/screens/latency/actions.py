"""Actions of the latency screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from collectors.latency.nfs_subjects import all_subjects
from collectors.latency.subjects import Direction, LatencySubject, parts_of, series_of
from collectors.latency.ticks import LatencyTicks
from collectors.model import Part
from tui.screens.shared.chooser import Chooser, ChooserLine

if TYPE_CHECKING:
    from tui.screens.latency.screen import LatencyScreen


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


class LatencyKeys:
    """Selection and zoom; the screen shows the result."""

    def __init__(self, screen: LatencyScreen) -> None:
        self._screen, self._state = screen, screen.app_state

    def action_latency_subject(self) -> None:
        """Ask for a subject."""
        frame = self._state.frame
        if frame is None:
            return
        subjects = all_subjects(frame, self._state.history.latencies.offered())
        choices = [ChooserLine(subject.title, subject) for subject in subjects]
        if choices:
            self._screen.app.push_screen(
                Chooser("Latency of which subject", choices, present=self._screen.choice.subject), self._picked
            )
        else:
            self._screen.notify(self._screen.empty_reason(), markup=False)

    def _picked(self, subject: LatencySubject | None) -> None:
        self._screen.follow(subject)
        self._screen.refresh_view()

    def action_latency_direction(self) -> None:
        """Take the next of both, reads, writes."""
        self._screen.choice.next_direction()
        self._screen.refresh_view()

    def action_latency_part(self) -> None:
        """Take the next part that this subject has."""
        if self._screen.choice.next_part(self._state.history.latencies.ticks()):
            self._screen.heat.start_over()
            self._screen.refresh_view()
        elif self._screen.choice.part is not None:
            self._screen.notify(
                f"only the {self._screen.choice.part} time of these I/Os is known", timeout=3, markup=False
            )

    def action_latency_mark(self) -> None:
        """Mark from here on, or clear the mark."""
        self._screen.heat.toggle_mark()
        self._screen.show_figures()

    def action_latency_zoom_in(self) -> None:
        """Half the time."""
        self._screen.heat.zoom_time(0.5)
        self._screen.show_moved()

    def action_latency_zoom_out(self) -> None:
        """Twice the time."""
        self._screen.heat.zoom_time(2.0)
        self._screen.show_moved()

    def action_latency_narrow(self) -> None:
        """Half the decades."""
        self._screen.heat.zoom_latency(0.5)

    def action_latency_widen(self) -> None:
        """Twice the decades."""
        self._screen.heat.zoom_latency(2.0)

    def action_latency_zoom_off(self) -> None:
        """All of it."""
        self._screen.heat.zoom_off()
        self._screen.show_moved()

    def action_latency_lines(self) -> None:
        """Percentile lines on or off."""
        self._screen.heat.toggle_lines()

    def action_latency_seek(self) -> None:
        """Seek to the cursor."""
        interval = self._screen.heat.interval_ns
        if interval is not None:
            self._state.transport.seek(interval[1])
