"""Settings of `config.toml`: theme, glyphs, hints, mouse and keys; those of readers and alerts are read with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field
from textual.keys import KEY_DISPLAY_ALIASES, REPLACED_KEYS, Keys

from collectors.sampling.reading_settings import SECTIONS, ReadingSettings, load_reading_settings
from engine.config import config_file, state_folder
from engine.replacing import replace
from engine.text import short_text
from engine.toml_text import read_toml
from tui.kept import HINTS_FILE, Density
from tui.keys import BY_ID, clashes
from tui.text.glyphs import GlyphSetting

NAMES = {"theme", "glyphs", "hints", "mouse", "keys", "alerts", "screen", *SECTIONS}
"""Names at the top of the file."""
SCREEN_NAMES = {"save_folder", "view"}
"""Names below `[screen]`."""
GLYPHS: tuple[GlyphSetting, ...] = ("auto", "unicode", "ascii")


class Settings(Struct, frozen=True):
    """Settings in force; invalid ones are listed in `problems` and have their default."""

    theme: str | None = None
    glyphs: GlyphSetting = "auto"
    """Unicode, ASCII, or "auto" for what the terminal supports."""
    theme_folder: Path | None = None
    """Folder of the user's themes; None is the XDG folder."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Action id to keys separated by commas."""
    problems: tuple[str, ...] = ()
    choices_folder: Path | None = None
    """Folder of the files of what is chosen on the screens; None keeps that until the end."""
    hints: bool = True
    """Whether a first start shows hints."""
    hints_file: Path | None = None
    """File that is there once hints were dismissed; None: never show any."""
    file: Path | None = None
    """File of the settings, which need not be there; None: none is read or watched."""
    theme_option: str | None = None
    """Theme of the command line, which precedes that of the file."""
    given: frozenset[str] = frozenset()
    """Names of the settings in the file."""
    failed: frozenset[str] = frozenset()
    """Names of the settings with an error; all of them if the file cannot be read."""
    reading: ReadingSettings = field(default_factory=ReadingSettings)
    """Settings of readers, which hold from the start of the source on."""
    mouse: bool = True
    """Whether clicks and moves of the mouse are asked of the terminal, which then selects no text by itself."""
    no_mouse: bool = False
    """Whether an option of the command forbids to ask for them."""
    view: Density | None = None
    """View at the start; None is the one last chosen."""
    save_folder: Path | None = None
    """Folder where the screen is saved; None is one of the user's (tui.app.appearance)."""

    @property
    def asks_for_mouse(self) -> bool:
        """What file and option say of the mouse."""
        return self.mouse and not self.no_mouse


def load_settings(path: Path | None = None) -> Settings:
    """Read the settings; an invalid entry is ignored with a notice, and never prevents the start."""
    file = path or config_file()
    base = Settings(file=file, choices_folder=file.parent, hints_file=state_folder() / HINTS_FILE)
    try:
        document = read_toml(file)
    except FileNotFoundError:
        return base
    except (OSError, ValueError) as error:
        problem = f"{file}: {short_text(str(error))}"
        return replace(base, problems=(problem,), failed=frozenset(NAMES))
    return _read(document, file, base)


def merged(former: Settings, new: Settings) -> Settings:
    """Take new settings; those with an error keep their former values."""
    kept = {name: getattr(former, name) for name in ("theme", "glyphs", "hints", "mouse", "keys") if name in new.failed}
    if "screen" in new.failed:
        new = replace(new, view=former.view, save_folder=former.save_folder)
    reading = former.reading if new.failed & SECTIONS else new.reading
    return replace(
        new,
        **kept,
        reading=reading,
        no_mouse=former.no_mouse,
        theme_option=former.theme_option,
        theme_folder=former.theme_folder,
    )


