"""Settings and themes that change while the screens are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.app import App
from textual.message import Message

from engine.config import config_folder
from engine.text import safe_text
from tui.settings import Settings, merged

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tui.settings import load_settings
from tui.theming import LoadedThemes, user_themes

if TYPE_CHECKING:
    from collectors.alerts.alert_settings import AlertSettings


_MOST_NAMED = 3
_MOST_SHOWN = 3


class SettingsChanged(Message, bubble=False):
    """The files of settings or themes changed; sent by the thread that watches them."""

    def __init__(self, read: SettingsRead) -> None:
        super().__init__()
        self.read = read


class SettingsInForce:
    """Takes up settings as they are written; what is wrong is reported and keeps its former value."""

    def __init__(self, app: LunscopeApp, settings: Settings) -> None:
        self._app, self._state = app, app.app_state
        self.now = settings
        """What the files say now: the last right value of each setting."""
        self.at_start = settings
        """Settings of the start, in force for those that are not taken up later."""
        self.alerts = app.app_state.alert_service
        self.changed_here: set[str] = set()
        """Names of the settings of the file that were changed on the screens."""
        self.first_theme = app.theme
        """Theme for this terminal where none is set."""
        self.file_theme = settings.theme if settings.theme in app.available_themes else None
        """Theme of the file that was taken last; None if that names none, or one that does not exist."""
        self._watch: SettingsWatch | None = None
        self._keep_wrong((*settings.problems, *app.theme_notices, *self._choose_theme()))

    def _choose_theme(self) -> tuple[str, ...]:
        wanted = self.now.theme_option or self.now.theme or self._app.theme
        if wanted in self._app.available_themes:
            self._app.theme = wanted
            return ()
        offered = ", ".join(self._app.own_themes)
        return (f"no theme {wanted!r}; there are {offered} and Textual's own",)

    def _keep_wrong(self, wrong: Sequence[str]) -> None:
        """Keep what is wrong for help and for the number of notices, with what is wrong in files of choices."""
        choices = self._state.choices
        all_wrong = *wrong, choices.columns.problem, choices.tables.problem
        self._state.wrong_settings = tuple(dict.fromkeys(filter(None, all_wrong)))

    def report_wrong(self) -> None:
        """Show what is wrong at the start, as far as there is room: more would hide the screen and each other."""
        wrong = self._state.wrong_settings
        shown = wrong if len(wrong) <= _MOST_SHOWN else wrong[: _MOST_SHOWN - 1]
        for text in shown:
            self._app.notify(safe_text(text), severity="warning", timeout=15, markup=False)
        if len(wrong) > len(shown):
            text = f"{len(wrong) - len(shown)} more settings are wrong: help lists all"
            self._app.notify(text, severity="warning", timeout=15, markup=False)

    def watch(self) -> None:
        """Begin to poll for changes, where a file of settings was named."""
        if self.now.file is not None:
            folder = self.now.theme_folder or config_folder() / "themes"
            self._watch = SettingsWatch(
                self.now.file, folder, lambda read: self._app.post_message(SettingsChanged(read))
            )
            self._watch.start()

    def end_watch(self) -> None:
        """Stop polling."""
        if self._watch is not None:
            self._watch.close()

    def take(self, read: SettingsRead) -> None:
        """Apply what changed, and say in one line what that was and what is wrong."""
        before = self.now
        self.now = merged(before, read.settings)
        changed = [*self._take_themes(read), *self._apply(before, read)]
        wrong = [*read.settings.problems, *read.themes.notices, *self._unknown_theme()]
        self._keep_wrong(wrong)
        if wrong:
            self._app.notify(_in_one_line(wrong), severity="warning", timeout=15, markup=False)
        if changed:
            self._app.notify(f"settings reloaded: {', '.join(changed)}", timeout=5, markup=False)
        self._app.redraw_view()

    def _apply(self, before: Settings, read: SettingsRead) -> Iterator[str]:
        """Take up each setting that changed; yields their names."""
        now = self.now
        if now.keys != before.keys:
            self._state.keys = now.keys
            self._app.set_keymap(now.keys)
            yield "keys"
        if now.theme not in (None, self.file_theme) and now.theme in self._app.available_themes:
            self._app.theme = self.file_theme = now.theme
            yield f"theme {now.theme}"
        if self.alerts is not None and "alerts" not in read.settings.failed:
            former = self.alerts.settings
            self.alerts.reload(read.alerts)
            self.changed_here.discard("alerts.bell")
            if (former.rules, former.bell) != (self.alerts.settings.rules, self.alerts.settings.bell):
                yield "alerts"
            if former.command != self.alerts.settings.command:
                yield "the alert command from the next start on"
        later = at_next_start(before, now)
        if later:
            yield f"{', '.join(later)} from the next start on"

    def _take_themes(self, read: SettingsRead) -> Iterator[str]:
        """Register themes that are new or changed, and draw again if the one in use is among them."""
        for theme in read.themes.themes:
            if self._app.available_themes.get(theme.name) == theme:
                continue
            self._app.register_theme(theme)
            if self._app.theme == theme.name:
                self._app.mutate_reactive(App.theme)
            yield f"colours of {theme.name}"

    def _unknown_theme(self) -> Iterator[str]:
        wanted = self.now.theme
        if wanted is not None and wanted not in self._app.available_themes:
            yield f"no theme {wanted!r}"


def at_next_start(before: Settings, now: Settings) -> list[str]:
    """Name the settings that have other values now, which are taken up at the next start only."""
    values = _at_start_only(before)
    return [name for name, value in _at_start_only(now).items() if value != values[name]]


def _at_start_only(settings: Settings) -> dict[str, object]:
    """Values that are taken up at a start only, by the names that the settings screen has."""
    return {
        "glyphs": settings.glyphs,
        "hints": settings.hints,
        "aliases": settings.reading.aliases,
        "fabric_counters": settings.reading.fabric_counters,
        "exact_time": (settings.reading.most_cost_pct, settings.reading.btf),
        "mouse": settings.mouse,
        "screen.view": settings.view,
        "screen.save_folder": settings.save_folder,
    }


def _in_one_line(wrong: Sequence[str]) -> str:
    """Name what is wrong, each once, and the file where it is not that of the one before."""
    names, file = list[str](), ""
    each = dict.fromkeys(map(safe_text, wrong))
    for text in list(each)[:_MOST_NAMED]:
        names.append(text.removeprefix(file) if file else text)
        file = f"{text.partition(': ')[0]}: "
    more = f" (and {len(each) - _MOST_NAMED} more)" if len(each) > _MOST_NAMED else ""
    return f"{'; '.join(names)}{more}; the former value{'s hold' if len(each) > 1 else ' holds'}"


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
            self.poll()

    def poll(self) -> None:
        """Look once whether the files have changed, and read them once they no longer do."""
        found = stamps(self._file, self._folder)
        settled, self._seen = found == self._seen, found
        if not settled or found == self._read:
            return
        from collectors.alerts.alert_settings import load_alert_settings  # noqa: PLC0415 (the start needs none of it)

        self._read = found
        read = SettingsRead(load_settings(self._file), user_themes(self._folder), load_alert_settings(self._file))
        if not self._stop.is_set():
            self._report(read)
