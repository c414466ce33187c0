"""Base class of every app that shows our widgets: style sheet, themes, glyphs, and output in plain ASCII."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Generic

from rich.console import RenderableType
from rich.segment import Segment
from textual import dom, strip, widget
from textual.app import App, ReturnType
from textual.binding import Binding
from textual.cache import LRUCache
from textual.css.scalar import Scalar
from textual.events import Event, InputEvent, Key, Resize
from textual.filter import LineFilter
from textual.geometry import Region
from textual.notifications import Notification, Notify, SeverityLevel
from textual.screen import ModalScreen, Screen
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.theme import Theme
from textual.timer import Timer, TimerCallback
from textual.widgets._toast import ToastHolder
from textual.worker import WorkerFailed

from tui.terminal.tty import TerminalUse
from tui.text.glyphs import UNICODE, Glyphs, choose_glyphs
from tui.text.plain import PlainFilter
from tui.textual_internals.driver import TerminalDriver
from tui.textual_internals.lean_compositor import only_changes
from tui.textual_internals.message_handlers import search_handlers_once
from tui.textual_internals.sheets import ThemeSheets
from tui.textual_internals.true_colours import use_true_colours
from tui.theming import BASE_CSS, ansi_color, default_theme, register_themes, variable_defaults

LEAST_LEFT_S = 0.1
"""Enough to start a timer before it expires."""


class Notice(Notification):
    """A notification whose remaining time is always a valid timer interval.

    Textual asks whether a notification has expired, and a little later how long to show it. Where it expires between
    the two, the time left is negative, and a Textual timer with a negative interval loops without ever yielding to
    the event loop: the app hangs.
    """

    @property
    def time_left(self) -> float:
        """Remaining seconds, at least what a timer needs to start."""
        return max(LEAST_LEFT_S, super().time_left)

    @property
    def has_expired(self) -> bool:
        """Whether it has expired."""
        return super().time_left <= 0


_PLAIN = PlainFilter()
_KEY_WORDS = {"↑": "up", "↓": "down", "←": "left", "→": "right", "⏎": "enter", "⌫": "backspace"}


class PlainScrollBarRender(ScrollBarRender):
    """A scrollbar without block characters at its ends."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


