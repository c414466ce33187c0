"""The time axis line: clock labels and event marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from engine.events import Event
from tui.text.glyphs import Glyphs
from tui.widgets.chart.axes import TimeScale, clock_ticks
from tui.widgets.chart.model import ChartFrame, cell_of

_CELLS_PER_CLOCK = 12


def events_in_sight(events: Sequence[Event], scale: TimeScale, frame: ChartFrame) -> list[tuple[int, Event]]:
    """List cells and events in order of time."""
    seen = [event for event in events if scale.start_ns <= event.time_ns < scale.end_ns]
    seen.sort(key=lambda event: event.time_ns)
    return [(cell_of(scale, event.time_ns, frame), event) for event in seen]


@dataclass(frozen=True, slots=True)
class TimeAxisStyle:
    """Marks and styles of the line."""

    glyphs: Glyphs
    axis: Style
    event: Style


def time_axis_line(
    scale: TimeScale, frame: ChartFrame, events: Sequence[tuple[int, Event]], axis_style: TimeAxisStyle
) -> Strip:
    """Draw clock labels and event marks below the plot."""
    marks = {cell: axis_style.glyphs.event_marks[event.kind] for cell, event in events}
    chars = _clock_chars(scale, frame, marks, axis_style.glyphs)
    segments = [Segment(axis_style.glyphs.corner.rjust(frame.axis_width), axis_style.axis)] if frame.axis_width else []
    start = 0
    for cell, mark in marks.items():
        if cell > start:
            segments.append(Segment("".join(chars[start:cell]), axis_style.axis))
        segments.append(Segment(mark, axis_style.event))
        start = cell + 1
    if start < frame.cells:
        segments.append(Segment("".join(chars[start:]), axis_style.axis))
    return Strip(segments, frame.axis_width + frame.cells)


def _clock_chars(scale: TimeScale, frame: ChartFrame, marks: Mapping[int, str], glyphs: Glyphs) -> list[str]:
    """Write clock labels where no event mark would hide a part of them."""
    chars = [glyphs.horizontal] * frame.cells
    free_from = 0
    for time_ns, label in clock_ticks(scale.start_ns, scale.end_ns, frame.cells // _CELLS_PER_CLOCK):
        cell = cell_of(scale, time_ns, frame)
        end = cell + 1 + len(label)
        if free_from <= cell and end < frame.cells and marks.keys().isdisjoint(range(cell, end + 1)):
            chars[cell:end] = [glyphs.tick_below, *label]
            free_from = end + 1
    return chars
