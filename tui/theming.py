"""Colour themes: the bundled ones, the user's from the XDG config folder, and their validation."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from textual.app import App, ReturnType
from textual.color import Color, ColorParseError
from textual.theme import Theme

import themes
from engine.config import config_folder
from engine.errors import LunscopeError
from engine.small_file import FileKindError, read_small
from engine.toml_text import parse_toml_text

# Plain files wherever the native core can be loaded; importlib.resources would import zipfile before the first paint.
_FOLDER = Path(themes.__path__[0])

BASE_CSS = _FOLDER / "base.tcss"
"""Style sheet of the widgets and of the layout classes; every app that shows them lists it in CSS_PATH."""

DEFAULT_THEME = "lunscope-dark"
ANSI_THEME = "lunscope-ansi"
BUNDLED = ("dark", "light", "colourblind", "ansi", "contrast")
"""Files of the own themes, whose names have `lunscope-` in front."""
_MAX_BYTES = 65_536
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_TEXT_STYLE = re.compile(r"(none|((not )?(bold|dim|italic|underline|reverse|strike|b|i|u)\s*)+)")
_EXTRA_VARIABLES = ("ansi-background", "ansi-foreground", "scrollbar-corner-color")
"""Variables of Textual's that its colour system does not list."""
_FIELDS = {field.name: field for field in dataclasses.fields(Theme) if field.name not in ("variables", "text_alpha")}


class ThemeError(LunscopeError):
    """An invalid theme file; the text names file, key and expected value."""


class LoadedThemes(Struct, frozen=True):
    """Themes in the order of the list they are offered in, and one line for each file that was skipped."""

    themes: tuple[Theme, ...]
    notices: tuple[str, ...] = ()


@functools.cache
def bundled_themes() -> tuple[Theme, ...]:
    """Themes that come with lunscope, default first."""
    return tuple(parse_theme(_read(_FOLDER / f"{name}.toml"), f"{name}.toml") for name in BUNDLED)


def user_themes(folder: Path) -> LoadedThemes:
    """Load the valid themes among the TOML files of a folder; invalid ones are skipped with a notice."""
    sound: list[Theme] = []
    notices: list[str] = []
    try:
        paths = sorted(path for path in folder.glob("*.toml") if path.is_file())
    except OSError as failure:
        return LoadedThemes((), (f"themes in {folder} skipped: {failure.strerror}",))
    for path in paths:
        try:
            theme = parse_theme(_read(path), str(path))
            sound.append(dataclasses.replace(theme, variables=variable_defaults(theme) | theme.variables))
        except ThemeError as failure:
            notices.append(str(failure))
    return LoadedThemes(tuple(sound), tuple(notices))


def register_themes(app: App[ReturnType], folder: Path | None = None) -> tuple[str, ...]:
    """Register the bundled and the user's themes in an app; returns notices about invalid ones."""
    own = user_themes(config_folder() / "themes" if folder is None else folder)
    for theme in (*bundled_themes(), *own.themes):
        app.register_theme(theme)
    return own.notices


def variable_defaults(theme: Theme) -> dict[str, str]:
    """Our variables for a theme without them: those of the most similar bundled theme.

    An app returns this from `get_theme_variable_defaults`, so that Textual's own themes work too.
    """
    wanted = ANSI_THEME if theme.ansi else DEFAULT_THEME if theme.dark else "lunscope-light"
    return next(dict(bundled.variables) for bundled in bundled_themes() if bundled.name == wanted)


def ansi_color(environ: Mapping[str, str] = os.environ) -> bool | None:
    """Choose what an app passes to Textual as `ansi_color`: true under NO_COLOR, else what the theme says.

    Only then does Textual drop colours. Otherwise it turns them to greys, and the terminal's default colours, whose
    shade it does not know, to black on black.
    """
    return True if "NO_COLOR" in environ else None


def default_theme(color_system: str | None) -> str:
    """Name of the theme for a terminal; `color_system` is rich's: "truecolor", "256", "standard" or None."""
    return DEFAULT_THEME if color_system in ("truecolor", "256") else ANSI_THEME


