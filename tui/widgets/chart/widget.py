"""Curves over time in braille dots, with axes, event marks, a legend that gives the values, and a moving cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from collectors.field import Unit
from engine.events import Event
from engine.replacing import replace
from tui.kept import AxisChoice
from tui.text.glyphs import glyphs_of
from tui.widgets.chart.lines import ChartPainter, empty_lines
from tui.widgets.chart.model import ChartData, ChartSeries, ChartStyle, Scales, Stack, ValueAxis, choose_scales, divide
from tui.widgets.painted import Painted
from tui.widgets.time_axis import TimeAxis

__all__ = ["Chart", "ChartSeries"]

WAITING = "waiting for data"
_CURVES = ("series", "read", "write", "total", "queue", "service", "peak", "busy")
_PARTS = ("title", "axis", "grid-line", "event", "inspect", "empty", "warm", "hot", *_CURVES)


class Chart(Painted, can_focus=True):
    """Time series of one unit, the first curve on top; every peak is drawn, missing values are gaps."""

    TAKES_ARROWS = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chart--{part}" for part in _PARTS}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "inspect(-1)", "Inspect earlier", show=False, id="inspect-earlier"),
        Binding("right", "inspect(1)", "Inspect later", show=False, id="inspect-later"),
        Binding("shift+left", "inspect_page(-1)", "Inspect much earlier", show=False, id="inspect-much-earlier"),
        Binding("shift+right", "inspect_page(1)", "Inspect much later", show=False, id="inspect-much-later"),
        Binding("escape", "inspect_end", "Leave inspection", show=False, id="inspect-end"),
    ]

    @dataclass
    class Inspected(Message):
        """The cursor moved to another time; None when it was removed."""

        chart: Chart
        time_ns: int | None

        @property
        def control(self) -> Chart:
            """The chart, for `@on` with a selector."""
            return self.chart

    def __init__(
        self,
        title: str,
        unit: Unit,
        *,
        axis: AxisChoice = AxisChoice.LINEAR,
        id: str | None = None,  # noqa: A002 - Textual's name for it
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._subject = ValueAxis(title, unit, axis)
        self.empty_text = WAITING
        """Shown while there are no figures."""
        self._data: ChartData | None = None
        self._scales: Scales | None = None
        self._time_axis: TimeAxis | None = None
        self._inspected_ns: int | None = None
        self._style_cache: ChartStyle | None = None

    @property
    def inspected_ns(self) -> int | None:
        """Time of the inspected point; None while nothing is inspected."""
        return self._inspected_ns

    def show(
        self,
        times_ns: NDArray[np.int64],
        series: Sequence[ChartSeries],
        events: Sequence[Event] = (),
        *,
        span_ns: int = 0,
        stack: Stack | None = None,
    ) -> None:
        """Take new figures; repaints changed lines only.

        `times_ns` and the values of every series have one shape. The chart covers the times given, and at least the
        last `span_ns` before their end. Clock steps back are drawn as standstill. A stack is drawn in place of curves.
        """
        steady = np.maximum.accumulate(times_ns) if len(times_ns) else times_ns
        self._data = None
        if len(times_ns):
            self._data = ChartData(steady, tuple(series), tuple(events), span_ns, stack=stack)
        if self._inspected_ns is not None and (self._data is None or self._inspected_ns < int(steady[0])):
            self._inspected_ns = None
        self.repaint()

    def set_title(self, title: str, *, of: str = "") -> None:
        """Set what the chart shows, and of what, from the next figures on."""
        self._subject = replace(self._subject, title=title, of=of)

    def set_axis(self, axis: AxisChoice) -> None:
        """Choose how the axis of values runs, likewise."""
        if axis is not self._subject.axis:
            self._scales = None
            self._subject = replace(self._subject, axis=axis)

    def inspect(self, time_ns: int | None) -> None:
        """Move the cursor to the point nearest to a time; None removes it."""
        self._put(None if time_ns is None else self._nearest(time_ns))

    def action_inspect(self, points: int) -> None:
        """Move the cursor by points; it starts at the newest."""
        if self._data is not None:
            newest = len(self._data.times_ns) - 1
            now = newest + 1 if self._inspected_ns is None else self._nearest(self._inspected_ns)
            self._put(max(0, min(newest, (newest if now is None else now) + points)))

    def action_inspect_page(self, pages: int) -> None:
        """Move the cursor by a tenth of the points."""
        if self._data is not None:
            self.action_inspect(pages * max(1, len(self._data.times_ns) // 10))

    def action_inspect_end(self) -> None:
        """Remove the cursor; without one the key goes to the screen."""
        if self._inspected_ns is None:
            raise SkipAction
        self._put(None)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked time."""
        offset = event.get_content_offset(self)
        if offset is None or self._scales is None:
            return
        frame, scale = divide(self.size), self._scales.time
        cell = offset.x - frame.axis_width
        if 0 <= cell < frame.cells:
            self.inspect(scale.start_ns + int((cell + 0.5) / frame.cells * scale.columns * scale.column_ns))

    def _nearest(self, time_ns: int) -> int | None:
        """Find the number of the point nearest to a time."""
        if self._data is None:
            return None
        return int(np.argmin(np.abs(self._data.times_ns - time_ns)))

    def _put(self, point: int | None) -> None:
        inspected = None if point is None or self._data is None else int(self._data.times_ns[point])
        if inspected != self._inspected_ns:
            self._inspected_ns = inspected
            self.repaint()
            self.post_message(self.Inspected(self, inspected))

    def draw_lines(self) -> list[Strip]:
        """Draw all lines from top to bottom."""
        chart_style, frame = self._cached_style(), divide(self.size)
        if self._data is None or not frame.cells:
            return empty_lines(self._subject, self.size, chart_style, self.empty_text)
        data = self._data
        if self._inspected_ns is not None:
            data = replace(data, inspected=self._nearest(self._inspected_ns))
        self._scales = choose_scales(data, self._subject, frame, chart_style.glyphs, self._scales)
        painter = ChartPainter(data, self._subject, frame, self._scales, chart_style, axis=self._time_axis)
        self._time_axis = painter.axis
        return painter.lines()

    def invalidate_style(self) -> None:
        """Clear cached styles."""
        self._style_cache = None

    def _cached_style(self) -> ChartStyle:
        """Styles and marks, looked up once per theme and focus."""
        if self._style_cache is None:
            names = sorted(self.COMPONENT_CLASSES)
            self._style_cache = ChartStyle(
                glyphs_of(self), {name: self.get_component_rich_style(name) for name in names}
            )
        return self._style_cache
