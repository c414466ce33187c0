"""Dialogs and the palette bear keys that come twice or too late, and windows too small to show anything."""

from __future__ import annotations

import pytest
from rich.style import Style
from textual import on
from textual.app import App, ComposeResult
from textual.events import Click
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from textual.widgets.option_list import Option

from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, make_app, on_stage, play, screen_text, until
from tui.screens.overview import OverviewScreen
from tui.textual_internals.option_list import Options
from tui.widgets.line_list import LineList


class OptionsApp(App[None]):
    """A list of two options; notes which were selected."""

    def __init__(self) -> None:
        super().__init__()
        self.selected: list[str] = []

    def compose(self) -> ComposeResult:
        yield Options("one", "two")

    @on(Options.OptionSelected)
    def _note(self, event: Options.OptionSelected) -> None:
        self.selected.append(str(event.option.prompt))


def is_closed(pilot: Pilot[None]) -> bool:
    return isinstance(pilot.app.screen, OverviewScreen)


async def opened(pilot: Pilot[None], source: ListSource, key: str) -> ModalScreen[object]:
    await play(pilot, source, 3)
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, ModalScreen))
    screen = pilot.app.screen
    assert isinstance(screen, ModalScreen)
    return screen


@pytest.mark.parametrize("opener", ["question_mark", "ctrl+p"])
async def test_what_is_closed_twice_closes_nothing_else(opener: str) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source)) as pilot:
        screen = await opened(pilot, source, opener)
        screen.dismiss()
        screen.dismiss()
        await until(pilot, lambda: is_closed(pilot))
        assert len(pilot.app.screen_stack) == 1


@pytest.mark.parametrize("key", ["pagedown", "pageup", "down", "up", "home", "end"])
async def test_paging_a_palette_that_shows_no_line(key: str) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        await opened(pilot, source, "ctrl+p")
        await pilot.press("down")
        await pilot.resize_terminal(10, 3)
        await pilot.pause()
        await pilot.press(key, key)
        await pilot.resize_terminal(80, 24)
        await pilot.press("escape")
        await until(pilot, lambda: is_closed(pilot))


async def test_a_palette_runs_what_is_typed_and_starts_over() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        await opened(pilot, source, "ctrl+p")
        assert "Details of the disk" in screen_text(pilot)
        assert "question" not in screen_text(pilot)
        await pilot.press(*"next the", "enter")
        await until(pilot, lambda: is_closed(pilot))
        await until(pilot, lambda: pilot.app.theme != FROZEN.theme)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "Details of the disk" in screen_text(pilot))


async def test_a_click_selects_what_was_clicked_though_the_list_has_changed() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        palette = await opened(pilot, source, "ctrl+p")
        listing = palette.query_one(LineList)
        position = next(at for at, each in enumerate(listing.items) if "Next theme" in each.line().plain)
        assert position > 0
        clicked = LineList.Chosen(listing.items[position])
        await pilot.press(*"help")
        await until(pilot, lambda: len(listing.items) <= position)
        listing.post_message(clicked)
        await until(pilot, lambda: is_closed(pilot))
        await until(pilot, lambda: pilot.app.theme != FROZEN.theme)


async def test_a_click_below_the_last_line_does_nothing() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        palette = await opened(pilot, source, "ctrl+p")
        listing = palette.query_one(LineList)
        await pilot.press(*"next the")
        await until(pilot, lambda: len(listing.items) < 9)
        await pilot.click(LineList, offset=(3, len(listing.items)))
        assert pilot.app.screen is palette
        await pilot.click(LineList, offset=(3, 0))
        await until(pilot, lambda: is_closed(pilot))


async def test_a_click_on_an_option_that_is_gone_does_nothing() -> None:
    app = OptionsApp()
    async with app.run_test() as pilot:
        listing = app.query_one(Options)
        drawn_before = Style.from_meta({"option": 1})
        listing.set_options([Option("alone")])
        listing._forward_event(Click(listing, 3, 1, 0, 0, 1, False, False, False, style=drawn_before))
        await pilot.pause()
        assert not app.selected
        listing._forward_event(Click(listing, 3, 0, 0, 0, 1, False, False, False, style=Style.from_meta({"option": 0})))
        await pilot.pause()
        assert app.selected == ["alone"]


async def test_what_is_typed_after_tab_and_click_goes_to_the_filter() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        palette = await opened(pilot, source, "ctrl+p")
        await pilot.press("tab", "escape")
        await until(pilot, lambda: is_closed(pilot))
        await pilot.press("ctrl+p")
        await until(pilot, lambda: pilot.app.screen is palette)
        await pilot.press(*"wall")
        await until(pilot, lambda: palette.query_one(Input).value == "wall")


@pytest.mark.slow
async def test_a_theme_is_chosen_by_its_name() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        await opened(pilot, source, "ctrl+p")
        await pilot.press(*"choose a theme", "enter", *"nord", "enter")
        await until(pilot, lambda: pilot.app.theme == "nord")


async def test_a_click_after_the_window_shrank() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        await opened(pilot, source, "ctrl+p")
        await pilot.resize_terminal(4, 2)
        pilot.app.screen.post_message(Click(None, 9, 7, 0, 0, 1, False, False, False, screen_x=9, screen_y=7))
        await pilot.pause()
        await pilot.press("escape")
        await until(pilot, lambda: is_closed(pilot))


async def test_the_mouse_may_go_down_on_a_widget_that_is_being_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source)) as pilot:
        screen = await opened(pilot, source, "question_mark")
        removed = Static("no longer in a parent")
        monkeypatch.setattr(screen, "get_widget_and_offset_at", lambda _x, _y: (removed, Offset(0, 0)))
        await pilot.mouse_down(offset=(9, 6))
        assert pilot.app.screen is screen


async def test_a_key_before_the_widgets_of_a_dialog_are_there_does_nothing() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source)) as pilot:
        screen = await opened(pilot, source, "V")
        shift = "shift(1)"
        assert await pilot.app.run_action(shift, screen)
        screen._is_mounted = False
        assert not await pilot.app.run_action(shift, screen)
        screen._is_mounted = True
        screen.dismiss()
        await until(pilot, lambda: is_closed(pilot))
        assert not await pilot.app.run_action(shift, screen)
