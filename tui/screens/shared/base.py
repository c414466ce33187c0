"""Base class of all views: header, tabs, transport bar and key line around a body."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.events import Key, Resize
from textual.timer import Timer

from collectors.latency.subjects import LatencySubject
from collectors.model import Frame
from collectors.registry import fields_of
from engine.backend.outstanding import short_text
from engine.running.status import LoadState
from engine.text import safe_text
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.history.trends import RowOf, Trends
from tui.kept import Density, TableChoices
from tui.keys import BY_ID, keys_in_force
from tui.screen_registry import ScreenEntry
from tui.screens.shared.kept_choices import GridChoices
from tui.screens.shared.process_scope import Scope, scope_of
from tui.text.columns import TREND, TREND_HELP
from tui.textual_internals.laid_out import LaidOutOnce
from tui.textual_internals.screens import has_binding
from tui.widgets.grid.table import Grid
from tui.widgets.header import HeaderLine, HintLine, KeyLine, Tabs
from tui.widgets.timeline import Timeline
from tui.widgets.transport import TransportBar

WIDTHS = [(0, "-narrow"), (80, "-normal"), (140, "-wide")]
HEIGHTS = [(0, "-tiny"), (10, "-flat"), (18, "-low"), (40, "-tall")]
"""Style classes of a screen by its size."""
WRITE_AFTER_S = 0.5
"""Time without another choice before they are written."""
CURSOR_REST_S = 0.08
"""Time without another move of the cursor before the charts of its row are drawn: longer than between repeats of a key
that is held, too short to be noticed."""


class View(LaidOutOnce[None]):
    """A screen that shows frames; the app hands them to the one on top only."""

    ENTRY: ClassVar[ScreenEntry]
    DEFAULT_CSS = """
    View { overflow: hidden hidden; }
    View.-tiny Tabs, View.-tiny KeyLine, View.-tiny .extra { display: none; }
    View.-flat .extra { display: none; }
    View.-lite .chart-area, View.-dense KeyLine { display: none !important; }
    View.-lite SubjectCharts, View.-dense SubjectCharts { display: none !important; }
    View.-wide TransportBar.-rewound Timeline { display: block; margin: 0 0 0 2; }
    View.-wide TransportBar.-rewound TextLine { width: auto; min-width: 40; max-width: 50%; }
    """
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(self, app_state: AppState) -> None:
        size = self.app.size
        # Textual sets them only on resize, and then lays the screen out again.
        super().__init__(classes=f"{_reached(WIDTHS, size.width)} {_reached(HEIGHTS, size.height)}")
        self.take_styles_for_new()
        self.app_state = app_state
        self._grid_choices: dict[str, GridChoices] = {}
        """Choices for the grids, by the name they are kept by."""
        self._write_timer: Timer | None = None
        self._rest_timer: Timer | None = None
        self._cursor_moved_s = 0.0
        self.take_density()

    def take_density(self) -> None:
        """Show as much as was chosen."""
        for density in (Density.DENSE, Density.LITE):
            self.set_class(self.app_state.density is density, f"-{density}")

    def compose(self) -> ComposeResult:
        """Compose the parts around the body."""
        yield HeaderLine()
        yield Tabs()
        yield from self.compose_body()
        yield TransportBar()
        if self.app_state.choices.hints.wanted:
            yield HintLine(self.key_text)
        yield KeyLine()

    @abstractmethod
    def compose_body(self) -> ComposeResult:
        """Make the widgets between tabs and transport bar."""

    @abstractmethod
    def show_frame(self, frame: Frame) -> None:
        """Draw one frame in the body."""

    @property
    def is_whole(self) -> bool:
        """Whether all of its parts are there: not while it is being made, nor while it or the app ends.

        A screen that is left before its parts have made theirs is mounted without them; then `display` is false.
        """
        return self.is_mounted and self.display and {type(child) for child in self.children} >= _PARTS

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key may do something: not while parts are missing."""
        return super().check_action(action, parameters) if self.is_whole else False

    @property
    def page_subject(self) -> object:
        """The thing that it is about, among those that views of its class can be about."""
        return None

    def action_page_back(self) -> None:
        """Return to the previous screen."""
        self.app.pop_screen()

    @property
    def idle_actions(self) -> frozenset[str]:
        """Ids of its actions that would do nothing now: the key line leaves them out."""
        return frozenset()

    @property
    def follows_time(self) -> bool:
        """Whether it shows the moment of the frame, not the present."""
        return True

    def show(self, frame: Frame | None) -> None:
        """Draw a frame; before the first one, the static parts."""
        self.take_density()
        self.query_one(HeaderLine).show(frame, self.app_state)
        self.show_time()
        self.query_one(Tabs).show(self.ENTRY, self.key_text, *self.note(frame))
        if frame is not None:
            self._stop_rest_timer()
            self.show_frame(frame)
            for choices in self._grid_choices.values():
                choices.find_pinned(frame.topology)

    def draw_at_rest(self, draw: Callable[[Frame], None]) -> None:
        """Draw something of the row under the cursor; while a key is held only once the cursor rests.

        Charts cost several times what moving the cursor does, and nobody reads them in between. After a single key they
        are drawn with the cursor: later they would need a paint of their own.
        """
        now_s = time.monotonic()
        is_single, self._cursor_moved_s = now_s - self._cursor_moved_s > CURSOR_REST_S, now_s
        self._stop_rest_timer()
        if is_single:
            self._draw_rested(draw)
        else:
            self._rest_timer = self.set_timer(CURSOR_REST_S, lambda: self._draw_rested(draw))

    def _draw_rested(self, draw: Callable[[Frame], None]) -> None:
        self._rest_timer = None
        if self.is_whole and self.app_state.frame is not None:
            draw(self.app_state.frame)

    def _stop_rest_timer(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.stop()
            self._rest_timer = None

    def show_time(self) -> None:
        """Update the transport bar."""
        self.query_one(TransportBar).show(self.app_state, follows_time=self.follows_time)

    def show_peaks(self) -> None:
        """Show the peaks that were found in the recording since."""
        self.show_time()

    def show_note(self) -> None:
        """Update the status that every screen shows, between frames."""
        self.query_one(Tabs).show(self.ENTRY, self.key_text, *self.note(self.app_state.frame))

    def note(self, frame: Frame | None) -> tuple[str, str]:
        """Status on every screen, as text and style: damage of a file, the load, the number of notices."""
        status = next(iter(self.app_state.loads), None)
        if status is not None and status.outstanding:
            return f"load {status.state}: {short_text(status.outstanding)}", "bold $error"
        if status is not None and status.state is not LoadState.IDLE:
            now = "now: " if self.app_state.is_rewound else ""
            return f"{now}load {status.state}", "bold $accent" if status.state is LoadState.RUNNING else ""
        if self.app_state.transport.notice:
            return safe_text(self.app_state.transport.notice), "bold $warning"
        count = len(self.app_state.wrong_settings) + (len(frame.topology.host.notices) if frame else 0)
        if not count:
            return "", ""
        return f"{count} notice{'s' if count > 1 else ''}: {self.key_text('view.help')}", "$warning"

    def latency_subject(self) -> LatencySubject | None:
        """Latency subject of the current selection; None if there is none."""
        return None

    def load_device(self) -> str | None:
        """Key of the block device under the cursor, for a load on it; None if there is none."""
        return None

    def sheet_subject(self) -> tuple[str, str] | None:
        """Frame table and key of what is selected: a disk, path or HBA port; None if nothing is."""
        key, frame = self.load_device(), self.app_state.frame
        if key is None or frame is None:
            return None
        tables = ("disks", "paths")
        return next(((name, key) for name in tables if row_of(key, frame.tables.get(name)) is not None), None)

    def process_scope(self, frame: Frame) -> Scope | None:
        """Return what the screen of processes shows for the current selection; None if nothing is selected."""
        subject = self.latency_subject()
        return None if subject is None else scope_of(subject, frame.topology)

    def key_text(self, action_id: str) -> str:
        """Return the displayed key of an action."""
        return self.app.get_key_display(BY_ID[action_id].binding().with_key(self._first_key(action_id)))

    def _first_key(self, action_id: str) -> str:
        return keys_in_force(BY_ID[action_id], self.app_state.keys)[0]

    def on_key(self, event: Key) -> None:
        """Take keys that the focused widget left: those of the filter of a table, and Escape to hide the hints."""
        if event.key in ("slash", "escape") and self._filter_unfocused(event.key):
            event.stop()
        elif event.key == "escape" and self.app_state.choices.hints.wanted:
            self._hide_hints()

    def _filter_unfocused(self, key: str) -> bool:
        """Edit or drop the filter of a table that has not the focus, as one beside a chart; returns whether it did."""
        grids = [grid for grid in self._grids() if grid.region and grid is not self.focused]
        if key == "escape":
            filtered = [grid for grid in grids if grid.filter_text]
            for grid in filtered:
                grid.set_filter("")
            return bool(filtered)
        if not grids or isinstance(self.focused, Grid) or has_binding(self, key):
            return False
        self.set_focus(grids[0])
        grids[0].action_filter()
        return True

    @on(HintLine.Dismissed)
    def _hide_hints(self) -> None:
        self.app_state.choices.hints.dismiss()
        self._write_choices()
        self._show_hints()

    def _show_hints(self) -> None:
        lines = self.query(HintLine)
        if not self.app_state.choices.hints.wanted:
            lines.remove()
            return
        for line in lines:
            line.show()

    @on(Timeline.Seek)
    def _seek(self, event: Timeline.Seek) -> None:
        """Seek to the clicked time."""
        event.stop()
        self.app_state.transport.seek(event.time_ns)

    def on_mount(self) -> None:
        """Show the tables as they were chosen."""
        for grid in self._grids():
            offered, name = {column.field_id: column for column in grid.offered}, self._kept_as(grid)
            kept = self.app_state.choices.columns.of(name) or ()
            grid.set_columns([offered[field_id] for field_id in kept if field_id in offered])
            self._grid_choices[name] = GridChoices(grid, self.app_state.choices.tables.of(name) or TableChoices())
        if self.app_state.frame is None:
            self.refresh_view()  # At the start: keys and tabs are in the first picture.

    def _grids(self) -> Iterator[Grid]:
        # A selector by class also finds Textual's container of that name.
        return (widget for widget in self.query("Grid") if isinstance(widget, Grid))

    @on(Grid.ChoicesChanged)
    def _keep_choices(self, event: Grid.ChoicesChanged) -> None:
        """Keep what was chosen, and write it when no more keys come."""
        name, frame = self._kept_as(event.grid), self.app_state.frame
        choices = self._grid_choices[name].present(None if frame is None else frame.topology)
        self.app_state.choices.tables.put(name, choices)
        if self._write_timer is not None:
            self._write_timer.stop()
        self._write_timer = self.set_timer(WRITE_AFTER_S, self._write_choices)

    def _write_choices(self) -> None:
        self.app_state.choices.write_soon(lambda problem: self.call_later(self._warn, problem))

    def _warn(self, problem: str) -> None:
        self.notify(safe_text(problem), severity="warning", timeout=15, markup=False)

    @on(Grid.ColumnsWanted)
    def _choose_columns(self, event: Grid.ColumnsWanted) -> None:
        from tui.screens.shared.column_dialog import ColumnDialog  # noqa: PLC0415 (it can wait until it is asked for)

        grid = event.grid
        help_texts = {field.id: field.help for field in fields_of(grid.table_name)} | {TREND: TREND_HELP}
        dialog = ColumnDialog(grid.offered, grid.columns, grid.default_columns, help_texts)
        self.app.push_screen(dialog, lambda chosen: self._use_columns(grid, chosen))

    @on(Grid.ColumnHelpWanted)
    def _explain_columns(self, event: Grid.ColumnHelpWanted) -> None:
        from tui.screens.shared.column_help import ColumnHelp  # noqa: PLC0415 (as above)

        self.app.push_screen(ColumnHelp(event.grid, event.field_id))

    def _use_columns(self, grid: Grid, chosen: tuple[str, ...] | None) -> None:
        if chosen is None:
            return
        offered = {column.field_id: column for column in grid.offered}
        grid.set_columns([offered[field_id] for field_id in chosen])
        kept = () if grid.columns == grid.default_columns else chosen
        self.app_state.choices.columns.put(self._kept_as(grid), kept)
        self._write_choices()

    def _kept_as(self, grid: Grid) -> str:
        return f"{self.ENTRY.id}.{grid.id}"

    def on_screen_resume(self) -> None:
        """Draw frames that arrived while another screen was shown."""
        self.call_after_refresh(self.refresh_view)

    def on_resize(self, event: Resize) -> None:
        """Draw again once the widgets have their sizes, as lines depend on the width."""
        if event.size == self.outer_size:
            self.call_after_refresh(self.refresh_view)

    def trends(self, frame: Frame, row_of: RowOf) -> Trends:
        """Recent histories of the rows of a table up to a frame."""
        return Trends(self.app_state.history, frame.time_ns, self.app_state.interval_s, row_of)

    def refresh_view(self) -> None:
        """Redraw the current frame and the keys."""
        if self.is_whole:
            self.show(self.app_state.frame)
            self.show_keys()
            self._show_hints()

    def show_keys(self) -> None:
        """Show the keys that do something now."""
        self.query_one(KeyLine).show(self.ENTRY, self.app_state, self.key_text, self.idle_actions)


_PARTS = {HeaderLine, Tabs, TransportBar, KeyLine}


def view_class(entry: ScreenEntry) -> type[View]:
    """Import the class of a screen."""
    module, _, name = entry.view.partition(":")
    view: type[View] = getattr(import_module(f"tui.screens.{module}"), name)
    return view


def _reached(breakpoints: list[tuple[int, str]], size: int) -> str:
    return [name for least, name in breakpoints if size >= least][-1]