def parse_theme(text: str, source: str) -> Theme:
    """Read a theme from TOML; `source` names the file in errors.

    Raises:
        ThemeError: not TOML, an unknown key, a value of the wrong type or not a colour.
    """
    try:
        document = parse_toml_text(text)
    except ValueError as failure:
        raise ThemeError(f"theme {source} skipped: {failure}") from None
    variables = document.pop("variables", {})
    if not isinstance(variables, dict):
        raise ThemeError(f"theme {source} skipped: variables must be a table")
    _check_fields(document, source)
    theme = Theme(**document)
    _check_variables(theme, variables, source)
    return dataclasses.replace(theme, variables=variables)


def _read(path: Path) -> str:
    try:
        return read_small(path, _MAX_BYTES).decode()
    except OSError as failure:
        raise ThemeError(f"theme {path} skipped: {failure.strerror}") from None
    except UnicodeDecodeError:
        raise ThemeError(f"theme {path} skipped: not UTF-8") from None
    except FileKindError as failure:
        raise ThemeError(f"theme {path} skipped: {failure}") from None


def _check_fields(document: Mapping[str, object], source: str) -> None:
    """Check the top level against the fields of a Textual theme."""
    for key, value in document.items():
        if key not in _FIELDS:
            raise ThemeError(f"theme {source} skipped: unknown key {key!r}; known are {', '.join(_FIELDS)}, variables")
        if key in ("dark", "ansi"):
            sound, expected = isinstance(value, bool), "true or false"
        elif key == "luminosity_spread":
            sound, expected = isinstance(value, float) and 0 <= value <= 1, "a number from 0.0 to 1.0"
        elif key == "name":
            sound, expected = isinstance(value, str) and bool(_NAME.fullmatch(value)), "lower case letters, digits, -"
        else:
            sound, expected = _is_color(value), 'a colour such as "#62b5ff"'
        if not sound:
            raise ThemeError(f"theme {source} skipped: {key} = {value!r} must be {expected}")
    missing = [key for key in ("name", "primary") if key not in document]
    if missing:
        raise ThemeError(f"theme {source} skipped: {missing[0]} is missing")


def _check_variables(theme: Theme, variables: Mapping[str, object], source: str) -> None:
    """Check the variables against Textual's and ours: one invalid value would break every style sheet."""
    known = theme.to_color_system().generate()
    for name, value in variables.items():
        ours = name in _OWN_VARIABLES or name in _EXTRA_VARIABLES
        if not ours and name not in known:
            raise ThemeError(f"theme {source} skipped: unknown variable {name!r}; ours are {', '.join(_OWN_VARIABLES)}")
        if ours or not name.endswith(("text-style", "link-style", "link-style-hover")):
            sound, expected = _is_color(value), 'a colour such as "#62b5ff"'
        else:
            sound, expected = isinstance(value, str) and bool(_TEXT_STYLE.fullmatch(value)), "a text style such as bold"
        if not sound:
            raise ThemeError(f"theme {source} skipped: variable {name} = {value!r} must be {expected}")


def _is_color(value: object) -> bool:
    if not isinstance(value, str) or value != value.strip() or "\n" in value:
        return False
    try:
        Color.parse(value)
    except ColorParseError:
        return False
    return True


_OWN_VARIABLES = {
    "read": "curves and figures of reads",
    "write": "curves and figures of writes",
    "total": "curves of reads and writes together",
    "queue": "queue time",
    "service": "service time",
    "peak": "peak latency and high percentiles",
    "busy": "busy time",
    "hot": "figures above the hot threshold",
    "warm": "figures above the warm threshold",
    "event": "marks of events",
    "exact": "figures measured exactly",
    "sampled": "figures from sampling",
    "kernel": "figures from kernel counters alone",
    "cursor": "background of the row under the cursor",
    "cursor-blurred": "the same where the widget has no focus",
    "axis": "axes and their labels",
    "grid-line": "lines behind the curves",
    "muted": "secondary text",
    "match": "the filter",
    **{f"heat-{level}": f"cells of a heat map, {level} of 8 from few to many I/Os" for level in range(1, 9)},
}
"""Our theme variables in addition to Textual's."""
