"""How the screens show what they show: length and axis of the charts, density, theme; and the screen in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.notifications import SeverityLevel
from textual.timer import Timer

from engine.background_call import BackgroundCall
from engine.errors import LunscopeError
from engine.text import safe_text
from tui.app.screen_files import SavedScreen, save_screen, screen_folders, text_of_lines
from tui.text.format import SECOND_NS, span_text
from tui.textual_internals.screens import shown_lines
from tui.widgets.chart.model import AxisChoice

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp

BRIEF_S = 2.0
SPANS_S = (60, 300, 900, 3600)
"""Lengths of the chart history."""


class Appearance:
    """The keys that change how things are shown."""

    def __init__(self, app: LunscopeApp, save_folder: Path | None) -> None:
        self._app, self._state = app, app.app_state
        self.save_folder = save_folder
        """Folder where the screen is saved, by the settings."""
        self._brief_timer: Timer | None = None

    def action_view_longer(self) -> None:
        """Lengthen the chart history."""
        self._change_span(1)

    def action_view_shorter(self) -> None:
        """Shorten the chart history."""
        self._change_span(-1)

    def _change_span(self, direction: int) -> None:
        position = SPANS_S.index(self._state.span_ns // SECOND_NS) + direction
        self._state.span_ns = SPANS_S[min(max(position, 0), len(SPANS_S) - 1)] * SECOND_NS
        self._say(f"charts show the last {span_text(self._state.span_ns / SECOND_NS)}")
        self._app.paint()

    def _say(self, text: str) -> None:
        """Show a text for a moment: a notice would lay the screen out again, at more cost than all else of a key."""
        self._state.brief = text
        if self._brief_timer is not None:
            self._brief_timer.stop()
        self._brief_timer = self._app.set_timer(BRIEF_S, self._end_brief)

    def _end_brief(self) -> None:
        self._state.brief = ""
        self._app.paint()

    def action_view_log(self) -> None:
        """Change the axis of the charts of latency."""
        choices = tuple(AxisChoice)
        position = choices.index(self._state.latency_axis) + 1
        self._state.latency_axis = axis = choices[position % len(choices)]
        self._app.notify(f"latency charts: {axis} axis", timeout=2, markup=False)
        self._app.paint()

    def action_view_density(self) -> None:
        """Show more or less on every screen, and keep that for the next start."""
        self._state.density = density = self._state.density.following
        self._state.choices.view.put("view", density)
        self._state.choices.write_soon(lambda problem: self._app.call_later(self._fail, problem))
        settings = self._app.settings.now
        # What was chosen by the settings is in force again at the next start.
        fate = f"; {settings.view} at the next start, by the settings" if settings.view else ""
        self._app.notify(f"view: {density}{fate}", timeout=4, markup=False)
        view = self._app.top_view
        if view is not None:
            view.take_density()
            self._app.call_after_refresh(view.refresh_view)

    def action_view_theme(self) -> None:
        """Take the next of lunscope's themes."""
        names = self._app.own_themes
        position = names.index(self._app.theme) if self._app.theme in names else -1
        self._app.theme = names[(position + 1) % len(names)]
        self._app.notify(f"theme {self._app.theme}", markup=False)

    def action_view_save(self) -> None:
        """Save the screen as SVG and text, and show where, or why not."""
        screen = SavedScreen(self._app.export_screenshot(), text_of_lines(shown_lines(self._app)))

        def save() -> None:
            try:
                saved = save_screen(screen, screen_folders(self.save_folder))
            except LunscopeError as error:
                self._app.call_later(self._fail, str(error), "error")
            else:
                self._app.call_later(
                    self._app.notify, f"screen saved: {safe_text(str(saved))}.svg, .txt", timeout=10, markup=False
                )

        BackgroundCall(save, "lunscope-save")

    def _fail(self, text: str, severity: SeverityLevel = "warning") -> None:
        self._app.notify(safe_text(text), severity=severity, timeout=15, markup=False)
