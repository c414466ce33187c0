"""Every screen and dialog: in plain ASCII, with hostile names, on a terminal of any size; what it shows as pictures."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot

from engine.replacing import replace
from tests.app.scenes import (
    DIALOGS,
    OTHERS,
    SCENES,
    SIZES,
    VIEWS,
    Scene,
    a_terminal,
    dialog_classes,
    is_shown,
    keys_pressed,
    opened,
    samples_of,
    tainted,
)
from tests.app.stage import FROZEN, is_leaving, notices, screen_text, until
from tests.app.taken import SnapCompare, Taken, resized
from tests.app.updates import Shown, assert_same, is_pending
from tui.app.app import LunscopeApp
from tui.keys import ANYWHERE_ACTIONS, actions_at
from tui.screen_registry import OVERVIEW, SCREENS, SHEET
from tui.screens.help.hanging import HangingPage
from tui.settings import load_settings
from tui.text.glyphs import GlyphSetting

MOST_VIEWS = 5
"""That a screen shows one at a time."""
ENDING = {"Quit", "Suspend: back to the shell; fg returns"}
TINY = (10, 3)
SIZES_OF: Mapping[GlyphSetting, Sequence[tuple[int, int]]] = {
    "ascii": (SIZES[0], SIZES[-1]),
    "unicode": (SIZES[0], TINY, *SIZES[1:]),
}
"""Glyphs are as wide in both sets, so layouts between the least and the most of text need to be seen with one only."""
OF_SAMPLES = itertools.groupby(sorted((*VIEWS, *DIALOGS), key=samples_of), key=samples_of)
ONE_AFTER_ANOTHER = 10
ALIKE = [
    *(
        each[at : at + ONE_AFTER_ANOTHER]
        for _, scenes in OF_SAMPLES
        if (each := tuple(scenes))
        for at in range(0, len(each), ONE_AFTER_ANOTHER)
    ),
    *((scene,) for scene in OTHERS),
]
"""Scenes that one app shows one after another; a field that is typed into would take the keys that lead on."""
UNPICTURED = ("note", "targets")
"""A note shows the time of the clock; test_snapshots has the list of targets."""
OWNED = "\x1b]0;own\x07\x1b[31mred[bold]x[/]\r\n\x9b2J"
HOSTILE = f"{OWNED}e\u0301\u0302日本\u202eא\u2028\u200d🔥\ud800naïve"
UNSAFE = re.compile(rb"\x1b\]0;own|\x07|\xc2\x9b|\xe2\x80\xae|\xe2\x80\xa8|\xed\xa0\x80|\xcc\x81\xcc\x82|\r|\n")


def test_every_class_of_dialogs_has_a_scene() -> None:
    assert {kind.__name__ for kind in dialog_classes()} == {scene.dialog for scene in DIALOGS}


@pytest.mark.slow
@pytest.mark.parametrize("glyphs", SIZES_OF)
@pytest.mark.parametrize("scenes", ALIKE, ids=lambda scenes: scenes[0].id)
async def test_hostile_names_at_every_size(scenes: Sequence[Scene], glyphs: GlyphSetting) -> None:
    """What the driver sends: of the names nothing that commands, in plain ASCII no byte above 127, and no crash.

    Each scene is opened at the size at which the one before it ended, and goes through the sizes the other way.
    """
    settings, sizes = replace(FROZEN, glyphs=glyphs), SIZES_OF[glyphs]
    async with a_terminal() as terminal:
        async with opened(scenes[0], sizes[0], settings, tainted(scenes[0].samples, HOSTILE), terminal) as pilot:
            for scene in scenes:
                if scene is not scenes[0]:
                    sizes = sizes[::-1]
                    terminal.sent.clear()
                    await closed(pilot)
                    await pilot.press("1")
                    await keys_pressed(pilot, scene)
                for size in sizes[1:]:
                    terminal.resize(*size)
                    await pilot.resize_terminal(*size)
                    assert is_shown(pilot.app, scene), scene.id
                    assert pilot.app.size == size
                drawn = bytes(terminal.sent)
                assert len(drawn) > 1000, scene.id
                shown = drawn.partition(b"\x1b[6n")[2] if scene is scenes[0] else drawn
                assert not UNSAFE.search(shown.replace(b"\x1b]22;default\x07", b"")), scene.id
                assert glyphs == "unicode" or drawn.isascii(), scene.id
        assert glyphs == "unicode" or terminal.sent.isascii()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.id)
async def test_picture(scene: Scene, snap_compare: SnapCompare, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size has one; and updates that were sent, put together, show what Textual renders for the whole screen."""
    shown = Shown()
    monkeypatch.setattr(LunscopeApp, "_display", lambda _app, screen, update: shown.display(screen, update))
    async with opened(scene, SIZES[0]) as pilot:
        await assert_same(pilot, shown, "opening")
        for size in SIZES:
            await resized(pilot, size)
            if scene.id not in UNPICTURED:
                assert snap_compare(Taken(pilot.app)), size
            await assert_same(pilot, shown, f"a resize to {size}")
        await resized(pilot, SIZES[0])
        await assert_same(pilot, shown, "a smaller size")
        for key in ("down", "escape"):
            await pilot.press(key)
            await assert_same(pilot, shown, key)