def _read(document: Mapping[str, object], file: Path, base: Settings) -> Settings:
    wrong: dict[str, list[str]] = {}
    for name in document.keys() - NAMES:
        wrong[name] = [f"{file}: unknown setting {name!r}{_suggestion(name, NAMES)}"]
    reading = load_reading_settings(file)
    for problem in reading.problems:
        section = next((name for name in ("fabric_counters", "exact_time") if name in problem), "aliases")
        wrong.setdefault(section, []).append(problem)
    if "alerts" in document:
        from collectors.alerts.alert_settings import load_alert_settings  # noqa: PLC0415 (what it needs can wait until the first screen is drawn)

        wrong["alerts"] = list(load_alert_settings(file).problems)
    theme = document.get("theme")
    if theme is not None and not isinstance(theme, str):
        wrong["theme"] = [f"{file}: theme must be a name in quotes"]
        theme = None
    glyphs = next((known for known in GLYPHS if known == document.get("glyphs", "auto")), None)
    if glyphs is None:
        wrong["glyphs"] = [f"{file}: glyphs must be one of {', '.join(GLYPHS)}"]
    hints = document.get("hints", True)
    if not isinstance(hints, bool):
        wrong["hints"] = [f"{file}: hints must be true or false"]
        hints = True
    mouse = document.get("mouse", True)
    if not isinstance(mouse, bool):
        wrong["mouse"] = [f"{file}: mouse must be true or false"]
        mouse = True
    keys = _keys(document.get("keys", {}), file, wrong.setdefault("keys", []))
    view, save_folder = _screen(document.get("screen", {}), file, wrong.setdefault("screen", []))
    return replace(
        base,
        view=view,
        save_folder=save_folder,
        theme=theme,
        glyphs=glyphs or "auto",
        hints=hints,
        keys=keys,
        problems=tuple(problem for problems in wrong.values() for problem in problems),
        given=frozenset(document.keys() & NAMES),
        failed=frozenset(name for name, problems in wrong.items() if problems),
        reading=reading,
        mouse=mouse,
    )


def _screen(section: object, file: Path, problems: list[str]) -> tuple[Density | None, Path | None]:
    """Read view and folder; what is wrong is listed in `problems`."""
    if not isinstance(section, dict):
        problems.append(f'{file}: screen must be a table: [screen] and then lines such as view = "dense"')
        return None, None
    problems += [
        f"{file}: [screen] has no setting {name!r}{_suggestion(name, SCREEN_NAMES)}"
        for name in section.keys() - SCREEN_NAMES
    ]
    wanted = section.get("view")
    view = next((known for known in Density if known == wanted), None)
    if wanted is not None and view is None:
        problems.append(f"{file}: [screen] view must be one of {', '.join(Density)}")
    folder = section.get("save_folder")
    if folder is None:
        return view, None
    try:
        path = Path(folder).expanduser() if isinstance(folder, str) else None
    except RuntimeError:  # There is no such home.
        path = None
    if path is None or not path.is_absolute():
        problems.append(f'{file}: [screen] save_folder must be a path such as "~/lunscope" or "/srv/screens"')
        return view, None
    return view, path


def _keys(section: object, file: Path, problems: list[str]) -> dict[str, str]:
    if not isinstance(section, dict):
        problems.append(f'{file}: keys must be a table: [keys] and then lines such as session.pause = "p"')
        return {}
    keys: dict[str, str] = {}
    for action_id, value in _flat(section):
        wanted = [key for key in (value if isinstance(value, list) else [value]) if isinstance(key, str)]
        if action_id not in BY_ID:
            problems.append(f"{file}: [keys] knows no action {action_id!r}{_suggestion(action_id, BY_ID)}")
        elif (
            not wanted
            or not all(_is_key(key) for key in wanted)
            or (isinstance(value, list) and len(value) > len(wanted))
        ):
            problems.append(f"{file}: [keys] {action_id}: {value!r} is not a key or a list of keys")
        else:
            keys[action_id] = ",".join(wanted)
    for key, first, second in clashes(keys):
        problems.append(f"{file}: [keys] {key!r} is given to {first.id} and to {second.id}; {first.id} has it")
    return keys


def _flat(section: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Entries by dotted id: in TOML, `session.pause = "p"` is a nested table."""
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_key(key: str) -> bool:
    *modifiers, name = key.split("+") if len(key) > 1 else [key]
    known = {member.value for member in Keys} | KEY_DISPLAY_ALIASES.keys() | set(REPLACED_KEYS.values())
    named = len(name) == 1 or name in known or name.replace("_", "").isalpha()
    return named and all(modifier in {"ctrl", "shift", "alt", "super", "hyper", "meta"} for modifier in modifiers)


def _suggestion(name: str, known: Mapping[str, object] | set[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
