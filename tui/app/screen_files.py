"""The screen in files: a picture as SVG and the same as plain text, in a folder that never loses an older one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from textual.strip import Strip

from engine.config import config_file
from engine.errors import LunscopeError

MOST_OF_A_SECOND = 100
SUFFIXES = (".svg", ".txt")


class SavedScreen(Struct, frozen=True):
    """A screen as SVG and as text, by suffix."""

    svg: str
    text: str

    @property
    def contents(self) -> tuple[str, str]:
        """Files in the order of SUFFIXES."""
        return self.svg, self.text


def text_of_lines(lines: Sequence[Strip]) -> str:
    """Text of the lines of a screen: no escape sequences, no other control characters, no blanks at the ends."""
    texts = ("".join(segment.text for segment in line if not segment.control) for line in lines)
    return "".join(f"{''.join(char for char in text if char.isprintable()).rstrip()}\n" for text in texts)


def screen_folders(chosen: Path | None, environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Yield folders to try, best first.

    The chosen one and no other; without one, pictures if there is such a folder, our own, and the present one.
    $XDG_PICTURES_DIR is of xdg-user-dirs, $XDG_STATE_HOME of the XDG Base Directory Specification.
    """
    if chosen is not None:
        yield chosen
        return
    home = Path(environ.get("HOME") or "/nonexistent")
    pictures = Path(environ.get("XDG_PICTURES_DIR") or home / "Pictures")
    if pictures.is_dir():
        yield pictures
    yield Path(environ.get("XDG_STATE_HOME") or home / ".local/state") / "lunscope" / "screenshots"
    yield Path.cwd()


def save_screen(screen: SavedScreen, folders: Iterator[Path]) -> Path:
    """Save a screen in the first folder that is writable, made if missing; returns the path without suffix.

    Raises:
        LunscopeError: none is; the text names the last one, the reason and the setting.
    """
    reason = "no folder"
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return _write_new(screen, folder)
        except OSError as error:
            reason = f"{folder}: {error.strerror or error}"
    raise LunscopeError(f"screen not saved: {reason}: set save_folder below [screen] in {config_file()}")


def _write_new(screen: SavedScreen, folder: Path) -> Path:
    """Write both files under a name that neither has yet; none is left if one cannot be written."""
    stamp = datetime.now().astimezone().strftime("%Y-%m-%dT%H-%M-%S")
    for number in range(1, MOST_OF_A_SECOND):
        name = f"lunscope-{stamp}{'' if number == 1 else f'-{number}'}"
        try:
            _write_pair(screen, [folder / f"{name}{suffix}" for suffix in SUFFIXES])
        except FileExistsError:
            continue
        return folder / name
    raise OSError(f"{MOST_OF_A_SECOND} screens in one second")


def _write_pair(screen: SavedScreen, paths: Sequence[Path]) -> None:
    with ExitStack() as made:
        for path, content in zip(paths, screen.contents, strict=True):
            with path.open("x", encoding="utf-8") as file:
                made.callback(path.unlink, missing_ok=True)
                file.write(content)
        made.pop_all()
