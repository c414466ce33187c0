"""Settings and themes that change while the screens are shown; a mixin of the app."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.app import App
from textual.message import Message

from engine.config import config_folder
from engine.text import safe_text
from tui.app.settings_watch import SettingsRead, SettingsWatch
from tui.app.time_keys import SessionActions
from tui.theme.settings import Settings, merged

if TYPE_CHECKING:
    from collectors.alerts.service import AlertService


_MOST_NAMED = 3
_MOST_SHOWN = 3


class SettingsChanged(Message, bubble=False):
    """The files of settings or themes changed; sent by the thread that watches them."""

    def __init__(self, read: SettingsRead) -> None:
        super().__init__()
        self.read = read


class Reloading(SessionActions):
    """Takes up settings as they are written; what is wrong is reported and keeps its former value."""

    settings: Settings
    """What the files say now, of each setting the last value that was right."""
    settings_at_start: Settings
    """In force for those that are not taken up later."""
    _alerts: AlertService | None
    first_theme = ""
    """Theme for this terminal where none is set."""
    file_theme: str | None = None
    """Theme of the file that was taken last; None if that names none, or one that does not exist."""
    _settings_watch: SettingsWatch | None = None

    @functools.cached_property
    def changed_here(self) -> set[str]:
        """Names of the settings of the file that were changed on the screens."""
        return set()

    def keep_wrong_settings(self, wrong: Sequence[str]) -> None:
        """Keep what is wrong for help and for the number of notices, with what is wrong in files of choices."""
        choices = self.app_state.columns.problem, self.app_state.tables.problem
        self.app_state.wrong_settings = tuple(dict.fromkeys(filter(None, (*wrong, *choices))))

    def report_wrong_settings(self) -> None:
        """Show what is wrong at the start, as far as there is room: more would hide the screen and each other."""
        wrong = self.app_state.wrong_settings
        shown = wrong if len(wrong) <= _MOST_SHOWN else wrong[: _MOST_SHOWN - 1]
        for text in shown:
            self.notify(safe_text(text), severity="warning", timeout=15, markup=False)
        if len(wrong) > len(shown):
            text = f"{len(wrong) - len(shown)} more settings are wrong: help lists all"
            self.notify(text, severity="warning", timeout=15, markup=False)

    def watch_settings(self) -> None:
        """Begin to poll for changes, where a file of settings was named."""
        if self.settings.file is not None:
            folder = self.settings.theme_folder or config_folder() / "themes"
            self._settings_watch = SettingsWatch(
                self.settings.file, folder, lambda read: self.post_message(SettingsChanged(read))
            )
            self._settings_watch.start()

    def end_watch_of_settings(self) -> None:
        """Stop polling."""
        if self._settings_watch is not None:
            self._settings_watch.close()

    def on_settings_changed(self, message: SettingsChanged) -> None:
        """Apply what changed, and say in one line what that was and what is wrong."""
        read, before = message.read, self.settings
        self.settings = merged(before, read.settings)
        changed = [*self._take_themes(read), *self._apply(before, read)]
        wrong = [*read.settings.problems, *read.themes.notices, *self._unknown_theme()]
        self.keep_wrong_settings(wrong)
        if wrong:
            self.notify(_in_one_line(wrong), severity="warning", timeout=15, markup=False)
        if changed:
            self.notify(f"settings reloaded: {', '.join(changed)}", timeout=5, markup=False)
        self.redraw_view()

    @abstractmethod
    def redraw_view(self) -> None:
        """Draw the view again with its key line."""

    def _apply(self, before: Settings, read: SettingsRead) -> Iterator[str]:
        """Take up each setting that changed; yields their names."""
        now = self.settings
        if now.keys != before.keys:
            self.app_state.keys = now.keys
            self.set_keymap(now.keys)
            yield "keys"
        if now.theme not in (None, self.file_theme) and now.theme in self.available_themes:
            self.theme = self.file_theme = now.theme
            yield f"theme {now.theme}"
        if self._alerts is not None and "alerts" not in read.settings.failed:
            former = self._alerts.settings
            self._alerts.reload(read.alerts)
            self.changed_here.discard("alerts.bell")
            if (former.rules, former.bell) != (self._alerts.settings.rules, self._alerts.settings.bell):
                yield "alerts"
            if former.command != self._alerts.settings.command:
                yield "the alert command from the next start on"
        later = at_next_start(before, now)
        if later:
            yield f"{', '.join(later)} from the next start on"

    def _take_themes(self, read: SettingsRead) -> Iterator[str]:
        """Register themes that are new or changed, and draw again if the one in use is among them."""
        for theme in read.themes.themes:
            if self.available_themes.get(theme.name) == theme:
                continue
            self.register_theme(theme)
            if self.theme == theme.name:
                self.mutate_reactive(App.theme)
            yield f"colours of {theme.name}"

    def _unknown_theme(self) -> Iterator[str]:
        wanted = self.settings.theme
        if wanted is not None and wanted not in self.available_themes:
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
        "exact_time": settings.reading.most_cost_pct,
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
