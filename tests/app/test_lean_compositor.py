"""Updates, put together, show what Textual renders for the whole screen; test_every_screen asks it of all of them."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Static

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play
from tests.app.updates import Shown, assert_same
from tui.textual_internals.lean_compositor import LeanCompositor, LinesUpdate

SIZE = 120, 40
KEYS = ("down", "down", "greater_than_sign", "z", "slash", "s", "escape", "u", "7", "right", "4", "1", "up")
"""The units are said in a notice, which lies over what is below."""


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
