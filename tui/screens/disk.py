"""One disk: what it is, and its last minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Grid as Cells
from textual.content import Content

from collectors.heat import verdict
from collectors.latency_subject import LatencySubject
from collectors.model import Frame
from tui.curves import IN_FLIGHT, IOPS, LATENCY, THROUGHPUT, draw
from tui.device_facts import facts_of
from tui.keys import Place, bindings_of
from tui.latency_subjects import disk_subject
from tui.safe import fit
from tui.scope import Scope
from tui.screens.base import View
from tui.subjects import row_of
from tui.widgets.chart import Chart
from tui.widgets.line import TextLine

TITLE_WIDTH = 13
TWO_COLUMNS_FROM = 70


class DiskView(View):
    """Facts beside charts of latency, IOPS, throughput and what is in flight."""

    PLACE = Place.DISK
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Place.DISK)]
    DEFAULT_CSS = """
    DiskView #facts { height: 8; }
    DiskView.-tiny #facts, DiskView.-flat #facts { height: 1fr; }
    DiskView #charts { grid-size: 2 2; grid-gutter: 0 1; height: 1fr; }
    """

    PANELS = (LATENCY, IOPS, THROUGHPUT, IN_FLIGHT)

    def __init__(self, scope: Scope, key: str) -> None:
        super().__init__(scope)
        self._key = key

    def compose_body(self) -> ComposeResult:
        """Verdict, facts, charts."""
        yield TextLine(" ", id="verdict")
        yield TextLine(" ", id="facts")
        with Cells(id="charts", classes="extra"):
            yield from (panel.make() for panel in self.PANELS)

    def show_frame(self, frame: Frame) -> None:
        """Verdict, facts and charts of this disk; what vanished keeps its past."""
        device = frame.topology.devices.get(self._key)
        row = row_of(self._key, frame.tables.get("disks"))
        self.query_one("#verdict", TextLine).put(" this disk is gone" if row is None else f" {verdict(frame, row)}")
        if device is not None:
            self.query_one("#facts", TextLine).put(_two_columns(list(facts_of(device)), self.size.width))
        series = self.scope.history.series("disks", self._key, frame.time_ns, self.scope.span_ns)
        if series is not None:
            for panel in self.PANELS:
                draw(self.query_one(f"#{panel.id}", Chart), series, panel, self.scope)

    def latency_subject(self) -> LatencySubject | None:
        """Follow the disk."""
        return None if self.scope.frame is None else disk_subject(self._key, self.scope.frame)

    def action_disk_back(self) -> None:
        """Go back to the overview."""
        self.app.pop_screen()


def _two_columns(facts: Sequence[tuple[str, str]], width: int) -> Content:
    """Facts side by side, in two columns where there is room for them."""
    if width < TWO_COLUMNS_FROM:
        return Content("\n").join(_fact(title, value) for title, value in facts)
    half, room = (len(facts) + 1) // 2, width // 2 - TITLE_WIDTH
    left = [_fact(title, fit(value, room)) for title, value in facts[:half]]
    right = [_fact(title, value) for title, value in facts[half:]] + [Content("")]
    return Content("\n").join(Content.assemble(*pair) for pair in zip(left, right, strict=False))


def _fact(title: str, value: str) -> Content:
    return Content.assemble((f" {title:<{TITLE_WIDTH - 1}}", "bold"), value)
