"""One disk: what it is, and its last minutes."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid as Cells
from textual.content import Content

from collectors.heat import verdict
from collectors.model import Frame
from tui.curves import IN_FLIGHT, IOPS, LATENCY, THROUGHPUT, draw
from tui.device_facts import facts_of
from tui.keys import Place
from tui.scope import Scope
from tui.screens.base import View
from tui.subjects import row_of
from tui.widgets.chart import Chart
from tui.widgets.line import TextLine


class DiskView(View):
    """Facts beside charts of latency, IOPS, throughput and what is in flight."""

    PLACE = Place.DISK
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter", "app.pop_screen", "Back", show=False)]
    DEFAULT_CSS = """
    DiskView #facts { height: 6; }
    DiskView.-tiny #facts, DiskView.-flat #facts { height: 1fr; }
    DiskView #charts { grid-size: 2 2; grid-gutter: 0 1; height: 1fr; }
    DiskView.-tall #facts { height: 16; }
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
            facts = [Content.assemble((f" {title:<12}", "bold"), value) for title, value in facts_of(device)]
            self.query_one("#facts", TextLine).put(Content("\n").join(facts))
        series = self.scope.history.series("disks", self._key, frame.time_ns, self.scope.span_ns)
        if series is not None:
            for panel in self.PANELS:
                draw(self.query_one(f"#{panel.id}", Chart), series, panel, self.scope)
