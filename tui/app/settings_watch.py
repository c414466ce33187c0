"""Reads the settings and themes again when their files change, in a thread: a home folder may hang."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tui.settings import Settings, load_settings
from tui.theming import LoadedThemes, user_themes

if TYPE_CHECKING:
    from collectors.alerts.settings import AlertSettings

PERIOD_S = 1.0

Stamp = tuple[str, int, int, int]


class SettingsRead(Struct, frozen=True):
    """What the files hold now."""

    settings: Settings
    themes: LoadedThemes
    alerts: AlertSettings


def stamps(file: Path, theme_folder: Path) -> tuple[Stamp, ...]:
    """Path, time of change, size and inode of each file that is there."""
    paths = [str(file)]
    with suppress(OSError), os.scandir(theme_folder) as entries:
        paths += sorted(entry.path for entry in entries if entry.name.endswith(".toml"))
    found = []
    for path in paths:
        with suppress(OSError):
            status = os.stat(path)  # noqa: PTH116 (once a second for each)
            found.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


class SettingsWatch:
    """Polls the files; what changed is read when two polls in succession agree, so never a half-written file."""

    def __init__(
        self, file: Path, theme_folder: Path, report: Callable[[SettingsRead], object], period_s: float = PERIOD_S
    ) -> None:
        """Take the files, and what is called, in the thread, with the content after each change."""
        self._file, self._folder, self._report = file, theme_folder, report
        self._period_s = period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lunscope-settings", daemon=True)
        self._read = self._seen = stamps(file, theme_folder)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def close(self) -> None:
        """Stop; does not wait for a folder that hangs."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._poll()

    def _poll(self) -> None:
        found = stamps(self._file, self._folder)
        settled, self._seen = found == self._seen, found
        if not settled or found == self._read:
            return
        from collectors.alerts.settings import load_alert_settings  # noqa: PLC0415 (the start needs none of it)

        self._read = found
        read = SettingsRead(load_settings(self._file), user_themes(self._folder), load_alert_settings(self._file))
        if not self._stop.is_set():
            self._report(read)
