"""An action: what it is called, which keys it has, and what it calls."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct
from textual.binding import Binding

ANYWHERE = ""
"""Screen of the actions that work on every screen."""


Part = TypeVar("Part")


def with_actions(owner: object, part: Part) -> Part:
    """Let Textual, which calls the actions of an app or a screen by their names, find those of one of its parts."""
    for name in vars(type(part)):
        if name.startswith("action_"):
            setattr(owner, name, getattr(part, name))
    return part


class Action(Struct, frozen=True):
    """One thing the operator can do; `load.start` calls `action_load_start` of its screen, or of the app."""

    id: str
    title: str
    keys: str
    """Default keys in Textual's names, separated by commas; the first is the one shown."""
    short: str = ""
    """Word for the key line; empty keeps the action off it."""
    screen: str = ANYWHERE
    """Id of the screen it belongs to."""
    parameter: str = ""
    """What `method` is called with; empty where it takes nothing."""
    shared: str = ""
    """Method that several actions share, each with its parameter; empty where it has its own."""
    replay: bool | None = None
    """True: only over a recording; False: only live; None: both."""
    needs_load: bool = False
    """Whether it needs a load to drive."""
    priority: bool = False
    """Whether it takes precedence over the focused widget's own use of the key."""

    @property
    def method(self) -> str:
        """Name of the Textual action."""
        return self.shared or self.id.replace(".", "_")

    @property
    def call(self) -> str:
        """The Textual action with its parameter."""
        return f"{self.method}('{self.parameter}')" if self.parameter else self.method

    @property
    def namespace(self) -> str:
        """Textual's prefix for the owner of the method."""
        return "app" if self.screen == ANYWHERE else "screen"

    def binding(self) -> Binding:
        """Make the binding whose key a keymap may replace by the action's id."""
        return Binding(self.keys, self.call, self.title, show=bool(self.short), id=self.id, priority=self.priority)
