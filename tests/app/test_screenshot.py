"""The screen is saved as picture and text in a folder that is there, and it says where, or why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import LunscopeError
from engine.replacing import replace
from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, make_app, on_stage, said, screen_text, until
from tui.app.appearance import SavedScreen, save_screen, screen_folders, text_of_lines
from tui.load.host_guard import WriteQuestion
from tui.screens.load.confirm_write import ConfirmWrite
from tui.settings import load_settings
from tui.textual_internals.screens import shown_lines

SCREEN = SavedScreen("<svg/>", "text\n")


def test_pictures_then_our_own_folder_then_the_present_one(tmp_path: Path) -> None:
    found = list(screen_folders(None, {"HOME": str(tmp_path)}))
    assert found == [tmp_path / ".local/state/lunscope/screenshots", Path.cwd()]
    (tmp_path / "Pictures").mkdir()
    assert next(screen_folders(None, {"HOME": str(tmp_path)})) == tmp_path / "Pictures"
    environment = {"HOME": str(tmp_path), "XDG_PICTURES_DIR": str(tmp_path / "missing"), "XDG_STATE_HOME": "/var/x"}
    assert next(screen_folders(None, environment)) == Path("/var/x/lunscope/screenshots")


def test_a_chosen_folder_is_the_only_one(tmp_path: Path) -> None:
    assert list(screen_folders(tmp_path / "new", {"HOME": str(tmp_path)})) == [tmp_path / "new"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "below"
    screens = [SavedScreen(f"svg {number}", f"text {number}") for number in range(5)]
    saved = [save_screen(screen, iter((folder,))) for screen in screens]
    for screen, path in zip(screens, saved, strict=True):
        assert Path(f"{path}.svg").read_text() == screen.svg
        assert Path(f"{path}.txt").read_text() == screen.text
    assert len(list(folder.iterdir())) == 10


def test_a_name_of_which_one_file_exists_is_not_used(tmp_path: Path) -> None:
    first = save_screen(SCREEN, iter((tmp_path,)))
    Path(f"{first}.svg").unlink()
    text = Path(f"{first}.txt")
    text.write_text("mine")
    second = save_screen(SCREEN, iter((tmp_path,)))
    assert text.read_text() == "mine"
    assert {path.suffix for path in tmp_path.glob(f"{second.name}.*")} == {".svg", ".txt"}
    assert second == first or not Path(f"{first}.svg").exists()


def test_the_next_folder_is_used_and_the_last_reason_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert save_screen(SCREEN, iter((file / "below", tmp_path))).parent == tmp_path
    with pytest.raises(LunscopeError, match=r"screen not saved: .*/file/below: Not a directory: set save_folder below"):
        save_screen(SCREEN, iter((file / "below",)))


def test_the_folder_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "config.toml"
    file.write_text('[screen]\nsave_folder = "~/screens"\nview = "dense"\n')
    settings = load_settings(file)
    assert (settings.save_folder, settings.view, settings.problems) == (tmp_path / "screens", "dense", ())


@pytest.mark.parametrize("keys", [("S",), ("ctrl+p", *"screenshot", "enter")])
async def test_key_and_palette_save_and_say_where(keys: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "screens"
    app = make_app(ListSource(make_samples(count=3)), settings=replace(FROZEN, save_folder=folder))
    async with on_stage(app, (120, 40)) as pilot:
        await pilot.press(*keys)
        await until(pilot, lambda: folder.is_dir() and len(list(folder.iterdir())) == 2)
        await until(pilot, lambda: said(app, "screen saved: "))
        picture, text = sorted(folder.iterdir())
        assert "<svg" in picture.read_text()
        lines = text.read_text().splitlines()
        assert len(lines) == 40
        assert "Overview" in text.read_text()
        assert "\x1b" not in text.read_text()
        assert lines[1] == screen_text(pilot).splitlines()[1].rstrip()


async def test_what_shows_behind_a_dialog_is_saved_and_stays_on_the_screen(tmp_path: Path) -> None:
    app = make_app(ListSource(make_samples(count=3)), settings=replace(FROZEN, save_folder=tmp_path))
    async with on_stage(app, (120, 40)) as pilot:
        app.push_screen(ConfirmWrite("/dev/vdb", lambda path: WriteQuestion(path, "")))
        await until(pilot, lambda: "destroys data" in screen_text(pilot))
        app.screen.refresh()
        assert "Overview" in text_of_lines(shown_lines(app))
        app.appearance.action_view_save()
        await until(pilot, lambda: said(app, "screen saved: "))
        (text,) = tmp_path.glob("*.txt")
        (picture,) = tmp_path.glob("*.svg")
        for saved in (text.read_text(), picture.read_text(), app.export_screenshot()):
            assert "Overview" in saved


async def test_a_folder_that_cannot_be_made_is_named_with_the_setting(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    app = make_app(ListSource(make_samples(count=3)), settings=replace(FROZEN, save_folder=file))
    async with on_stage(app, (120, 40)) as pilot:
        await pilot.press("S")
        await until(pilot, lambda: said(app, "screen not saved: "))
        assert said(app, "set save_folder below [screen]")
