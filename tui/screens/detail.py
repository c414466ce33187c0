"""One disk, path or port: its attributes and history."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Grid as Cells
from textual.content import Content
from textual.geometry import Size

from collectors.model import Frame
from collectors.registry import fields_of
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.keys import bindings_of
from tui.screen_registry import DETAIL
from tui.screens.base import View
from tui.screens.chart_curves import IN_FLIGHT, IOPS, LATENCY, THROUGHPUT, draw
from tui.text.columns import figure_lines
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.chart.widget import Chart
from tui.widgets.line import TextLine

TITLE_WIDTH = 13
TWO_COLUMNS_FROM = 70
PANELS = (LATENCY, IOPS, THROUGHPUT, IN_FLIGHT)


class DetailView(View):
    """A sentence and attributes above charts of latency, IOPS, throughput and I/Os in flight."""

    ENTRY = DETAIL
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(DETAIL.actions)
    DEFAULT_CSS = """
    DetailView #verdict { height: 2; padding: 0 1; text-wrap: wrap; }
    DetailView.-tiny #verdict, DetailView.-flat #verdict { height: 1; }
    DetailView #facts { height: 8; }
    DetailView #figures { height: 1; }
    DetailView.-tall #figures { height: 3; }
    DetailView.-tiny #facts, DetailView.-flat #facts { height: 1fr; }
    DetailView #charts { grid-size: 2 2; grid-gutter: 0 1; height: 1fr; }
    """
    TABLE: ClassVar[str]
    """Frame table of the shown row."""

    def __init__(self, app_state: AppState, key: str) -> None:
        super().__init__(app_state)
        self._key = key
        self._panels = tuple(replace(panel, table=self.TABLE) for panel in PANELS)

    def compose_body(self) -> ComposeResult:
        """Compose sentence, attributes and charts."""
        yield TextLine(" ", id="verdict")
        yield TextLine(" ", id="facts")
        yield TextLine(" ", id="figures", classes="extra")
        with Cells(id="charts", classes="extra"):
            yield from (panel.make() for panel in self._panels)

    @abstractmethod
    def sentence(self, frame: Frame) -> str:
        """Describe its state in one line; "gone" if it vanished."""

    @abstractmethod
    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield title and value of each attribute, safe to print; none if it vanished."""

    def show_frame(self, frame: Frame) -> None:
        """Update sentence, attributes and charts; the charts stay if it vanished."""
        self.query_one("#verdict", TextLine).put(self.sentence(frame))
        facts = list(self.facts(frame))
        if facts:
            self.query_one("#facts", TextLine).put(_two_columns(facts, self.size.width))
        table = frame.tables.get(self.TABLE)
        row = row_of(self._key, table)
        fields = [field.id for field in fields_of(self.TABLE)]
        line = self.query_one("#figures", TextLine)
        if table is None or row is None:
            line.put(" no figures")
        else:
            room, marks = Size(self.size.width, line.size.height), glyphs_of(self).tier_marks
            line.put(figure_lines(table, self.TABLE, row, fields, room=room, marks=marks))
        series = self.app_state.history.series(self.TABLE, self._key, frame.time_ns, self.app_state.span_ns)
        if series is not None:
            for panel in self._panels:
                draw(self.query_one(f"#{panel.id}", Chart), series, panel, self.app_state)

    def action_disk_back(self) -> None:
        """Return to the previous screen."""
        self.app.pop_screen()


def _two_columns(facts: Sequence[tuple[str, str]], width: int) -> Content:
    """Lay attributes out in two columns where there is room."""
    if width < TWO_COLUMNS_FROM:
        return Content("\n").join(_fact(title, value) for title, value in facts)
    half, room = (len(facts) + 1) // 2, width // 2 - TITLE_WIDTH
    left = [_fact(title, fit(value, room)) for title, value in facts[:half]]
    right = [_fact(title, value) for title, value in facts[half:]] + [Content("")]
    return Content("\n").join(Content.assemble(*pair) for pair in zip(left, right, strict=False))


def _fact(title: str, value: str) -> Content:
    return Content.assemble((f" {title:<{TITLE_WIDTH - 1}}", "bold"), value)
