"""Hints of a first start: one line until it is dismissed, never again after that, none with the setting off."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.replacing import replace
from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, screen_text, until
from tests.app.taken import SnapCompare
from tests.app.test_snapshots import played
from tui.kept import Hints
from tui.settings import load_settings
from tui.widgets.header import HintLine

WORDS = "hide this hint"


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_the_line_names_the_keys_in_force_and_escape_hides_it_for_good(
    size: tuple[int, int], tmp_path: Path
) -> None:
    file = tmp_path / "state" / "hints-dismissed"
    settings = replace(FROZEN, hints_file=file, keys={"view.help": "h"})
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source, settings=settings), size) as pilot:
        await play(pilot, source, 4)
        line = screen_text(pilot).splitlines()[-2]
        assert line.split() == ["h", "help", "/", "filter", "^p", "all", "commands", "Esc", *WORDS.split()]
        await pilot.press("slash", *"zz", "escape")
        assert WORDS in screen_text(pilot), "that Escape was the filter's"
        assert not file.exists()
        await pilot.press("3", "1", "escape")
        await pilot.pause()
        assert WORDS not in screen_text(pilot)
        await until(pilot, file.exists)
        await pilot.press("3")
        await pilot.pause()
        assert WORDS not in screen_text(pilot)
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source, settings=settings), size) as pilot:
        await play(pilot, source, 4)
        assert WORDS not in screen_text(pilot)
        assert not pilot.app.screen.query(HintLine)


async def test_a_click_hides_it_and_low_windows_do_not_show_it(tmp_path: Path) -> None:
    settings = replace(FROZEN, hints_file=tmp_path / "dismissed")
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source, settings=settings), (80, 16)) as pilot:
        await play(pilot, source, 2)
        assert WORDS not in screen_text(pilot)
    async with on_stage(make_app(source := ListSource(make_samples(count=6)), settings=settings)) as pilot:
        await play(pilot, source, 2)
        await pilot.click(HintLine)
        await pilot.pause()
        assert WORDS not in screen_text(pilot)
        await until(pilot, (tmp_path / "dismissed").exists)


async def test_none_with_the_setting_off(tmp_path: Path) -> None:
    settings = replace(FROZEN, hints_file=tmp_path / "dismissed", hints=False)
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source, settings=settings)) as pilot:
        await play(pilot, source, 2)
        assert WORDS not in screen_text(pilot)


def test_a_folder_that_cannot_be_written_keeps_them_away_until_the_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    hints = Hints(tmp_path / "file" / "dismissed")
    assert hints.wanted
    hints.dismiss()
    hints.write()
    assert not hints.wanted
    assert not Hints().wanted


def test_the_file_is_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "config.toml"
    assert load_settings(file).hints_file == tmp_path / "lunscope" / "hints-dismissed"
    file.write_text("hints = false\n")
    assert load_settings(file).hints is False
    file.write_text("hints = 1\n")
    assert load_settings(file).problems == (f"{file}: hints must be true or false",)


@pytest.mark.parametrize("size", [(60, 20), *SIZES])
def test_the_line(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    settings = replace(FROZEN, hints_file=Path("/nonexistent/dismissed"))
    source = ListSource(make_samples(count=40))
    assert snap_compare(make_app(source, settings=settings), terminal_size=size, run_before=played(source))
