"""The picture of the screen is saved in a folder that is there, and the screen says where, or why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import LunscopeError
from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, until
from tui.session_actions import picture_folders, save_picture


def test_pictures_then_our_own_folder_then_the_present_one(tmp_path: Path) -> None:
    found = list(picture_folders({"HOME": str(tmp_path)}))
    assert found == [tmp_path / ".local/state/lunscope/screenshots", Path.cwd()]
    (tmp_path / "Pictures").mkdir()
    assert next(picture_folders({"HOME": str(tmp_path)})) == tmp_path / "Pictures"
    environment = {"HOME": str(tmp_path), "XDG_PICTURES_DIR": "/nonexistent", "XDG_STATE_HOME": "/var/x"}
    assert next(picture_folders(environment)) == Path("/var/x/lunscope/screenshots")


def test_nothing_is_written_over(tmp_path: Path) -> None:
    saved = {save_picture(str(number), iter((tmp_path / "new",))) for number in range(5)}
    assert sorted(path.read_text() for path in saved) == ["0", "1", "2", "3", "4"]


def test_the_next_folder_is_taken_and_the_last_reason_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert save_picture("x", iter((file / "below", tmp_path))).parent == tmp_path
    with pytest.raises(LunscopeError, match=r"no screenshot saved: .*/file/below: Not a directory"):
        save_picture("x", iter((file / "below",)))


async def test_the_palette_says_where_it_is_or_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_PICTURES_DIR", raising=False)
    app = make_app(ListSource(make_samples(count=3)))
    async with on_stage(app, (120, 40)) as pilot:
        await pilot.press("ctrl+p", *"screenshot", "enter")
        folder = tmp_path / ".local/state/lunscope/screenshots"
        await until(pilot, lambda: folder.is_dir() and list(folder.iterdir()))
        await until(pilot, lambda: any("screenshot saved: " in one.message for one in app._notifications))
        (picture,) = folder.iterdir()
        assert "<svg" in picture.read_text()
        assert app.deliver_screenshot(path=str(picture)) is None
        await until(pilot, lambda: any("no screenshot saved" in one.message for one in app._notifications))
