"""Two parts of the time, or two recordings, figure by figure, with a verdict for each."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message

from collectors.model import Frame
from engine.text import safe_text
from tui.action import with_actions
from tui.app_state import AppState
from tui.history.intervals import RecordedIntervals
from tui.keys import bindings_of
from tui.load.candidates import device_of_row
from tui.screen_registry import COMPARE
from tui.screens.compare.actions import PartKeys
from tui.screens.compare.compare_work import Compared, CompareRequest, CompareWork
from tui.screens.compare.comparison_rows import compare_rows, detail_text, side_text, summary_text
from tui.screens.compare.parts import Part, TimePart
from tui.screens.compare.plot import OverlayPlot, distribution_overlay, time_overlay
from tui.screens.compare.table import CompareTable
from tui.screens.shared.base import View
from tui.transport import ReplayTransport
from tui.widgets.line import TextLine

_LARGE = (140, 40)
"""Size from which the curves are beside the table."""


class ComparisonChanged(Message, bubble=False):
    """A comparison was computed."""


class CompareScreen(View):
    """A, B, the table of figures, and the curves of the one under the cursor."""

    ENTRY = COMPARE
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(COMPARE.actions)
    DEFAULT_CSS = """
    CompareScreen #compare_body { height: 1fr; layout: vertical; }
    CompareScreen.-large #compare_body { layout: horizontal; }
    CompareScreen #table { height: 1fr; width: 1fr; }
    CompareScreen #curves { height: 8; layout: horizontal; }
    CompareScreen #curves.-alone { height: 1fr; }
    CompareScreen.-large #curves { height: 1fr; width: 1fr; layout: vertical; margin: 0 0 0 1; }
    CompareScreen OverlayPlot { height: 1fr; width: 1fr; }
    CompareScreen #summary, CompareScreen #detail { height: 2; text-wrap: wrap; padding: 0 1; }
    CompareScreen.-flat #curves, CompareScreen.-tiny #curves { display: none; }
    CompareScreen.-tiny #summary { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        transport = app_state.transport
        source = (
            RecordedIntervals(transport.source)
            if isinstance(transport, ReplayTransport)
            else app_state.history.intervals
        )
        asked = app_state.compared
        replayed = None if asked is None else asked.replayed
        self._work = CompareWork(source, lambda: self.post_message(ComparisonChanged()), replayed)
        self._keys = with_actions(self, PartKeys(self, self.redraw))
        self._shown: tuple[object, ...] = ()
        self._first_end_ns = 0

    def compose_body(self) -> ComposeResult:
        """Both sides, verdicts, table, the figure under the cursor, its curves."""
        yield TextLine(" ", id="side_a")
        yield TextLine(" ", id="side_b")
        yield TextLine(" ", id="summary")
        with Horizontal(id="compare_body"):
            yield CompareTable(id="table")
            with Vertical(id="curves"):
                yield OverlayPlot(id="distribution")
                yield OverlayPlot(id="over_time")
        yield TextLine(" ", id="detail")

    def on_unmount(self) -> None:
        """Leave the work to nobody."""
        self._work.close()

    # ------------------------------------------------------------------ drawing

    @property
    def follows_time(self) -> bool:
        """No: each side has a time of its own."""
        return False

    def show(self, frame: Frame | None) -> None:
        """Draw a frame; files are compared before there is any."""
        super().show(frame)
        if frame is None:
            self._draw()

    def show_frame(self, frame: Frame) -> None:  # noqa: ARG002 - what is compared goes on while the display is paused
        """Ask for the comparison with the newest intervals, and draw the last one."""
        self._draw()

    def load_device(self) -> str | None:
        """Return the disk or path under the cursor."""
        found = self.query_one(CompareTable).cursor_row
        return None if found is None else device_of_row(found.row.a.table, found.row.a.key)

    def redraw(self) -> None:
        """Draw after a choice."""
        self._shown = ()
        if self.is_whole:
            self._draw()

    @on(ComparisonChanged)
    def _computed(self) -> None:
        if self.is_whole and self.is_current:
            self._draw()

    @on(CompareTable.RowMoved)
    def _moved(self) -> None:
        self.redraw()

    def _request(self) -> CompareRequest | None:
        parts = self._keys.present_parts()
        if parts is None:
            return None
        whole = self._keys.whole()
        self._first_end_ns = self._first_end_ns or whole.end_ns
        goes_on = any(isinstance(part, TimePart) and part.end_ns is None for part in parts)
        grows = self._keys.is_live or whole.end_ns != self._first_end_ns
        now_ns = whole.end_ns if goes_on else 0
        return CompareRequest(*parts, self._keys.choice.options, self._keys.choice.tables, now_ns, grows)

    def _draw(self) -> None:
        request = self._request()
        self._lay_out()
        if request is None:
            self._draw_nothing()
            return
        result = self._work.of(request)
        is_of_other = result is None or (result.request.a, result.request.b) != (request.a, request.b)
        shown = (result, is_of_other, self._keys.choice.order, self._keys.view, self.size, self.app.theme)
        if shown == self._shown:
            return
        self._shown = shown
        if result is None or result.comparison is None:
            self._draw_pending(request, result)
        else:
            self._draw_result(result)

    def _draw_nothing(self) -> None:
        self._shown = ()
        keys = [self.key_text(f"compare.{name}") for name in ("a", "b")]
        mark = self.key_text("compare.mark")
        how = f"turn a knob of the load, or mark moments ({mark})" if self._keys.is_live else f"mark moments ({mark})"
        self._put_sides(" A -", " B -")
        self.query_one("#summary", TextLine).put(f"Nothing to compare yet: {how}; {keys[0]} and {keys[1]} choose parts")
        self._draw_empty("no two parts to compare")

    def _draw_pending(self, request: CompareRequest, result: Compared | None) -> None:
        self._put_sides(f" A {_title(request.a)}", f" B {_title(request.b)}")
        is_problem = result is not None and (result.request.a, result.request.b) == (request.a, request.b)
        problem = safe_text(result.problem) if result is not None and is_problem else ""
        self.query_one("#summary", TextLine).put(
            Content.styled(problem, "$warning") if problem else Content("comparing ...")
        )
        self._draw_empty("not compared" if problem else "comparing ...")

    def _draw_empty(self, hint: str) -> None:
        self.query_one(CompareTable).show((), self._keys.choice.order, self._keys.choice.options.confidence, hint)
        self.query_one("#detail", TextLine).put(" ")
        for name in ("#distribution", "#over_time"):
            self.query_one(name, OverlayPlot).show(None)

    def _put_sides(self, a: str, b: str) -> None:
        self.query_one("#side_a", TextLine).put(Content.styled(a, "bold"))
        self.query_one("#side_b", TextLine).put(Content.styled(b, "bold"))

    def _draw_result(self, result: Compared) -> None:
        comparison, request = result.comparison, result.request
        assert comparison is not None, "checked by the caller"
        self._put_sides(f" {side_text('A', comparison.a, request.a)}", f" {side_text('B', comparison.b, request.b)}")
        self.query_one("#summary", TextLine).put(summary_text(result))
        table = self.query_one(CompareTable)
        hint = "no figure in common"
        table.show(
            compare_rows(comparison, self._keys.choice.order),
            self._keys.choice.order,
            comparison.options.confidence,
            hint,
        )
        row = table.cursor_row
        self.query_one("#detail", TextLine).put(" " if row is None else detail_text(row, result))
        distribution, over_time = (self.query_one(f"#{name}", OverlayPlot) for name in ("distribution", "over_time"))
        distribution.show(None if row is None else distribution_overlay(row))
        over_time.show(None if row is None else time_overlay(row, comparison.a, comparison.b))

    def _lay_out(self) -> None:
        """Put the curves beside the table in a large window, below it in a small one."""
        large = self.size.width >= _LARGE[0] and self.size.height >= _LARGE[1]
        self.set_class(large, "-large")
        curves = self.query_one("#curves")
        curves.display = self._keys.view != "table"
        curves.set_class(self._keys.view == "curves", "-alone")
        self.query_one(CompareTable).display = self._keys.view != "curves"


def _title(part: Part) -> str:
    return safe_text(part.title)
