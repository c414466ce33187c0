"""Settings, keys, rules and themes that are written while the screens are shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collectors.alerts.alert_settings import load_alert_settings
from collectors.alerts.service import AlertService
from engine.replacing import replace
from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, make_app, notices, on_stage, play, said, screen_text, until
from tui.app.app import LunscopeApp
from tui.app.settings_in_force import SettingsRead, SettingsWatch, stamps
from tui.app_input import AppInput
from tui.screens.help.screen import HelpScreen
from tui.screens.settings.shown_setting import Origin
from tui.settings import Settings, load_settings, merged

THEME = 'name = "mine"\nprimary = "{}"\ndark = true\n'


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the files more often than people need."""
    monkeypatch.setattr(SettingsWatch.__init__, "__defaults__", (0.02,))


def staged(file: Path) -> tuple[LunscopeApp, ListSource]:
    folder = file.with_name("themes")
    folder.mkdir(exist_ok=True)
    settings = replace(load_settings(file), theme_folder=folder, hints_file=None)
    source = ListSource(make_samples(count=6, events=False))
    service = AlertService(load_alert_settings(file))
    return LunscopeApp(
        AppInput(source, alert_service=service), settings=replace(settings, theme=settings.theme or FROZEN.theme)
    ), source


@pytest.mark.slow
async def test_keys_rules_and_theme_are_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    app, source = staged(file)
    async with on_stage(app) as pilot:
        await play(pilot, source, 3)
        file.write_text('theme = "nord"\n[keys]\nview.help = "Q"\n[alerts.rules]\nslow = "disks await_ms>1h"\n')
        await until(pilot, lambda: said(app, "settings reloaded: keys, theme nord, alerts"))
        assert app.theme == "nord"
        assert "Q Help" in screen_text(pilot).splitlines()[-1]
        await pilot.press("question_mark")
        assert not isinstance(app.screen, HelpScreen)
        await pilot.press("Q")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        await play(pilot, source, 1)
        assert app.settings.alerts is not None
        assert [rule.name for rule in app.settings.alerts.settings.rules] == ["stall", "slow"]
        file.unlink()
        await until(pilot, lambda: said(app, "settings reloaded: keys, alerts"))
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert app.theme == "nord", "what was chosen stays until the next start"


