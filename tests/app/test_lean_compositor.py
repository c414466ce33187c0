"""Updates, put together, show what Textual renders for the whole screen."""

from __future__ import annotations

import pytest
from rich.console import RenderableType
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from tests.app.scenes import SCENES, SIZES, Scene, opened
from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play, until
from tui.app import LunscopeApp
from tui.screen_files import shown_lines
from tui.terminal.cells import Piece
from tui.terminal.frame_update import LinesUpdate
from tui.theme.lean_compositor import LeanCompositor

Cell = tuple[str, object]
SIZE = 120, 40
KEYS = ("down", "down", "greater_than_sign", "z", "slash", "s", "escape", "u", "7", "right", "4", "1", "up")
"""The units are said in a notice, which lies over what is below."""


class Shown:
    """The cells of a terminal that is sent the updates of an app."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], Cell] = {}
        self.line_updates = 0

    def display(self, _screen: Screen[object], update: RenderableType | None) -> None:
        if isinstance(update, LinesUpdate):
            self.line_updates += 1
            for piece in update.pieces:
                self.draw(piece)

    def draw(self, piece: Piece) -> None:
        for x, cell in enumerate(cells_of(piece.strip), piece.x):
            self.cells[piece.y, x] = cell


def cells_of(strip: Strip) -> list[Cell]:
    return [(char, segment.style) for segment in strip for char in segment.text]


def is_pending(screen: Screen[object]) -> bool:
    """Whether a widget has yet to say that it changed, or the screen to paint it."""
    asked = screen._dirty_widgets or screen._layout_required or screen._message_queue.qsize()
    return bool(asked) or any(widget._repaint_required for widget in screen.walk_children(Widget, with_self=True))


async def assert_same(pilot: Pilot[None], shown: Shown, key: str) -> None:
    await until(pilot, lambda: not is_pending(pilot.app.screen))
    expected = shown_lines(pilot.app)
    for y, strip in enumerate(expected):
        line = [shown.cells[y, x] for x in range(len(strip.text))]
        assert "".join(char for char, _ in line) == strip.text, f"line {y} after {key}"
        assert line == cells_of(strip), f"styles of line {y} after {key}"


@pytest.mark.slow
async def test_partial_updates_add_up_to_a_complete_one(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown()
    source = ListSource(make_samples(count=12))
    app = make_app(source)
    monkeypatch.setattr(app, "_display", shown.display)
    async with on_stage(app, SIZE) as pilot:
        await play(pilot, source, 5)
        for key in KEYS:
            await pilot.press(key)
            await assert_same(pilot, shown, key)
        await play(pilot, source, 7)
        await assert_same(pilot, shown, "frames")
    assert shown.line_updates > 5


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.id)
async def test_every_screen_and_dialog(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown()
    monkeypatch.setattr(LunscopeApp, "_display", lambda _app, screen, update: shown.display(screen, update))
    async with opened(scene, SIZES[1]) as pilot:
        await assert_same(pilot, shown, "opening")
        for size in (SIZES[0], SIZE):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await assert_same(pilot, shown, f"a resize to {size}")
        await pilot.press("down")
        await assert_same(pilot, shown, "down")
        await pilot.press("escape")
        await assert_same(pilot, shown, "escape")


class Leaving(Static):
    """Has its sibling leave when it is painted, and the screen arranged anew, as one does that asks for its place."""

    def render_lines(self, crop: Region) -> list[Strip]:
        for sibling in self.siblings:
            sibling.display = False
        compositor = self.screen._compositor
        compositor._full_map_invalidated = True
        assert compositor.full_map
        return super().render_lines(crop)


class Pair(App[None]):
    def compose(self) -> ComposeResult:
        yield Leaving("first")
        yield Leaving("second")


async def test_a_widget_that_leaves_while_another_is_painted() -> None:
    async with Pair().run_test(size=(20, 5)) as pilot:
        screen = pilot.app.screen
        for widget in screen.children:
            widget.display = True
        screen._compositor = compositor = LeanCompositor()
        compositor.reflow(screen, pilot.app.size)
        compositor._dirty_regions.clear()
        for widget in screen.children:
            widget.refresh()
        compositor.update_widgets(set(screen.children))
        assert isinstance(compositor.render_update(), LinesUpdate)
        assert not set(screen.children) <= compositor.visible_widgets.keys()