@pytest.mark.slow
@pytest.mark.parametrize("scene", VIEWS, ids=lambda scene: scene.id)
async def test_a_window_that_grew_shows_what_one_of_its_size_does(scene: Scene) -> None:
    shown = []
    for started in (SIZES[-1], SIZES[0]):
        async with opened(scene, started) as pilot:
            await resized(pilot, SIZES[-1])
            await until(pilot, lambda: not is_pending(pilot.app))
            shown.append(screen_text(pilot))
    assert shown[0] == shown[1]


@pytest.mark.slow
@pytest.mark.parametrize("scene", VIEWS, ids=lambda scene: scene.id)
async def test_the_palette_offers_every_action_that_works_here_and_each_of_them_runs(scene: Scene) -> None:
    entry = next(entry for entry in SCREENS if entry.id == scene.screen)
    everywhere = {action.title for action in ANYWHERE_ACTIONS}
    async with opened(scene, SIZES[0]) as pilot:
        app = pilot.app
        assert isinstance(app, LunscopeApp)
        offered = [line.title for line in app.palette.commands()]
        for action in actions_at(entry):
            if action.shared == "show_screen" and action.parameter == entry.id:
                continue  # It is shown already.
            assert (action.title in offered) == bool(app.check_action(action.method, ())), action.id
        for title in offered:
            if title in ENDING or (title in everywhere and entry is not OVERVIEW):
                continue
            await _back_to(pilot, scene)
            if title not in [line.title for line in app.palette.commands()]:
                await pilot.press("escape")  # Keys of a table are not offered while a form is edited.
            for _ in range(MOST_VIEWS):
                if title in [line.title for line in app.palette.commands()]:
                    break
                await pilot.press("v")  # Nor are they while another view is shown instead of it.
                await pilot.pause()
            command = next(line.value for line in app.palette.commands() if line.title == title)
            app.palette.run_command(command)
            await pilot.pause()
            assert app._exception is None, title
            assert not is_leaving(app), title


async def closed(pilot: Pilot[None]) -> None:
    """Close dialogs and pages."""
    while len(pilot.app.screen_stack) > 1:
        await pilot.app.pop_screen()


async def _back_to(pilot: Pilot[None], scene: Scene) -> None:
    """Close dialogs and pages above the screen, or go to it again."""
    while len(pilot.app.screen_stack) > 1 and not is_shown(pilot.app, scene):
        await pilot.app.pop_screen()
    if not is_shown(pilot.app, scene):
        await pilot.press("1", *scene.keys[:1])
        await pilot.pause()
    await until(pilot, lambda: is_shown(pilot.app, scene))


BROKEN = """
thme = "x"
theme = "no such theme"
glyphs = 3
mouse = "often"
keys = { "view.nothing" = "x", "session.pause" = 7, "view.help" = "q" }
[alerts.rules]
one = "disks awiat_ms>3ms"
two = "nothing busy_pct>3"
three = 7
[aliases]
"36000c29" = "\\u001b[31mred"
"""
NAMED = (
    "thme",
    "glyphs must",
    "mouse must",
    "view.nothing",
    "session.pause",
    "awiat_ms",
    "nothing",
    "three",
    "36000c29",
)


@pytest.mark.slow
async def test_broken_settings_are_said_and_every_screen_works(tmp_path: Path) -> None:
    """Settings that are not known, of the wrong type, and rules of alerts that name unknown tables and fields."""
    file = tmp_path / "config.toml"
    file.write_text(BROKEN)
    settings = replace(load_settings(file), theme_folder=tmp_path)
    for named in NAMED:
        assert any(named in problem for problem in settings.problems), named
    with_paths = next(scene.samples for scene in VIEWS if scene.screen == SHEET.id)
    async with opened(VIEWS[0], SIZES[0], settings, with_paths) as pilot:
        app = pilot.app
        assert isinstance(app, LunscopeApp)
        shown = notices(app)
        wrong = (*settings.problems, "no theme 'no such theme'")
        assert all(any(text in said for said in app.app_state.wrong_settings) for text in wrong)
        assert {*app.app_state.wrong_settings[:2]} < {*shown}
        assert f"{len(app.app_state.wrong_settings) - 2} more settings are wrong: help lists all" in shown
        assert f"{len(app.app_state.wrong_settings)} notices" in screen_text(pilot)
        app.pages.action_view_help()
        await pilot.pause()
        page = "\n".join(line.plain for line in app.screen.query_one(HangingPage).lines_at(10_000))
        assert all(text in page for text in app.app_state.wrong_settings)
        await pilot.press("escape")
        for scene in VIEWS:
            await _back_to(pilot, scene)
