"""The palette: every command that works here, by groups, with its key."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.screen import ModalScreen

from tui.action import ANYWHERE, Action
from tui.keys import actions_at, keys_in_force
from tui.screen_registry import ScreenEntry
from tui.screens.shared.base import View
from tui.screens.shared.chooser import Chooser, ChooserLine
from tui.widgets.grid.bindings import PALETTE_IDS
from tui.widgets.grid.table import Grid

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp

Command = Callable[[], object]

GROUPS = ("Table", "Knobs", "Screens", "View", "Time", "Session", "Settings")
"""Groups of the palette, in order, after that of the screen itself."""
_SETTINGS = frozenset({"view.theme", "view.settings", "session.sooner", "session.later", "session.tags"})


def group_of(action: Action, screen: ScreenEntry | None) -> str:
    """Name the group of an action in the palette."""
    if action.id.startswith("knob."):
        return "Knobs"
    if action.screen != ANYWHERE:
        return action.screen.capitalize() if screen is None else screen.title
    if action.id in _SETTINGS:
        return "Settings"
    if action.shared == "show_screen":
        return "Screens"
    if action.id.startswith("view."):
        return "View"
    return "Time" if action.priority and action.id not in ("session.suspend", "session.redraw") else "Session"


class Palette:
    """The commands of the palette, and the theme chooser."""

    def __init__(self, app: LunscopeApp) -> None:
        """Install the chooser once: its widgets are kept while it is hidden."""
        self._app = app
        self._chooser: Chooser[Command] = Chooser("Commands", verb="run", classes="-grouped")
        app.install_screen(self._chooser, "commands")

    def keys_text(self, action: Action) -> str:
        """Keys of an action as people write them, those of the settings where they name any."""
        keys = keys_in_force(action, self._app.app_state.keys)
        return " ".join(self._app.get_key_display(action.binding().with_key(key)) for key in keys)

    def action_command_palette(self) -> None:
        """Show the palette: every action that is available here, with its keys."""
        if not isinstance(self._app.screen, ModalScreen):
            self._chooser.offer(self._grouped())
            self._app.push_screen(self._chooser, self.run_command)

    def _grouped(self) -> list[ChooserLine[Command]]:
        lines = list(self.commands())
        first = next((line.group for line in lines if line.group not in GROUPS), "")
        order = {group: number for number, group in enumerate((first, *GROUPS))}
        return sorted(lines, key=lambda line: order[line.group])

    def commands(self) -> Iterator[ChooserLine[Command]]:
        """Offer what can be done on the screen that is shown, in the order of the registries."""
        screen = self._app.screen
        entry = screen.ENTRY if isinstance(screen, View) else None
        for action in actions_at(entry):
            is_here = entry is not None and action.shared == "show_screen" and action.parameter == entry.id
            if self._app.check_action(action.method, ()) and not is_here:
                target = self._app if action.screen == ANYWHERE else screen
                call = functools.partial(self._app.run_action, action.call, target)
                yield ChooserLine(action.title, call, self.keys_text(action), group_of(action, entry))
        if isinstance(self._app.focused, Grid):
            yield from self._table_commands(self._app.focused)
        yield ChooserLine("Choose a theme", self._offer_themes, "", "Settings")

    def _table_commands(self, grid: Grid) -> Iterator[ChooserLine[Command]]:
        for binding in Grid.BINDINGS:
            if isinstance(binding, Binding) and binding.id in PALETTE_IDS:
                call = functools.partial(self._app.run_action, binding.action, grid)
                yield ChooserLine(binding.description, call, self._app.get_key_display(binding), "Table")

    def _offer_themes(self) -> None:
        themes = [ChooserLine(name, name) for name in sorted(self._app.available_themes)]
        self._app.push_screen(Chooser("Theme", themes, present=self._app.theme, verb="use"), self._use_theme)

    def _use_theme(self, name: str | None) -> None:
        if name is not None:
            self._app.theme = name

    def run_command(self, command: Command | None) -> None:
        """Run it when the palette is closed: it may open a dialog itself."""
        if command is not None:
            self._app.call_later(command)