class ThemedApp(App[ReturnType], Generic[ReturnType]):
    """An app with our themes registered and one chosen for the terminal."""

    CSS_PATH = BASE_CSS
    ALLOW_SELECT = False
    """Textual's selection ends the app when the mouse goes down on a widget that is being removed; terminals select
    with Shift."""
    terminal: TerminalUse | None = None
    """Set before the app runs; read by the driver."""

    _variables_of: ClassVar[dict[str, tuple[Theme, dict[str, str]]]] = {}
    """Themes with their variables, by name."""

    def __init__(self, *, glyphs: Glyphs | None = None, theme_folder: Path | None = None) -> None:
        leave_out_strip_caches()
        keep_few_boxes()
        keep_few_query_results()
        search_handlers_once()
        use_true_colours()
        super().__init__(driver_class=TerminalDriver, ansi_color=ansi_color())
        self.stylesheet = ThemeSheets(variables=self.get_css_variables())
        self.glyphs = choose_glyphs("auto") if glyphs is None else glyphs
        ScrollBar.renderer = ScrollBarRender if self.glyphs is UNICODE else PlainScrollBarRender
        self.theme_notices = register_themes(self, theme_folder)
        """One line for each broken theme file of the user's."""
        self.theme = default_theme(self.console.color_system)

    def get_key_display(self, binding: Binding) -> str:
        """Key names in ASCII, where arrows cannot be drawn."""
        shown = super().get_key_display(binding)
        return shown if self.glyphs is UNICODE else "".join(_KEY_WORDS.get(mark, mark) for mark in shown)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Add the ASCII filter, where the terminal supports nothing else."""
        filters = super().get_line_filters()
        return filters if self.glyphs is UNICODE else (*filters, _PLAIN)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Give our variables to themes that lack them, Textual's own among them."""
        return variable_defaults(self.current_theme)

    @property
    def failure(self) -> Exception | None:
        """What ended the app although nobody asked for it; for a worker what it raised, with its traceback."""
        failure = self._exception
        return failure.error if isinstance(failure, WorkerFailed) and isinstance(failure.error, Exception) else failure

    def _fatal_error(self) -> None:
        """End the app; whoever runs it writes `failure` down, where Textual would print pages of it."""
        self._close_messages_no_wait()

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a notice in the corner for `timeout` seconds; from any thread."""
        timeout_s = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Notice(message, title, severity, timeout_s, markup=markup)))

    def set_timer(
        self, delay: float, callback: TimerCallback | None = None, *, name: str | None = None, pause: bool = False
    ) -> Timer:
        """Call back once, however late: Textual drops a call whose time has passed before its task runs.

        Textual resumes painting and passes on a new size in this way: a dropped call would freeze the screen.
        """
        timer = super().set_timer(delay, callback, name=name, pause=pause)
        timer._skip = False
        return timer

    async def on_event(self, event: Event) -> None:
        """Drop queued keys once the app is ending: they would be handled before it ends. Esc closes a notice."""
        if isinstance(event, Resize):
            forget_geometry()
        if self._exit and isinstance(event, InputEvent):
            return
        if not (isinstance(event, Key) and event.key == "escape" and self._close_newest_notice()):
            await super().on_event(event)

    def _close_newest_notice(self) -> bool:
        """Close the notice that came last; returns whether there was one. In a dialog Escape belongs to the dialog."""
        notices = [] if isinstance(self.screen, ModalScreen) else list(self._notifications)
        if notices:
            self._unnotify(notices[-1])
        return bool(notices)

    def _refresh_notifications(self) -> None:
        """Show the notices; Textual removes one that was closed, and keeps the widget around it without end."""
        super()._refresh_notifications()
        if self._screen_stack:
            for holder in self.screen.query(ToastHolder):
                if holder.is_mounted and not holder.children:
                    holder.remove()

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of the theme in force; Textual asks for them four times before it paints anything.

        Computing their shades each time is a twentieth of an app's start.
        """
        theme = self.current_theme
        known = self._variables_of.get(theme.name)
        if known is None or known[0] != theme:
            known = self._variables_of[theme.name] = theme, super().get_css_variables()
        self.theme_variables = dict(known[1])
        return dict(known[1])

    @property
    def terminal_driver(self) -> TerminalDriver | None:
        """The driver of a terminal; None where there is none, as in tests."""
        return self._driver if isinstance(self._driver, TerminalDriver) else None

    def paint_at_once(self) -> None:
        """Paint now what changed on the screen; Textual waits for its next tick."""
        if self._screen_stack:
            self.screen._on_timer_update()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Delimit one frame for the driver: its changes are sent to a slow terminal as a whole or dropped."""
        driver = self.terminal_driver
        if driver is None:
            super()._display(screen, renderable)
            return
        with driver.frame() as wanted:
            if wanted:
                super()._display(screen, only_changes(renderable, driver.cells))


class _NoCache:
    """Stores nothing."""

    __slots__ = ()

    def get(self, _key: object, default: object = None) -> object:
        return default

    def __setitem__(self, _key: object, _value: object) -> None:
        return


_NO_CACHE = _NoCache()
_MOST_BOXES = 3
"""Boxes of a widget that are kept: Textual keeps 16, those of sizes that a window had long ago."""
_MOST_QUERIES = 64
"""Results of `query_one` that a node keeps: Textual keeps 1024, nearly all from before its children last changed, and
with them the widgets that were found then."""
_CACHED = [
    each
    for owner in (Region, Scalar, Segment)
    for each in (getattr(owner, name) for name in vars(owner))
    if hasattr(each, "cache_clear")
]
"""Functions with functools.lru_cache."""


def leave_out_strip_caches() -> None:
    """Make every new line share one cache that stores nothing.

    A line has seven caches of its own, which are empty or hold what is not asked for again: our widgets draw a line
    anew only when it changed. With some thousand lines on all screens they are half of the objects that a full
    garbage collection goes through, which takes longer than several frames.
    """
    vars(strip)["FIFOCache"] = lambda _size: _NO_CACHE


def keep_few_boxes() -> None:
    """Let widgets made from now on keep few of the boxes they had in windows of other sizes."""
    vars(widget)["LRUCache"] = lambda _size: LRUCache(_MOST_BOXES)


def keep_few_query_results() -> None:
    """Let nodes made from now on keep few of the widgets that were searched for below them."""
    vars(dom)["LRUCache"] = lambda _size: LRUCache(_MOST_QUERIES)


def forget_geometry() -> None:
    """Drop results of calculations with positions, lengths and cuts of texts: with a new size they are of no use."""
    for function in _CACHED:
        function.cache_clear()
