"""Detail pages: the attributes and history of one disk, path or port, and which page a table opens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size

from collectors.advice.finding import in_order
from collectors.advice.state_rules import DeviceStates, state_findings
from collectors.graph import paths_of, ports_of, targets_of
from collectors.hotness import verdict
from collectors.latency.subjects import LatencySubject, disk_subject, port_subject, target_subject
from collectors.model import Frame
from collectors.registry import fields_of
from collectors.session.time_format import clock_text
from collectors.tables.background.sentences import work_sentences
from collectors.tables.block.path_verdict import judge_paths, odd_words
from engine.replacing import replace
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.keys import bindings_of
from tui.screen_registry import DETAIL
from tui.screens.paths.facts import facts_of, path_facts, port_facts, target_facts
from tui.screens.paths.sentences import path_summary, port_summary, target_summary
from tui.screens.shared.base import View
from tui.screens.shared.chart_curves import AWAIT, IN_FLIGHT, IOPS, TAIL, THROUGHPUT, RowCharts
from tui.text.columns import figure_lines
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit, width_of
from tui.widgets.line import TextLine

TITLE_WIDTH = 13
TWO_COLUMNS_FROM = 70
MOST_RIGHT_PCT = 59
"""Most of the width for the right one of two columns."""
PANELS = (AWAIT, TAIL, IOPS, THROUGHPUT, IN_FLIGHT)

FACT_LINES = 8
"""Lines of the attributes of most devices, as in the style sheet."""
FIRST_FIGURES = ("await_ms", "queue_ms", "service_ms", "busy_pct", "p99_ms", "max_ms", "iops", "bytes_per_s")
"""Figures that come first where there is no room for all."""


class DetailView(View):
    """A sentence and attributes above charts: await as Q on S, latencies, IOPS, throughput, I/Os in flight."""

    ENTRY = DETAIL
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(DETAIL.actions)
    DEFAULT_CSS = """
    DetailView #verdict { height: 2; padding: 0 1; text-wrap: wrap; }
    DetailView.-tiny #verdict, DetailView.-flat #verdict { height: 1; }
    DetailView #facts { height: 8; }
    DetailView #figures { height: 1; }
    DetailView.-tall #figures { height: 3; }
    DetailView.-tiny #facts, DetailView.-flat #facts { height: 1fr; }
    DetailView.-lite #figures { height: 1fr; }
    DetailView #charts { grid-size: 2 2; grid-gutter: 0 1; height: 1fr; }
    DetailView #tail { display: none; }
    DetailView.-tall.-wide #charts { grid-size: 3 2; }
    DetailView.-tall.-wide #await { column-span: 2; }
    DetailView.-tall.-wide #tail { display: block; }
    """
    TABLE: ClassVar[str]
    """Frame table of the shown row."""

    def __init__(self, app_state: AppState, key: str) -> None:
        super().__init__(app_state)
        self._key = key

    def compose_body(self) -> ComposeResult:
        """Compose sentence, attributes and charts."""
        yield TextLine(" ", id="verdict")
        yield TextLine(" ", id="facts")
        yield TextLine(" ", id="figures", classes="extra")
        yield RowCharts(*(replace(panel, table=self.TABLE) for panel in PANELS))

    @abstractmethod
    def sentence(self, frame: Frame) -> str:
        """Describe its state in one line; "gone" if it vanished."""

    @abstractmethod
    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield title and value of each attribute, safe to print; none if it vanished."""

    def show_frame(self, frame: Frame) -> None:
        """Update sentence, attributes and charts; the attributes stay if it vanished."""
        self.query_one("#verdict", TextLine).put(self.sentence(frame))
        facts = list(self.facts(frame))
        if facts:
            self._put_facts(_two_columns(facts, self.size.width))
        elif self.app_state.is_rewound:
            self.query_one("#facts", TextLine).put(f" not there at {clock_text(frame.time_ns)}")
        table = frame.tables.get(self.TABLE)
        row = row_of(self._key, table)
        every = [field.id for field in fields_of(self.TABLE)]
        fields = [*(field_id for field_id in FIRST_FIGURES if field_id in every), *every]
        fields = list(dict.fromkeys(fields))
        line = self.query_one("#figures", TextLine)
        if table is None or row is None:
            line.put(" no figures")
        else:
            room = Size(self.size.width, line.size.height)
            line.put(figure_lines(table, self.TABLE, row, fields, room=room, glyphs=glyphs_of(self)))
        self.query_one(RowCharts).show(self.app_state, frame, self._key)

    def _put_facts(self, facts: Content) -> None:
        """Show attributes in as many lines as they need, up to half of the screen; a low one has no charts."""
        line, lines = self.query_one("#facts", TextLine), facts.plain.count("\n") + 1
        line.put(facts)
        is_low = self.has_class("-tiny") or self.has_class("-flat")
        line.styles.height = "1fr" if is_low else max(FACT_LINES, min(lines, self.size.height // 2 - 2))

    @property
    def page_subject(self) -> object:
        """Key of what it shows."""
        return self._key

    def load_device(self) -> str | None:
        """Return the disk or path."""
        return self._key

    def sheet_subject(self) -> tuple[str, str] | None:
        """Return what it shows."""
        return self.TABLE, self._key


def _two_columns(facts: Sequence[tuple[str, str]], width: int) -> Content:
    """Lay attributes out in two columns where there is room."""
    if width < TWO_COLUMNS_FROM:
        return Content("\n").join(_fact(title, value) for title, value in facts)
    half = (len(facts) + 1) // 2
    room = _left_room([value for _, value in facts[half:]], width)
    left = [_fact(title, fit(value, room)) for title, value in facts[:half]]
    right = [_fact(title, value) for title, value in facts[half:]] + [Content("")]
    return Content("\n").join(Content.assemble(*pair) for pair in zip(left, right, strict=False))


def _left_room(right_values: Sequence[str], width: int) -> int:
    """Cells of the values at the left: half of the width, less where those at the right need more, within reason."""
    needed = TITLE_WIDTH + max(map(width_of, right_values), default=0)
    right = max(width - width // 2, min(needed, width * MOST_RIGHT_PCT // 100))
    return width - right - TITLE_WIDTH


def _fact(title: str, value: str) -> Content:
    return Content.assemble((f" {title:<{TITLE_WIDTH - 1}}", "bold"), value)


class PortView(DetailView):
    """Attributes and charts of an HBA port."""

    TABLE = "hbas"

    def sentence(self, frame: Frame) -> str:
        """Describe its busy time and the share of its limit."""
        port = ports_of(frame.topology.graph).get(self._key)
        return "this port is gone" if port is None else port_summary(frame, port)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield its address, members and paths."""
        port = ports_of(frame.topology.graph).get(self._key)
        return iter(()) if port is None else port_facts(port, frame)

    def load_device(self) -> str | None:
        """Return nothing: a port is no device that a load can be put on."""
        return None

    def latency_subject(self) -> LatencySubject | None:
        """Return all paths of the port."""
        return None if self.app_state.frame is None else port_subject(self._key, self.app_state.frame.topology)


class TargetView(DetailView):
    """Attributes and charts of a target port."""

    TABLE = "target_ports"

    def sentence(self, frame: Frame) -> str:
        """Describe its busy time."""
        target = targets_of(frame.topology.graph).get(self._key)
        return "this target port is gone" if target is None else target_summary(frame, target)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield its address, array and paths."""
        target = targets_of(frame.topology.graph).get(self._key)
        return iter(()) if target is None else target_facts(target, frame)

    def load_device(self) -> str | None:
        """Return nothing: a port is no device that a load can be put on."""
        return None

    def latency_subject(self) -> LatencySubject | None:
        """Return all paths to the target port."""
        return None if self.app_state.frame is None else target_subject(self._key, self.app_state.frame.topology)


class PathView(DetailView):
    """Attributes and charts of a path."""

    TABLE = "paths"

    def sentence(self, frame: Frame) -> str:
        """Describe its state and how it compares with its peers."""
        row, judged = row_of(self._key, frame.tables.get("paths")), judge_paths(frame)
        odd = "" if row is None or judged is None else odd_words(frame, judged, row)
        return path_summary(frame, self._key, odd)

    def latency_subject(self) -> LatencySubject | None:
        """Return the path."""
        return None if self.app_state.frame is None else disk_subject(self._key, self.app_state.frame)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield its route, states and limits."""
        path = paths_of(frame.topology.graph).get(self._key)
        return iter(()) if path is None else path_facts(path, frame)


class DiskView(DetailView):
    """Attributes and charts of a disk or LUN."""

    TABLE = "disks"

    def sentence(self, frame: Frame) -> str:
        """Give the reason for its heat."""
        row = row_of(self._key, frame.tables.get("disks"))
        if row is None:
            return "this disk is gone"
        return "\n".join(filter(None, (verdict(frame, row), *work_sentences(frame, self._key), self._advice(frame))))

    def _advice(self, frame: Frame) -> str:
        """Say the surest finding from its settings and caches, with the command that would change it."""
        state = DeviceStates(frame.topology, frame.tables.get("disks"), frame.tables.get("caches"))
        found = in_order(state_findings(state, (self._key,)))
        return ": ".join(filter(None, (found[0].text, found[0].command))) if found else ""

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield the attributes of the device."""
        device = frame.topology.devices.get(self._key)
        return iter(()) if device is None else facts_of(device)

    def latency_subject(self) -> LatencySubject | None:
        """Return the disk."""
        return None if self.app_state.frame is None else disk_subject(self._key, self.app_state.frame)


_VIEWS: Mapping[str, type[DetailView]] = {view.TABLE: view for view in (DiskView, PathView, PortView, TargetView)}


def detail_view(app_state: AppState, table: str, key: str) -> DetailView:
    """Make the page of a disk, path or port."""
    return _VIEWS[table](app_state, key)
