"""The settings: what is in force and why, changes for this session, and a file that is never overwritten."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from collectors.alerts.alert_settings import AlertSettings
from collectors.alerts.parse import parse_rule
from collectors.alerts.service import AlertService
from engine.errors import LunscopeError
from engine.replacing import replace
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, rewind_to, said, screen_text, until
from tests.app.taken import SnapCompare
from tests.app.test_snapshots import played
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.kept import AxisChoice
from tui.screens.settings.screen import SettingsDialog
from tui.screens.settings.shown_setting import Origin, ShownSetting, lines_to_keep, write_beside
from tui.settings import load_settings

SMALL_TO_LARGE = ((60, 20), *SIZES)


def staged(tmp_path: Path, text: str = "") -> tuple[LunscopeApp, ListSource]:
    file = tmp_path / "config.toml"
    if text:
        file.write_text(text)
    settings = replace(load_settings(file), theme_folder=FROZEN.theme_folder, hints_file=None)
    settings = replace(settings, theme=settings.theme or FROZEN.theme)
    source = ListSource(make_samples(count=6, events=False))
    service = AlertService(AlertSettings((parse_rule("disks await_ms>1h"),)))
    return LunscopeApp(AppInput(source, alert_service=service), settings=settings), source


async def choose(pilot: Pilot[None], name: str, value: str) -> None:
    """Change one setting as the operator does."""
    dialog = pilot.app.screen
    assert isinstance(dialog, SettingsDialog)
    position = [setting.name for setting in dialog._listed].index(name)
    dialog.query_one(OptionList).highlighted = position
    await pilot.press("enter")
    await until(pilot, lambda: pilot.app.screen is not dialog)
    await pilot.press(*("space" if char == " " else "minus" if char == "-" else char for char in value), "enter")
    await until(pilot, lambda: pilot.app.screen is dialog)
    await pilot.pause()


def listed(pilot: Pilot[None], name: str) -> ShownSetting:
    dialog = pilot.app.screen
    assert isinstance(dialog, SettingsDialog)
    return next(setting for setting in dialog._listed if setting.name == name)


async def test_values_have_their_origin(tmp_path: Path) -> None:
    text = 'theme = "nord"\n[keys]\nsession.pause = "p"\n[aliases]\n"36000c29" = "db"\n'
    app, source = staged(tmp_path, text)
    async with on_stage(app) as pilot:
        await play(pilot, source, 2)
        await pilot.press("f2")
        await pilot.pause()
        origins = {setting.name: (setting.value, setting.origin) for setting in app.editor.shown()}
        assert origins["theme"] == ("nord", Origin.FILE)
        assert origins["keys"] == ("1 changed", Origin.FILE)
        assert origins["aliases"] == ("1", Origin.FILE)
        assert origins["glyphs"] == ("auto", Origin.DEFAULT)
        assert origins["alerts.rules"] == ("2", Origin.DEFAULT)
        app.settings.alerts = AlertService(AlertSettings(), (parse_rule("disks iops>9"),), ("/bin/true",))
        origins = {setting.name: (setting.value, setting.origin) for setting in app.editor.shown()}
        assert origins["alerts.rules"] == ("2", Origin.OPTION)
        assert origins["alerts.command"] == ("/bin/true", Origin.OPTION)
        assert origins["--record"] == ("nothing", Origin.DEFAULT)
        assert "is from the settings file" in screen_text(pilot)
        assert "may be  a name of the list" in screen_text(pilot)


@pytest.mark.slow
async def test_changes_hold_at_once_and_for_this_session(tmp_path: Path) -> None:
    app, source = staged(tmp_path)
    async with on_stage(app) as pilot:
        await play(pilot, source, 2)
        await pilot.press("f2")
        await choose(pilot, "theme", "lunscope-light")
        assert app.theme == "lunscope-light"
        assert listed(pilot, "theme").origin is Origin.SESSION
        await choose(pilot, "chart history", "15:00")
        assert app.app_state.span_ns == 900 * 10**9
        await choose(pilot, "latency axis", "logarithmic")
        assert app.app_state.latency_axis is AxisChoice.LOG
        await choose(pilot, "alerts.bell", "true")
        assert app.settings.alerts is not None
        assert app.settings.alerts.settings.bell
        assert listed(pilot, "alerts.bell").origin is Origin.SESSION
        position = [setting.name for setting in app.editor.shown()].index("aliases")
        pilot.app.screen.query_one(OptionList).highlighted = position
        await pilot.press("enter")
        assert said(app, "aliases cannot be changed here")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
async def test_a_file_is_made_on_request_and_never_overwritten(tmp_path: Path) -> None:
    app, source = staged(tmp_path)
    async with on_stage(app) as pilot:
        await play(pilot, source, 2)
        await pilot.press("f2", "w")
        assert said(app, "nothing to write")
        await choose(pilot, "theme", "lunscope-light")
        await choose(pilot, "alerts.bell", "true")
        await pilot.press("w")
        file = tmp_path / "config.toml"
        assert tomllib.loads(file.read_text()) == {"theme": "lunscope-light", "alerts": {"bell": True}}
        before = file.read_text()
        await choose(pilot, "theme", "nord")
        await pilot.press("w", "w")
        assert file.read_text() == before
        for name in ("config.toml.new", "config.toml.new1"):
            assert tomllib.loads((tmp_path / name).read_text())["theme"] == "nord"
        assert said(app, "move its lines into config.toml")


async def test_a_replay_has_no_interval_to_change() -> None:
    source = ListRecording(make_samples(count=30))
    app = make_app(source)
    async with on_stage(app) as pilot:
        await rewind_to(pilot, source, 10)
        names = [setting.name for setting in app.editor.shown()]
        assert "--interval" not in names
        assert "alerts.rules" not in names
        assert "theme" in names


def test_only_changes_of_settings_of_the_file_are_kept() -> None:
    settings = (
        ShownSetting("theme", "nord", Origin.SESSION, "", "", toml='"nord"'),
        ShownSetting("glyphs", "auto", Origin.DEFAULT, "", "", toml='"auto"'),
        ShownSetting("--interval", "2 s", Origin.SESSION, "", ""),
        ShownSetting("alerts.bell", "true", Origin.SESSION, "", "", toml="true"),
    )
    assert lines_to_keep(settings) == 'theme = "nord"\n\n[alerts]\nbell = true'
    assert lines_to_keep(settings[1:3]) == ""


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LunscopeError, match=f"{tmp_path / 'file'}: .*settings not written"):
        write_beside(tmp_path / "file" / "config.toml", "theme = 3")


@pytest.mark.parametrize("size", SMALL_TO_LARGE)
def test_the_dialog(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=40))
    settings = replace(FROZEN, keys={"view.help": "h,question_mark"}, given=frozenset({"keys", "theme"}))
    app = make_app(source, settings=settings)
    assert snap_compare(app, terminal_size=size, run_before=played(source, "f2", "down"))
