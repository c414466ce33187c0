"""A list of lines with a cursor: only lines in sight are written, and Enter or a click chooses an item."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.pilot import Pilot

from tests.app.stage import layouts
from tui.text.glyphs import UNICODE
from tui.textual_internals.themed_app import ThemedApp
from tui.theming import DEFAULT_THEME
from tui.widgets.line_list import LineList

WIDTH, HEIGHT = 30, 5


class ListApp(ThemedApp[None]):
    """One list; notes what was chosen, and for which items a line was written."""

    def __init__(self) -> None:
        super().__init__(glyphs=UNICODE)
        self.theme = DEFAULT_THEME
        self.chosen: list[object] = []
        self.written: list[int] = []

    def compose(self) -> ComposeResult:
        yield LineList[int]()

    @property
    def listing(self) -> LineList[int]:
        return self.query_one(LineList)

    def put(self, items: range) -> None:
        self.listing.put(items, self._line)

    def _line(self, item: int) -> Content:
        self.written.append(item)
        return Content.assemble(f"item {item} ", ("bold", "bold"), " and a text that is too long")

    @on(LineList.Chosen)
    def _note(self, event: LineList.Chosen) -> None:
        self.chosen.append(event.item)


@asynccontextmanager
async def listed(items: range) -> AsyncIterator[tuple[ListApp, Pilot[Any]]]:
    app = ListApp()
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        app.put(items)
        app.listing.focus()
        await pilot.pause()
        yield app, pilot


def shown(app: ListApp) -> list[str]:
    return [strip.text for strip in app.listing.draw_lines()]


async def test_only_lines_in_sight_are_written_and_cut_to_the_width() -> None:
    async with listed(range(1000)) as (app, _):
        assert set(app.written) == set(range(HEIGHT))
        assert shown(app)[0] == "item 0 bold and a text that …"


async def test_lines_with_the_same_text_are_not_drawn_again() -> None:
    async with listed(range(20)) as (app, _):
        before = app.listing.draw_lines()
        app.put(range(20))
        assert all(old is new for old, new in zip(before, app.listing.draw_lines(), strict=True))
        app.put(range(1, 21))
        assert shown(app)[0].startswith("item 1 ")


async def test_enter_chooses_the_item_under_the_cursor_which_goes_round() -> None:
    async with listed(range(7)) as (app, pilot):
        await pilot.press("enter")
        await pilot.press("down", "down", "enter", "up", "up", "up", "enter")
        await pilot.press("home", "enter", "end", "enter", "pageup", "enter", "pagedown", "pagedown", "enter")
        await pilot.pause()
        assert app.chosen == [1, 5, 0, 6, 1, 6]
        assert shown(app)[-1].startswith("item 6 ")


async def test_up_comes_from_the_end() -> None:
    async with listed(range(7)) as (app, pilot):
        await pilot.press("up", "enter")
        await pilot.pause()
        assert app.chosen == [6]


async def test_the_cursor_stays_within_a_list_that_gets_shorter() -> None:
    async with listed(range(7)) as (app, pilot):
        await pilot.press("end")
        app.put(range(100, 103))
        await pilot.press("enter")
        await pilot.pause()
        assert app.chosen == [102]
        assert [line.strip()[:8] for line in shown(app)] == ["item 100", "item 101", "item 102", "", ""]
        app.put(range(0))
        await pilot.press("enter", "down", "end", "enter")
        await pilot.pause()
        assert app.chosen == [102]


async def test_the_cursor_is_put_where_it_is_wanted_and_is_in_sight_there() -> None:
    async with listed(range(3)) as (app, pilot):
        app.listing.put(range(100), app._line, cursor=50)
        await pilot.pause()
        assert app.listing.chosen == 50
        assert any(line.startswith("item 50 ") for line in shown(app))
        app.listing.put(range(10), app._line, cursor=0)
        await pilot.pause()
        assert shown(app)[0].startswith("item 0 ")
        app.listing.put(range(0), app._line, cursor=0)
        assert app.listing.chosen is None


async def test_the_cursor_stays_in_sight_of_a_window_that_gets_smaller() -> None:
    async with listed(range(100)) as (app, pilot):
        app.listing.move_to(HEIGHT - 1)
        await pilot.resize_terminal(WIDTH, 2)
        await pilot.pause()
        assert shown(app)[-1].startswith(f"item {HEIGHT - 1} ")


async def test_a_click_chooses_the_line_below_it_but_none_beyond_the_end() -> None:
    async with listed(range(3)) as (app, pilot):
        await pilot.click(LineList, offset=(2, 1))
        await pilot.click(LineList, offset=(2, 4))
        await pilot.pause()
        assert app.chosen == [1]
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.chosen == [1, 2]


async def test_the_line_under_the_mouse_and_that_of_the_cursor_are_marked() -> None:
    async with listed(range(3)) as (app, pilot):
        plain = app.listing.draw_lines()
        await pilot.hover(LineList, offset=(2, 1))
        await pilot.press("down")
        await pilot.pause()
        now = app.listing.draw_lines()
        assert [strip == before for strip, before in zip(now, plain, strict=True)] == [False, False, True, True, True]
        assert now[0] != now[1]


async def test_more_and_fewer_lines_need_no_layout_while_the_scroll_bar_stays_as_it_is() -> None:
    async with listed(range(100)) as (app, pilot):
        await pilot.press("end")
        before = layouts(app.screen)
        for count in (120, 60, 6):
            app.put(range(count))
            await pilot.pause()
            bar = app.listing.vertical_scrollbar
            assert (bar.window_virtual_size, bar.window_size) == (count, HEIGHT)
            assert app.listing.max_scroll_y == count - HEIGHT
            assert shown(app)[-1].startswith(f"item {min(count - 1, 99)} ")
        assert layouts(app.screen) == before
        app.put(range(3))
        await pilot.pause()
        assert not app.listing.show_vertical_scrollbar
        assert app.listing.area.width == WIDTH
        before = layouts(app.screen)
        app.put(range(4))
        await pilot.pause()
        assert layouts(app.screen) == before
        app.put(range(50))
        await pilot.pause()
        assert app.listing.show_vertical_scrollbar
        assert app.listing.area.width == WIDTH - 1
