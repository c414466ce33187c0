"""How the screens show what they show: length and axis of the charts, density, theme; and the screen in files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.notifications import SeverityLevel
from textual.strip import Strip
from textual.timer import Timer

from engine.background_call import BackgroundCall
from engine.config import config_file
from engine.errors import LunscopeError
from engine.text import safe_text
from tui.kept import AxisChoice
from tui.text.format import SECOND_NS, span_text
from tui.textual_internals.screens import shown_lines

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp

BRIEF_S = 2.0
SPANS_S = (60, 300, 900, 3600)
"""Lengths of the chart history."""


class Appearance:
    """The keys that change how things are shown."""

    def __init__(self, app: LunscopeApp, save_folder: Path | None) -> None:
        self._app, self._state = app, app.app_state
        self.save_folder = save_folder
        """Folder where the screen is saved, by the settings."""
        self._brief_timer: Timer | None = None

    def action_view_longer(self) -> None:
        """Lengthen the chart history."""
        self._change_span(1)

    def action_view_shorter(self) -> None:
        """Shorten the chart history."""
        self._change_span(-1)

    def _change_span(self, direction: int) -> None:
        position = SPANS_S.index(self._state.span_ns // SECOND_NS) + direction
        self._state.span_ns = SPANS_S[min(max(position, 0), len(SPANS_S) - 1)] * SECOND_NS
        self._say(f"charts show the last {span_text(self._state.span_ns / SECOND_NS)}")
        self._app.paint()

    def _say(self, text: str) -> None:
        """Show a text for a moment: a notice would lay the screen out again, at more cost than all else of a key."""
        self._state.brief = text
        if self._brief_timer is not None:
            self._brief_timer.stop()
        self._brief_timer = self._app.set_timer(BRIEF_S, self._end_brief)

    def _end_brief(self) -> None:
        self._state.brief = ""
        self._app.paint()

    def action_view_log(self) -> None:
        """Change the axis of the charts of latency."""
        choices = tuple(AxisChoice)
        position = choices.index(self._state.latency_axis) + 1
        self._state.latency_axis = axis = choices[position % len(choices)]
        self._app.notify(f"latency charts: {axis} axis", timeout=2, markup=False)
        self._app.paint()

    def action_view_density(self) -> None:
        """Show more or less on every screen, and keep that for the next start."""
        self._state.density = density = self._state.density.following
        self._state.choices.view.put("view", density)
        self._state.choices.write_soon(lambda problem: self._app.call_later(self._fail, problem))
        settings = self._app.settings.now
        # What was chosen by the settings is in force again at the next start.
        fate = f"; {settings.view} at the next start, by the settings" if settings.view else ""
        self._app.notify(f"view: {density}{fate}", timeout=4, markup=False)
        view = self._app.top_view
        if view is not None:
            view.take_density()
            self._app.call_after_refresh(view.refresh_view)

    def action_view_theme(self) -> None:
        """Take the next of lunscope's themes."""
        names = self._app.own_themes
        position = names.index(self._app.theme) if self._app.theme in names else -1
        self._app.theme = names[(position + 1) % len(names)]
        self._app.notify(f"theme {self._app.theme}", markup=False)

    def action_view_save(self) -> None:
        """Save the screen as SVG and text, and show where, or why not."""
        screen = SavedScreen(self._app.export_screenshot(), text_of_lines(shown_lines(self._app)))

        def save() -> None:
            try:
                saved = save_screen(screen, screen_folders(self.save_folder))
            except LunscopeError as error:
                self._app.call_later(self._fail, str(error), "error")
            else:
                self._app.call_later(
                    self._app.notify, f"screen saved: {safe_text(str(saved))}.svg, .txt", timeout=10, markup=False
                )

        BackgroundCall(save, "lunscope-save")

    def _fail(self, text: str, severity: SeverityLevel = "warning") -> None:
        self._app.notify(safe_text(text), severity=severity, timeout=15, markup=False)


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
