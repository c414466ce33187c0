"""The sheet of a LUN, path or HBA port: all that is known of it, and its totals since its counters were cleared."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from collectors.model import Frame, Topology
from collectors.reports.sheets.find import SheetKind, sheet_of_key
from collectors.reports.sheets.sheet import Sheet, SheetFact, SheetSection
from tui.app_state import AppState
from tui.keys import bindings_of
from tui.screen_registry import SHEET
from tui.screens.paths.sheet_data import SheetSource
from tui.screens.shared.base import View
from tui.widgets.line import TextLine

KINDS = {
    "disks": SheetKind.LUN,
    "paths": SheetKind.PATH,
    "hbas": SheetKind.PORT,
    "target_ports": SheetKind.TARGET,
}
PORTS = frozenset({"hbas", "target_ports"})
"""Tables whose rows are no devices."""


def lun_below(topology: Topology, key: str) -> str | None:
    """Key of the LUN that a device built on others stands on, the first of several; None if there is none."""
    luns = {lun.key for lun in topology.graph.luns}
    below = {layer.key: layer.below for layer in topology.graph.layers}
    waiting, seen = [key], set[str]()
    while waiting:
        key = waiting.pop(0)
        if key in luns:
            return key
        if key not in seen:
            seen.add(key)
            waiting += below.get(key, ())
    return None


def has_sheet(topology: Topology, table: str, key: str) -> bool:
    """Whether there is a sheet of a row of a frame table."""
    graph = topology.graph
    keys = {
        "disks": (lun.key for lun in graph.luns),
        "paths": (path.key for path in graph.paths),
        "hbas": (port.key for port in graph.ports),
        "target_ports": (target.key for target in graph.targets),
    }
    return key in keys.get(table, ())


class TotalsRead(Message):
    """Totals were read from the recording."""


class SheetView(View):
    """Sections of facts that scroll; a missing one has its reason."""

    ENTRY = SHEET
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(SHEET.actions)
    DEFAULT_CSS = """
    SheetView #sheet-scroll { height: 1fr; }
    SheetView #sheet-text { width: 1fr; height: auto; }
    SheetView #sheet-title { height: 1; }
    """

    def __init__(self, app_state: AppState, table: str, key: str) -> None:
        super().__init__(app_state)
        self._table, self._key = table, key
        self._source = SheetSource(app_state, lambda: self.post_message(TotalsRead()))
        self._shown: tuple[Sheet, int] | None = None

    def compose_body(self) -> ComposeResult:
        """Compose the title and the scrolling text."""
        yield TextLine(" ", id="sheet-title")
        with VerticalScroll(id="sheet-scroll"):
            yield Static("", id="sheet-text", markup=False)

    def on_mount(self) -> None:
        """Let the arrows scroll."""
        super().on_mount()
        self.query_one("#sheet-scroll", VerticalScroll).focus()

    def on_unmount(self) -> None:
        """Read no further."""
        self._source.close()

    @on(TotalsRead)
    def _totals_read(self) -> None:
        self.refresh_view()

    def show_frame(self, frame: Frame) -> None:
        """Write the sheet again if anything in it changed; it stays if its subject vanished."""
        sheet = self.sheet(frame)
        title = self.query_one("#sheet-title", TextLine)
        if sheet is None:
            title.put(Content.assemble((" gone: not there at this moment", "bold $warning")))
            return
        keys = f"{self.key_text('session.clear')} clears its counters, {self.key_text('sheet.back')} goes back"
        title.put(Content.assemble((f" {sheet.kind} {sheet.name}", "bold"), (f"   {keys}", "dim")))
        width = self.query_one("#sheet-scroll", VerticalScroll).size.width - 2 or self.size.width - 2
        if self._shown != (sheet, width):
            self._shown = sheet, width
            self.query_one("#sheet-text", Static).update(sheet_page(sheet, width))

    def sheet(self, frame: Frame) -> Sheet | None:
        """Make the sheet at a frame; None if its subject is not there."""
        data = self._source.data(frame)
        sheet = sheet_of_key(KINDS[self._table], self._key, data)
        return None if sheet is None else self._source.with_totals(sheet, frame)

    @property
    def page_subject(self) -> object:
        """What it is the sheet of."""
        return self.sheet_subject()

    def sheet_subject(self) -> tuple[str, str] | None:
        """Return what it is the sheet of."""
        return self._table, self._key

    def load_device(self) -> str | None:
        """Return the disk or path."""
        return None if self._table in PORTS else self._key

    def action_sheet_host(self) -> None:
        """Count the whole host from now on."""
        self.app.call_later(self.app.run_action, "clear_host")


TWO_COLUMNS_FROM = 140
_TITLE = 18
_LEAST_TEXT = 12


def sheet_page(sheet: Sheet, width: int) -> Content:
    """Lay out all sections."""
    if width < TWO_COLUMNS_FROM:
        return Content("\n").join(_column(sheet.sections, width))
    half = width // 2 - 1
    columns = [list(_column(part, half)) for part in _halves(sheet.sections)]
    height = max(map(len, columns))
    left, right = (column + [Content("")] * (height - len(column)) for column in columns)
    return Content("\n").join(
        Content.assemble(one, " " * (width // 2 - one.cell_length), other)
        for one, other in zip(left, right, strict=True)
    )


def _halves(sections: tuple[SheetSection, ...]) -> tuple[tuple[SheetSection, ...], tuple[SheetSection, ...]]:
    """Split sections so that both columns have about the same height."""
    heights = [2 + len(section.facts) + len(section.lines) for section in sections]
    cut = min(range(1, len(sections) + 1), key=lambda at: max(sum(heights[:at]), sum(heights[at:])))
    return sections[:cut], sections[cut:]


def _column(sections: tuple[SheetSection, ...], width: int) -> Iterator[Content]:
    for number, section in enumerate(sections):
        if number:
            yield Content("")
        yield Content.assemble((f" {section.title}", "bold $accent"))
        for fact in section.facts:
            yield from _fact(fact, width)
        for line in section.lines:
            yield from (Content(f"   {piece}") for piece in _wrapped(line, width - 4))


def _fact(fact: SheetFact, width: int) -> Iterator[Content]:
    known = fact.value is not None
    text = fact.value if fact.value is not None else f"- ({fact.reason})"
    title = f"  {fact.title:<{_TITLE}} "
    for piece in _wrapped(text, width - len(title) - 1):
        yield Content.assemble((title, "bold"), (piece, "" if known else "dim"))
        title = " " * len(title)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, _LEAST_TEXT), drop_whitespace=True) or [""]