async def test_what_holds_from_the_next_start_on_is_said_and_listed_so(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("hints = false\n")
    app, source = staged(file)
    async with on_stage(app) as pilot:
        await play(pilot, source, 2)
        file.write_text('mouse = false\nglyphs = 3\n[screen]\nview = "lite"\n')
        await until(pilot, lambda: said(app, "hints, mouse, screen.view from the next start on"))
        listed = {setting.name: (setting.value, setting.origin) for setting in app.editor.shown()}
        assert listed["mouse"] == ("true", Origin.START)
        assert app.wants_mouse
        assert listed["hints"] == ("false", Origin.START)
        assert listed["screen.view"] == ("as left", Origin.START)
        assert listed["screen.save_folder"] == ("default", Origin.DEFAULT)
        assert listed["glyphs"] == ("auto", Origin.FAULTY)
        assert listed["aliases"] == ("0", Origin.DEFAULT)
        assert "1 notice: ?" in screen_text(pilot)
        file.write_text("hints = false\n")
        await until(pilot, lambda: "notice" not in screen_text(pilot))
        listed = {setting.name: (setting.value, setting.origin) for setting in app.editor.shown()}
        assert listed["hints"] == ("false", Origin.FILE)
        assert listed["mouse"] == ("true", Origin.DEFAULT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[keys]\nview.help = "Q"\nnope.x = "z"\n', "knows no action 'nope.x'"),
        ("theme = \n", "the former value holds"),
        (
            '[keys]\nview.help = "Q"\nsession.pause = "p"\nsession.quit = "p"\nnope.x = "z"\n',
            "'p' is given to session.quit and to session.pause; session.quit has it; [keys] 'p' is given",
        ),
        ('theme = "no such"\n[keys]\nview.help = "f9"\n', "no theme 'no such'"),
        ('[keys]\nview.help = "f9"\n[alerts.rules]\nfirst = "disks nope>1"\n', "[alerts.rules] first"),
    ],
)
async def test_what_is_wrong_is_reported_and_keeps_its_former_value(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[keys]\nview.help = "f9"\n[alerts.rules]\nfirst = "disks await_ms>1h"\n')
    app, source = staged(file)
    async with on_stage(app) as pilot:
        await play(pilot, source, 3)
        theme = app.theme
        file.write_text(text)
        await until(pilot, lambda: said(app, message))
        (note,) = (note for note in notices(app) if message in note)
        assert "the former value" in note
        assert "\n" not in note
        assert app.theme == theme
        assert app.app_state.keys["view.help"] == "f9"
        assert app.settings.alerts is not None
        if "alerts" in text or text.startswith("theme = \n"):
            assert [rule.name for rule in app.settings.alerts.settings.rules] == ["stall", "first"]
        await pilot.press("f9")
        assert isinstance(app.screen, HelpScreen)


async def test_a_theme_file_that_changes_is_drawn_at_once_and_a_broken_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('theme = "mine"\n')
    (tmp_path / "themes").mkdir()
    mine = tmp_path / "themes" / "mine.toml"
    mine.write_text(THEME.format("#112233"))
    app, source = staged(file)
    async with on_stage(app) as pilot:
        await play(pilot, source, 3)
        assert app.theme == "mine"
        assert app.get_css_variables()["primary"].lower() == "#112233"
        mine.write_text(THEME.format("#445566"))
        await until(pilot, lambda: said(app, "colours of mine"))
        assert app.get_css_variables()["primary"].lower() == "#445566"
        assert app.stylesheet._variables["primary"].lower() == "#445566"
        mine.write_text(THEME.format("no colour"))
        await until(pilot, lambda: said(app, "mine.toml skipped"))
        assert app.get_css_variables()["primary"].lower() == "#445566"
        (tmp_path / "themes" / "second.toml").write_text(THEME.format("#778899").replace("mine", "second"))
        await until(pilot, lambda: "second" in app.available_themes)


async def test_a_theme_may_come_after_the_setting_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('theme = "mine"\n')
    app, source = staged(file)
    async with on_stage(app) as pilot:
        await play(pilot, source, 3)
        assert said(app, "no theme 'mine'")
        before = app.theme
        file.write_text('theme = "mine"\nhints = false\n')
        await until(pilot, lambda: said(app, "no theme 'mine'; the former value holds"))
        assert app.theme == before
        (tmp_path / "themes" / "mine.toml").write_text(THEME.format("#112233"))
        await until(pilot, lambda: said(app, "theme mine"))
        assert app.theme == "mine"


async def test_nothing_is_watched_without_a_file() -> None:
    source = ListSource(make_samples(count=3))
    app = make_app(source)
    async with on_stage(app) as pilot:
        await play(pilot, source, 2)
        assert app.settings._watch is None


def test_settings_with_errors_keep_their_former_values(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('theme = 3\nglyphs = "ascii"\nhints = false\n[aliases]\n"36000c29" = ""\n')
    former = Settings(theme="nord", theme_option="mine", hints=True)
    now = merged(former, load_settings(file))
    assert (now.theme, now.glyphs, now.hints, now.theme_option) == ("nord", "ascii", False, "mine")
    assert now.reading is former.reading
    assert len(now.problems) == 2
    file.write_text("{")
    assert merged(former, load_settings(file)).theme == "nord"


@contextmanager
def watching(file: Path, folder: Path) -> Iterator[tuple[SettingsWatch, list[SettingsRead]]]:
    found: list[SettingsRead] = []
    watch = SettingsWatch(file, folder, found.append, 3600.0)
    yield watch, found
    watch.close()


def test_a_file_is_read_once_it_no_longer_changes(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    with watching(file, tmp_path / "themes") as (watch, found):
        watch.poll()
        file.write_text('theme = "a')
        watch.poll()
        file.write_text('theme = "after"')
        watch.poll()
        assert found == []
        watch.poll()
        assert [read.settings.theme for read in found] == ["after"]
        watch.poll()
        assert len(found) == 1
        file.unlink()
        watch.poll()
        watch.poll()
        assert found[-1].settings.theme is None


def test_stamps_see_themes_and_replaced_files(tmp_path: Path) -> None:
    file, folder = tmp_path / "config.toml", tmp_path / "themes"
    assert stamps(file, folder) == ()
    folder.mkdir()
    (folder / "a.toml").write_text("")
    (folder / "note.txt").write_text("")
    assert [Path(stamp[0]).name for stamp in stamps(file, folder)] == ["a.toml"]
    file.write_text("1")
    before = stamps(file, folder)
    (tmp_path / "new").write_text("1")
    (tmp_path / "new").replace(file)
    assert stamps(file, folder) != before
