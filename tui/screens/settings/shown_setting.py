"""A setting as the settings dialog shows it, and the lines that keep it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from engine.errors import LunscopeError
from engine.text import short_text

MOST_FILES = 100


class Origin(StrEnum):
    """Where the value of a setting comes from."""

    DEFAULT = "default"
    FILE = "file"
    FAULTY = "file, in part"
    START = "at the start"
    OPTION = "option"
    SESSION = "this session"
    HOST = "this host"


class ShownSetting(Struct, frozen=True):
    """One line of the dialog."""

    name: str
    """Name as in the file, or as the option is called."""
    value: str
    origin: Origin
    help: str
    allowed: str
    """What it may be, or where else it is set."""
    choices: tuple[str, ...] = ()
    """What can be chosen now; none if it cannot be changed while the screens are shown."""
    apply: Callable[[str], object] = lambda _: None
    """Take a choice for this session."""
    toml: str = ""
    """The value as the file has it; empty for what is not in the file."""


def lines_to_keep(settings: Iterable[ShownSetting]) -> str:
    """Write what was changed in this session as the settings file has it; empty if nothing was."""
    changed = [each for each in settings if each.origin is Origin.SESSION and each.toml]
    top = [f"{each.name} = {each.toml}" for each in changed if "." not in each.name]
    sections: dict[str, list[str]] = {}
    for each in changed:
        section, dot, key = each.name.rpartition(".")
        if dot:
            sections.setdefault(section, []).append(f"{key} = {each.toml}")
    blocks = ["\n".join(top)] if top else []
    blocks += ["\n".join((f"[{section}]", *lines)) for section, lines in sections.items()]
    text = "\n\n".join(blocks)
    tomllib.loads(text)
    return text


def write_beside(file: Path, lines: str) -> Path:
    """Write the lines to the settings file if there is none, else to a new file beside it; returns its path.

    Raises:
        LunscopeError: no file can be made.
    """
    names = (file.name, *(f"{file.name}.new{number or ''}" for number in range(MOST_FILES)))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for name in names:
            path = file.with_name(name)
            try:
                with path.open("x", encoding="utf-8") as new:
                    new.write(f"# Chosen on lunscope's screens.\n{lines}\n")
            except FileExistsError:
                continue
            return path
    except OSError as error:
        raise LunscopeError(
            f"{file.parent}: {short_text(error.strerror or str(error))}: settings not written"
        ) from None
    raise LunscopeError(f"{file.parent}: {MOST_FILES} files {file.name}.new: remove some of them")
