"""Help begins with the current screen, finds words, and names the keys in force by the characters people type."""

from __future__ import annotations

import re

import pytest

from engine.replacing import replace
from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, screen_text
from tests.app.taken import SnapCompare
from tests.app.test_snapshots import played
from tui.screen_registry import TABS
from tui.screens.help.hanging import HangingPage
from tui.screens.help.screen import HelpScreen


def text_of(page: HangingPage) -> list[str]:
    return [line.plain for line in page.lines_at(page.size.width)]


async def test_keys_are_shown_as_the_characters_they_are() -> None:
    app = make_app(source := ListSource(make_samples(count=3)))
    async with on_stage(app, (80, 24)) as pilot:
        await play(pilot, source, 3)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        lines = text_of(app.screen.query_one(HangingPage))
        assert not any("_sign" in line or "slash" in line for line in lines)
        for keys, words in (("<", "Sort by the column before"), (">", "Sort by the next"), ("/", "Filter by name")):
            assert any(line.split() == [keys, *words.split()] or line.split()[:1] == [keys] for line in lines), words


@pytest.mark.parametrize("width", [60, 80, 200])
async def test_wrapped_lines_keep_their_indent(width: int) -> None:
    app = make_app(source := ListSource(make_samples(count=3)))
    async with on_stage(app, (width, 24)) as pilot:
        await play(pilot, source, 3)
        await pilot.press("question_mark")
        page = app.screen.query_one(HangingPage)
        lines = text_of(page)
        assert max(map(len, lines)) <= page.size.width
        assert len(lines) == page.size.height
        entries = [line for line in lines if line.startswith("  ")]
        assert entries
        known = (2, 4, 14, 20, 22)
        assert {len(line) - len(line.lstrip()) for line in entries} <= set(known)


async def test_tabs_show_the_keys_in_force() -> None:
    settings = replace(FROZEN, keys={"view.events": "f3", "view.overview": "o,1"})
    app = make_app(source := ListSource(make_samples(count=3)), settings=settings)
    async with on_stage(app, (100, 24)) as pilot:
        await play(pilot, source, 3)
        tabs = screen_text(pilot).splitlines()[1]
        assert "[o Overview]" in tabs
        assert "f3 Events" in tabs
        assert "2 Load" in tabs
        await pilot.press("f3")
        await pilot.pause()
        assert "[f3 Events]" in screen_text(pilot).splitlines()[1]


@pytest.mark.slow
async def test_help_begins_with_the_screen_it_is_asked_on() -> None:
    app = make_app(source := ListSource(make_samples(count=3)))
    async with on_stage(app, (80, 24)) as pilot:
        await play(pilot, source, 3)
        for entry in TABS:
            await pilot.press(entry.keys.split(",")[0], "question_mark")
            title, text, *_ = screen_text(pilot).splitlines()
            assert title.strip() == f"This screen: {entry.title}"
            assert entry.help[:40] in text
            await pilot.press("escape")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 20), (80, 24), (200, 60)])
async def test_words_are_found_in_all_sections(size: tuple[int, int]) -> None:
    app = make_app(source := ListSource(make_samples(count=3)))
    async with on_stage(app, size) as pilot:
        await play(pilot, source, 3)
        await pilot.press("question_mark", "slash", *"k", *"avg")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        text = screen_text(pilot)
        assert "1 of " in text.splitlines()[-1]
        assert "KAVG" in text
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("n")
        await pilot.pause()
        assert "2 of " in screen_text(pilot).splitlines()[-1]
        await pilot.press("N", "N")
        await pilot.pause()
        position = re.search(r"(\d+) of (\d+)", screen_text(pilot).splitlines()[-1])
        assert position is not None
        assert position[1] == position[2] != "1"
        await pilot.press("escape")
        await pilot.pause()
        assert " of " not in screen_text(pilot).splitlines()[-1]
        await pilot.press("slash", *"zzz")
        await pilot.pause()
        assert "nothing found: zzz" in screen_text(pilot)
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)


async def test_tab_goes_through_the_sections() -> None:
    app = make_app(source := ListSource(make_samples(count=3)))
    async with on_stage(app, (80, 24)) as pilot:
        await play(pilot, source, 3)
        await pilot.press("question_mark", "tab", "tab")
        await pilot.pause()
        assert screen_text(pilot).splitlines()[1].split()[:2] == ["Disk", "figures"]
        await pilot.press("shift+tab")
        await pilot.pause()
        assert screen_text(pilot).splitlines()[1].split()[:3] == ["Keys", "of", "tables"]
        await pilot.press("shift+tab")
        await pilot.pause()
        assert "This screen: Overview" in screen_text(pilot).splitlines()[0]


async def test_help_names_the_keys_of_the_settings() -> None:
    settings = replace(FROZEN, keys={"view.theme": "f7", "view.subject": "at", "view.help": "f9"})
    app = make_app(source := ListSource(make_samples(count=3)), settings=settings)
    async with on_stage(app, (100, 30)) as pilot:
        await play(pilot, source, 3)
        await pilot.press("f9")
        assert isinstance(app.screen, HelpScreen)
        lines = [line.split() for line in text_of(app.screen.query_one(HangingPage))]
        assert ["f7", "Next", "theme"] in lines
        assert any(line[:2] == ["@", "Charts:"] for line in lines)
        await pilot.press("f9")
        assert not isinstance(app.screen, HelpScreen)


@pytest.mark.parametrize("size", [(60, 20), *SIZES])
def test_a_search(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=40))
    keys = ("question_mark", "slash", *"queue", "enter", "n")
    assert snap_compare(make_app(source), terminal_size=size, run_before=played(source, *keys))
