"""The time axis line: clock labels and event marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from engine.events import Event
from tui.text.glyphs import Glyphs
from tui.widgets.chart.axes import TimeScale, clock_ticks
from tui.widgets.chart.model import ChartFrame, cell_of
from tui.widgets.event_marks import EventGroup, groups_in_sight, mark_cells

_CELLS_PER_CLOCK = 12


class TimeAxisStyle(Struct, frozen=True):
    """Marks and styles of the line."""

    glyphs: Glyphs
    axis: Style
    event: Style


class TimeAxis(Struct, frozen=True, eq=False):
    """The events in sight, and the line below the plot."""

    asked: tuple[object, ...]
    """What both depend on."""
    groups: Sequence[EventGroup]
    line: Strip


def time_axis(
    events: Sequence[Event],
    scale: TimeScale,
    frame: ChartFrame,
    axis_style: TimeAxisStyle,
    note: str,
    *,
    before: TimeAxis | None,
) -> TimeAxis:
    """Group the events and draw the line, or give those of `before`, while time and events stay the same."""
    asked = events, scale, frame, axis_style, note
    if before is not None and before.asked == asked:
        return before
    groups = groups_in_sight(events, scale, frame)
    return TimeAxis(asked, groups, time_axis_line(scale, frame, groups, axis_style, note))


def time_axis_line(
    scale: TimeScale, frame: ChartFrame, groups: Sequence[EventGroup], axis_style: TimeAxisStyle, note: str = ""
) -> Strip:
    """Draw clock labels and event marks below the plot; `note` stands below the labels of the values."""
    marks = mark_cells(groups, frame.cells, axis_style.glyphs.event_marks)
    chars = _clock_chars(scale, frame, marks, axis_style.glyphs)
    corner = (note + axis_style.glyphs.corner).rjust(frame.axis_width)
    segments = [Segment(corner, axis_style.axis)] if frame.axis_width else []
    start = 0
    for cell, mark in sorted(marks.items()):
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
