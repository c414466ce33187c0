"""The last line of every screen: the keys of the screen."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content

from tui.action import Action
from tui.app_state import AppState
from tui.keys import ANYWHERE_ACTIONS, is_usable
from tui.screen_registry import ScreenEntry
from tui.widgets.line import TextLine


class KeyLine(TextLine):
    """As many actions of the registry as fit, those of the screen first; each can be clicked."""

    DEFAULT_CSS = """
    KeyLine { background: $panel; color: $foreground; }
    """

    def show(self, screen: ScreenEntry, app_state: AppState, key_text: Callable[[str], str]) -> None:
        """Show the keys of a screen."""
        width = self.size.width or 80
        content = Content(" ")
        for action in footer_actions(screen, app_state):
            key = key_text(action.id)
            entry = Content.assemble((key, "bold $accent"), f" {action.short}  ")
            if content.cell_length + entry.cell_length > width + 2:
                break
            content += entry.stylize(f"@click={action.namespace}.{action.call}")
        self.put(content)


def footer_actions(screen: ScreenEntry, app_state: AppState) -> list[Action]:
    """Actions of the key line: the screen's own first, then those of every screen."""
    replay, load = app_state.transport.seekable, app_state.controller is not None
    actions = (*screen.actions, *ANYWHERE_ACTIONS)
    return [action for action in actions if action.short and is_usable(action, replay=replay, load=load)]
