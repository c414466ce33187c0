"""Devices and files that were targets before, kept from one process to the next."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from engine.small_file import read_small
from engine.strict_json import load_json
from tui.replaced_file import replace_file

MOST_KEPT = 20
_LARGEST_BYTES = 1 << 20


def recent_file() -> Path | None:
    """`$XDG_STATE_HOME/lunscope/targets.json`, by default under `~/.local/state` (XDG Base Directory Specification).

    None if the user has no home.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    try:
        folder = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return folder / "lunscope" / "targets.json"


class RecentTargets:
    """The last targets that a load was armed on, the newest first; without a file, of this process only.

    A file that cannot be read or written is no reason to refuse a load: the list is a convenience.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._names = () if file is None else _read(file)

    @property
    def names(self) -> tuple[str, ...]:
        """As the form takes them."""
        return self._names

    def add(self, names: Iterable[str]) -> None:
        """Put these first."""
        before, self._names = self._names, tuple(dict.fromkeys((*names, *self._names)))[:MOST_KEPT]
        if self._file is not None and self._names != before:
            with suppress(OSError, UnicodeError):
                replace_file(self._file, json.dumps(self._names))


def _read(file: Path) -> tuple[str, ...]:
    try:
        names = load_json(read_small(file, _LARGEST_BYTES))
    except (OSError, ValueError):
        return ()
    return tuple(name for name in names if isinstance(name, str))[:MOST_KEPT] if isinstance(names, list) else ()
