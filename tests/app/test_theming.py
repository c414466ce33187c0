"""Themes: all bundled ones are complete and legible; a broken one of the user's is a notice and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from textual.app import App
from textual.theme import BUILTIN_THEMES
from textual.widgets import Label

from tests.app.shows import OneWidget, disks
from tui.text.columns import grid_columns
from tui.text.glyphs import ASCII, UNICODE, choose_glyphs
from tui.theming import (
    bundled_themes,
    default_theme,
    register_themes,
    user_themes,
    variable_defaults,
)
from tui.widgets.grid.table import Grid

SOUND = 'name = "mine"\nprimary = "#00ff00"\n'


def test_bundled_themes_define_the_same_variables() -> None:
    names = [theme.name for theme in bundled_themes()]
    assert names == ["lunscope-dark", "lunscope-light", "lunscope-colourblind", "lunscope-ansi", "lunscope-contrast"]
    ansi_only = {"ansi-background", "ansi-foreground"}
    assert len({frozenset(set(theme.variables) - ansi_only) for theme in bundled_themes()}) == 1


@pytest.mark.parametrize("name", [*BUILTIN_THEMES, *(theme.name for theme in bundled_themes())])
async def test_every_theme_styles_the_widgets(name: str) -> None:
    grid = Grid("disks", grid_columns("disks", ["iops"]))
    async with OneWidget(grid, theme=name).run_test(size=(40, 5)) as pilot:
        grid.show(disks(["sda"], iops=[1]))
        await pilot.pause()
        assert "sda" in grid.render_line(2).text


@pytest.mark.parametrize("name", [theme.name for theme in bundled_themes()])
async def test_without_colour_text_stays_legible_and_the_cursor_shows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    grid = Grid("disks", grid_columns("disks", ["iops"]))
    app = OneWidget(grid, theme=name)
    async with app.run_test(size=(40, 5)) as pilot:
        grid.show(disks(["sda", "sdb"], iops=[2, 1]))
        await pilot.pause()
        lines = app.screen._compositor.render_strips()
        styles = [segment.style for line in lines for segment in line if segment.style is not None]
        assert all((style.color is None or style.color.is_default) for style in styles)
        assert all((style.bgcolor is None or style.bgcolor.is_default) for style in styles)
        assert any(segment.style is not None and segment.style.reverse for segment in lines[2])
        assert not any(segment.style is not None and segment.style.reverse for segment in lines[3])


async def test_user_themes_load_and_broken_ones_become_notices(tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(SOUND + 'ansi = true\n[variables]\nhot = "ansi_red"\n')
    (tmp_path / "bad.toml").write_text(SOUND + "speed = 1\n")
    (tmp_path / "huge.toml").write_text("#" * 100_000)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.toml").mkdir()
    app = OneWidget(Label("x"))
    notices = register_themes(app, tmp_path)
    assert "mine" in app.available_themes
    assert len(notices) == 3
    async with app.run_test() as pilot:
        app.theme = "mine"
        await pilot.pause()
        assert app.theme_variables["hot"] == "ansi_red"
        assert app.theme_variables["read"] == "ansi_cyan"


def test_no_theme_folder_is_no_notice(tmp_path: Path) -> None:
    assert user_themes(tmp_path / "none").notices == ()


def test_themes_are_looked_for_in_the_config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "lunscope" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(SOUND)
    app: App[None] = App()
    assert register_themes(app) == ()
    assert "mine" in app.available_themes


def test_defaults_follow_the_darkness_of_a_theme() -> None:
    light = variable_defaults(BUILTIN_THEMES["textual-light"])
    assert light["read"] != variable_defaults(BUILTIN_THEMES["nord"])["read"]
    assert variable_defaults(BUILTIN_THEMES["ansi-dark"])["read"].startswith("ansi_")
    assert default_theme("truecolor") == "lunscope-dark"
    assert default_theme("standard") == "lunscope-ansi"
    assert default_theme(None) == "lunscope-ansi"


@pytest.mark.parametrize(
    ("environ", "glyphs"),
    [
        ({"LANG": "en_GB.UTF-8"}, UNICODE),
        ({"LANG": "C"}, UNICODE),
        ({}, UNICODE),
        ({"LANG": "de_DE.ISO-8859-1"}, ASCII),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "C"}, ASCII),
        ({"LANG": "de_DE.ISO-8859-1", "LC_ALL": "C.utf8"}, UNICODE),
        ({"LANG": "en_GB.UTF-8", "TERM": "linux"}, ASCII),
    ],
)
def test_marks_follow_locale_and_terminal(environ: dict[str, str], glyphs: object) -> None:
    assert choose_glyphs("auto", environ) is glyphs
    assert choose_glyphs("unicode", environ) is UNICODE
    assert choose_glyphs("ascii", environ) is ASCII


@pytest.mark.parametrize(
    ("environ", "is_ascii"),
    [
        ({"LANG": "de_XX.ISO-8859-1"}, True),
        ({"LANG": "de_XX.ISO-8859-1", "LC_CTYPE": ""}, True),
        ({"LANG": "de_XX.ISO-8859-1", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "C"}, False),
    ],
)
def test_the_locale_that_python_sets_itself_is_not_the_operators(environ: dict[str, str], is_ascii: bool) -> None:
    """Where that of the operator is not installed here, Python sets LC_CTYPE in the environment of its process."""
    script = "from tui.text.glyphs import ASCII, choose_glyphs; print(choose_glyphs('auto') is ASCII)"
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **environ}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{is_ascii}\n"
