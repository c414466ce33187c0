"""What Textual knows of screens and widgets and does not offer: their lines, their stacks, their bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from textual._context import visible_screen_stack
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen
from textual.strip import Strip

Stack: TypeAlias = list[Screen[Any]]
"""Screens of a tab, the one on top last."""


def shown_lines(app: App[Any]) -> list[Strip]:
    """Lines of the screen, with what shows behind a dialog.

    Without this list, which belongs to the present task, a dialog has nothing behind it, and keeps that.
    """
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips()


def stacks_of(app: App[Any]) -> list[Stack]:
    """Return the stacks of all tabs, those behind the present one, too."""
    return list(app._screen_stacks.values())


def close_covered(app: App[Any], stack: Stack, page: Screen[Any]) -> None:
    """Close a page that others may cover, as Textual closes the one on top."""
    stack.remove(page)
    page._pop_result_callback()
    app.call_next(app._replace_screen, page)


def bound_here(node: DOMNode, key: str) -> Sequence[Binding]:
    """Return the bindings that a widget or screen itself has for a key, by the key map in force."""
    bindings = node._bindings.copy()
    bindings.apply_keymap(node.app._keymap)
    return bindings.key_to_bindings.get(key, ())


def has_binding(node: DOMNode, key: str) -> bool:
    """Whether a widget or screen itself binds a key, whatever the key map says."""
    return key in node._bindings.key_to_bindings
