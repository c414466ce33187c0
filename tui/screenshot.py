"""Where screenshots are stored, and how one is saved without overwriting a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from engine.errors import LunscopeError

MOST_OF_A_SECOND = 100


def picture_folders(environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Yield folders to try, best first: pictures, if there is such a folder, our own, and the present one.

    $XDG_PICTURES_DIR is of xdg-user-dirs, $XDG_STATE_HOME of the XDG Base Directory Specification.
    """
    home = Path(environ.get("HOME") or "/nonexistent")
    pictures = Path(environ.get("XDG_PICTURES_DIR") or home / "Pictures")
    if pictures.is_dir():
        yield pictures
    yield Path(environ.get("XDG_STATE_HOME") or home / ".local/state") / "lunscope" / "screenshots"
    yield Path.cwd()


def save_picture(svg: str, folders: Iterator[Path]) -> Path:
    """Save a screenshot in the first folder that is writable; returns its path.

    Raises:
        LunscopeError: none is; the text names the last one and the reason.
    """
    reason = "no folder"
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return _write_new(svg, folder)
        except OSError as error:
            reason = f"{folder}: {error.strerror or error}"
    raise LunscopeError(f"no screenshot saved: {reason}")


def _write_new(svg: str, folder: Path) -> Path:
    stamp = datetime.now().astimezone().strftime("%Y-%m-%dT%H-%M-%S")
    for number in range(1, MOST_OF_A_SECOND):
        path = folder / f"lunscope-{stamp}{'' if number == 1 else f'-{number}'}.svg"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(svg)
        except FileExistsError:
            continue
        return path
    raise OSError(f"{MOST_OF_A_SECOND} screenshots in one second")
