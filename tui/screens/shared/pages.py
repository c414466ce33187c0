"""Pages: views that are opened above the screen of a tab, one above the other."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.screen import Screen

from tui.screens.shared.base import View
from tui.textual_internals.screens import Stack, close_covered, stacks_of

MOST_PAGES = 8
"""Most pages above the screens of all tabs: each keeps its widgets, about half a megabyte."""


def open_page(app: App[Any], page: View) -> None:
    """Show a page above the current screen; one with the same subject that is open already is returned to.

    Going round in a circle, as from a disk to its processes and from one of them to the disk, must not pile up pages:
    each takes a key to leave. If there are too many, the oldest of the tab with most is closed.
    """
    stack = app.screen_stack
    for at, screen in enumerate(stack):
        if _is_same(screen, page):
            for _ in stack[at + 1 :]:
                app.pop_screen()
            return
    stacks = stacks_of(app)
    if sum(map(_number_of_pages, stacks)) >= MOST_PAGES:
        fullest = max(stacks, key=_number_of_pages)
        close_covered(app, fullest, next(screen for screen in fullest[1:] if isinstance(screen, View)))
    app.push_screen(page)


def _is_same(screen: Screen[Any], page: View) -> bool:
    return type(screen) is type(page) and screen.page_subject == page.page_subject


def _number_of_pages(stack: Stack) -> int:
    return sum(isinstance(screen, View) for screen in stack[1:])
