"""Settings of `config.toml`: theme, glyphs and keys."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from textual.keys import KEY_DISPLAY_ALIASES, REPLACED_KEYS, Keys

from collectors.sampling.settings import SECTIONS, load_reading_settings
from engine.config import config_file
from engine.text import short_text
from tui.keys import BY_ID, clashes
from tui.text.glyphs import GlyphSetting

_SECTIONS = {"theme", "glyphs", "keys", "alerts", *SECTIONS}
COLUMNS_FILE = "columns.json"
"""Name of the file of chosen columns, beside the settings."""
_GLYPHS: tuple[GlyphSetting, ...] = ("auto", "unicode", "ascii")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings in force; invalid ones are listed in `problems` and have their default."""

    theme: str | None = None
    glyphs: GlyphSetting = "auto"
    """Unicode, ASCII, or "auto" for what the terminal supports."""
    theme_folder: Path | None = None
    """Folder of the user's themes; None is the XDG folder."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Action id to keys separated by commas."""
    problems: tuple[str, ...] = ()
    columns_file: Path | None = None
    """File of the columns chosen on the screens; None keeps them until the end."""


def load_settings(path: Path | None = None) -> Settings:
    """Read the settings; an invalid entry is ignored with a notice, and never prevents the start."""
    file = path or config_file()
    columns_file = file.with_name(COLUMNS_FILE)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings(columns_file=columns_file)
    except (OSError, ValueError, RecursionError) as error:
        return Settings(problems=(f"{file}: {short_text(str(error))}",), columns_file=columns_file)
    problems = [
        f"{file}: unknown setting {name!r}{_suggestion(name, _SECTIONS)}" for name in document.keys() - _SECTIONS
    ]
    problems += load_reading_settings(file).problems
    if "alerts" in document:
        from collectors.alerts.settings import load_alert_settings  # noqa: PLC0415 (what it needs can wait until the first screen is drawn)

        problems += load_alert_settings(file).problems
    theme = document.get("theme")
    if theme is not None and not isinstance(theme, str):
        problems.append(f"{file}: theme must be a name in quotes")
        theme = None
    glyphs = next((known for known in _GLYPHS if known == document.get("glyphs", "auto")), None)
    if glyphs is None:
        problems.append(f"{file}: glyphs must be one of {', '.join(_GLYPHS)}")
    keys = _keys(document.get("keys", {}), file, problems)
    return Settings(theme, glyphs or "auto", None, keys, tuple(problems), columns_file)


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
