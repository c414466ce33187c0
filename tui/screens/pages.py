"""Pages: views that are opened above the screen of a tab, one above the other."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.screen import Screen

from tui.screens.base import View

MOST_PAGES = 8
"""Above the screen of a tab: each keeps its widgets, half a megabyte, and takes a key to leave."""


def open_page(app: App[Any], page: View) -> None:
    """Show a page above the current screen; one with the same subject that is open already is returned to.

    Who goes round in a circle, as from a disk to its processes and from one of them to the disk, must not pile up
    pages. Of too many the oldest is closed.
    """
    stack = app.screen_stack
    for at, screen in enumerate(stack):
        if _is_same(screen, page):
            for _ in stack[at + 1 :]:
                app.pop_screen()
            return
    if len(stack) > MOST_PAGES:
        _close_covered(app, stack[1])
    app.push_screen(page)


def _is_same(screen: Screen[Any], page: View) -> bool:
    return type(screen) is type(page) and screen.page_subject == page.page_subject


def _close_covered(app: App[Any], screen: Screen[Any]) -> None:
    """Close a screen below the one on top, as Textual closes that."""
    app._screen_stack.remove(screen)
    screen._pop_result_callback()
    app.call_next(app._replace_screen, screen)
