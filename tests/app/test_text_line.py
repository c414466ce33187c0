"""Lines of text are drawn as Textual draws them, whatever their padding, their width and the glyphs in force."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.text.glyphs import ASCII, UNICODE, Glyphs
from tui.textual_internals.themed_app import ThemedApp
from tui.widgets.line import TextLine

TEXTS = {
    "short": Content("busy 99 %"),
    "styled": Content.assemble(("sda", "bold"), " is ", ("hot", "$error on $surface"), ": µs ▲"),
    "long": Content("the queue of sda is full most of the time " * 4),
    "wide": Content("設備 の 名前 " * 9),
    "empty": Content(""),
}


class Lines(ThemedApp[None]):
    CSS = """
    #padded { padding: 0 1; }
    #tall { height: 7; padding: 1 2; text-wrap: wrap; background: $panel; }
    #cut { height: 5; padding: 1 2; text-wrap: wrap; }
    #bordered { height: 3; border: round $primary; }
    """

    def compose(self) -> ComposeResult:
        for name in ("plain", "padded", "tall", "bordered", "cut"):
            yield TextLine("", id=name)


def _as_textual(line: TextLine) -> list[Strip]:
    line._styles_cache.clear()
    line._dirty_regions.add(line.outer_size.region)
    return Widget.render_lines(line, line.outer_size.region)


def _cells(strips: list[Strip]) -> list[list[tuple[str, object]]]:
    """Characters with their looks: Textual notes the place of each besides, for text that can be selected."""
    return [
        [(char, segment.style and segment.style.clear_meta_and_links()) for segment in strip for char in segment.text]
        for strip in strips
    ]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
async def test_text_lines_are_those_of_textual(glyphs: Glyphs) -> None:
    app = Lines(glyphs=glyphs)
    async with app.run_test(size=(60, 20)) as pilot:
        for theme in ("lunscope-dark", "lunscope-light", "lunscope-ansi"):
            app.theme = theme
            await pilot.pause()
            for text in TEXTS.values():
                for line in app.query(TextLine).exclude("#cut"):
                    line.put(text)
                    drawn = line.render_lines(line.outer_size.region)
                    assert _cells(drawn) == _cells(_as_textual(line)), line.id
                    assert line.render_lines(Region(3, 0, 20, 1)) == [drawn[0].crop(3, 23)]


async def test_unchanged_lines_are_drawn_once() -> None:
    app = Lines()
    async with app.run_test(size=(60, 20)) as pilot:
        line = app.query_one("#padded", TextLine)
        line.put("busy 99 %")
        (first,) = line.render_lines(line.outer_size.region)
        line.put("busy 99 %")
        assert line.render_lines(line.outer_size.region)[0] is first
        await pilot.resize_terminal(50, 20)
        await pilot.pause()
        assert line.render_lines(line.outer_size.region)[0].cell_length == 50


async def test_a_text_that_textual_drew_meanwhile_is_shown_in_the_next_layout() -> None:
    app = Lines()
    async with app.run_test(size=(60, 20)):
        line = app.query_one("#padded", TextLine)
        everything = line.outer_size.region
        line.put("busy 99 %")
        line.render_lines(everything)
        line.put("busy 12 %")
        line.render_lines(Region(0, 0, 60, everything.height + 3))
        assert "busy 12 %" in line.render_lines(everything)[0].text


@pytest.mark.parametrize(
    ("glyphs", "text", "shown"),
    [
        (UNICODE, "one two " * 20, ["one two " * 4 + "one", "two one " * 4 + "two", "one two " * 4 + "one…"]),
        (ASCII, "one two " * 20, ["one two " * 4 + "one", "two one " * 4 + "two", "one two " * 4 + "one+"]),
        (UNICODE, "設備 " * 40, ["設備 " * 7] * 2 + [("設備 " * 7) + "…"]),
        (UNICODE, "one two " * 13, ["one two " * 4 + "one", "two one " * 4 + "two", "one two " * 4]),
    ],
    ids=["words", "ascii", "wide", "all of it"],
)
async def test_text_that_has_too_few_lines_ends_with_a_mark(glyphs: Glyphs, text: str, shown: list[str]) -> None:
    app = Lines(glyphs=glyphs)
    async with app.run_test(size=(40, 20)) as pilot:
        line = app.query_one("#cut", TextLine)
        line.put(text)
        await pilot.pause()
        lines = [strip.text for strip in line.render_lines(line.outer_size.region)]
        assert [each.strip() for each in lines[1:4]] == [each.strip() for each in shown]
        assert {cell_len(each) for each in lines} == {40}
