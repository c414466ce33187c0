"""Help and tabs name the keys in force, by the characters people type, and wrapped lines keep their indent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, make_app, on_stage, play, screen_text
from tui.screens.help import HangingPage, HelpScreen


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
        known = (2, 4, 14, 20)
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
