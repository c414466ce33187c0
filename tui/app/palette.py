"""The palette: every command that works here, by groups, with its key; a mixin of the app."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from textual.binding import Binding
from textual.screen import ModalScreen

from tui.action import ANYWHERE, Action
from tui.app.time_keys import SessionActions
from tui.keys import actions_at, keys_in_force
from tui.screen_registry import ScreenEntry
from tui.screens.shared.base import View
from tui.screens.shared.chooser import Chooser, ChooserLine
from tui.widgets.grid.bindings import PALETTE_IDS
from tui.widgets.grid.table import Grid

Command = Callable[[], object]

GROUPS = ("Table", "Knobs", "Screens", "View", "Time", "Session", "Settings")
"""Of the palette, in order, after the group of the screen itself."""
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


class PaletteActions(SessionActions):
    """The commands of the palette, and the theme chooser."""

    _palette: Chooser[Command]

    def make_palette(self) -> None:
        """Install the palette once: its widgets are kept while it is hidden."""
        self._palette = Chooser("Commands", verb="run", classes="-grouped")
        self.install_screen(self._palette, "commands")

    def keys_text(self, action: Action) -> str:
        """Keys of an action as people write them, those of the settings where they name any."""
        keys = keys_in_force(action, self.app_state.keys)
        return " ".join(self.get_key_display(action.binding().with_key(key)) for key in keys)

    def action_command_palette(self) -> None:
        """Show the palette: every action that is available here, with its keys."""
        if not isinstance(self.screen, ModalScreen):
            self._palette.offer(self._grouped())
            self.push_screen(self._palette, self._run_command)

    def _grouped(self) -> list[ChooserLine[Command]]:
        lines = list(self._commands())
        first = next((line.group for line in lines if line.group not in GROUPS), "")
        order = {group: number for number, group in enumerate((first, *GROUPS))}
        return sorted(lines, key=lambda line: order[line.group])

    def _commands(self) -> Iterator[ChooserLine[Command]]:
        screen = self.screen
        entry = screen.ENTRY if isinstance(screen, View) else None
        for action in actions_at(entry):
            is_here = entry is not None and action.shared == "show_screen" and action.parameter == entry.id
            if self.check_action(action.method, ()) and not is_here:
                target = self if action.screen == ANYWHERE else screen
                call = functools.partial(self.run_action, action.call, target)
                yield ChooserLine(action.title, call, self.keys_text(action), group_of(action, entry))
        if isinstance(self.focused, Grid):
            yield from self._table_commands(self.focused)
        yield ChooserLine("Choose a theme", self._offer_themes, "", "Settings")

    def _table_commands(self, grid: Grid) -> Iterator[ChooserLine[Command]]:
        for binding in Grid.BINDINGS:
            if isinstance(binding, Binding) and binding.id in PALETTE_IDS:
                call = functools.partial(self.run_action, binding.action, grid)
                yield ChooserLine(binding.description, call, self.get_key_display(binding), "Table")

    def _offer_themes(self) -> None:
        themes = [ChooserLine(name, name) for name in sorted(self.available_themes)]
        self.push_screen(Chooser("Theme", themes, present=self.theme, verb="use"), self._use_theme)

    def _use_theme(self, name: str | None) -> None:
        if name is not None:
            self.theme = name

    def _run_command(self, command: Command | None) -> None:
        """Run it when the palette is closed: it may open a dialog itself."""
        if command is not None:
            self.call_later(command)

    def action_view_theme(self) -> None:
        """Take the next of lunscope's themes."""
        names = self.own_themes
        position = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(position + 1) % len(names)]
        self.notify(f"theme {self.theme}", markup=False)

    @property
    def own_themes(self) -> list[str]:
        """Names of lunscope's themes."""
        return [name for name in self.available_themes if name.startswith("lunscope")]
