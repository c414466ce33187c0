"""What the operator chose on the screens, kept from one process to the next in small files that lunscope writes.

Columns, tables and the view are beside the settings, which only the operator writes; what was used or dismissed is in
the state folder.
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct, ValidationError, convert, field, to_builtins

from engine.background_call import BackgroundCall
from engine.config import state_folder
from engine.newest_work import NewestWork
from engine.small_file import read_small
from engine.strict_json import load_json, load_json_object
from engine.text import short_text

MOST_PINNED = 200
"""Pinned rows that are kept for a table."""
MOST_TARGETS = 20
_LAST_WRITE_S = 1.0
HINTS_FILE = "hints-dismissed"
"""Name of the file in the state folder that says that hints are not wanted again."""

_Chosen = TypeVar("_Chosen")


class PinnedRow(Struct, frozen=True):
    """A row by what identifies it after a restart too, when keys are others."""

    key: str = ""
    name: str = ""
    identity: str = field(name="id", default="")
    """Persistent id of its device, empty if it has none."""


class TableChoices(Struct, frozen=True, omit_defaults=True):
    """What was chosen for one table; the defaults stand for those of the screen."""

    sort: str = ""
    """Field id; empty for the order of a new table."""
    reverse: bool = False
    units: str = ""
    """Name of a unit style in lower case; empty for the first one."""
    idle_hidden: bool = False
    pinned: tuple[PinnedRow, ...] = ()


class Kept(Generic[_Chosen]):
    """Owns choices of one type by name; without a file they are kept until the end of the process.

    A file that cannot be read is never overwritten; entries of a wrong form are left out.
    """

    def __init__(self, file: Path | None, what: str, kind: type[_Chosen]) -> None:
        """Read the file, if there is one, and name what is in it, for messages."""
        self._file, self._what = file, what
        self.problem = ""
        """Why the file was not read, in one line; empty if it was."""
        self._chosen: dict[str, _Chosen] = {}
        for name, entry in self._read().items():
            with suppress(ValidationError):
                self._chosen[name] = convert(entry, kind)
        self._written = self._document()

    def of(self, name: str) -> _Chosen | None:
        """Return what was chosen; None if nothing ever was."""
        return self._chosen.get(name)

    def put(self, name: str, chosen: _Chosen) -> None:
        """Take a choice, an empty one to forget it; `write` writes it."""
        self._chosen[name] = chosen

    def write(self) -> str:
        """Write what has changed since; returns why it was not written, else nothing."""
        document = self._document()
        if self._file is None or document == self._written:
            return ""
        self._written = document
        if self.problem:
            return f"{self._what} kept until you leave: {self.problem}"
        try:
            _replace_file(self._file, json.dumps(document, indent=1))
        except OSError as error:
            return f"{self._what} kept until you leave: {self._file}: {error.strerror or error}"
        return ""

    def _read(self) -> dict[str, object]:
        if self._file is None:
            return {}
        try:
            return load_json_object(read_small(self._file))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self.problem = f"{self._file}: {short_text(str(error))}: delete it to choose {self._what} anew"
            return {}

    def _document(self) -> dict[str, object]:
        entries = {name: to_builtins(chosen) for name, chosen in tuple(self._chosen.items())}
        return {name: entry for name, entry in entries.items() if entry}


class Hints:
    """The hints of a first start are wanted until they are dismissed once, on this host or by the setting."""

    def __init__(self, dismissed: Path | None = None) -> None:
        """Name the file that is there once hints were dismissed; None for no hints at all."""
        self._file = dismissed
        self.wanted = dismissed is not None and not dismissed.exists()

    def dismiss(self) -> None:
        """Show them no more; where the file cannot be made, only until the end of the process."""
        self.wanted = False

    def write(self) -> None:
        """Make the file, once they are dismissed."""
        if self._file is not None and not self.wanted:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._file.touch()


class Choices:
    """All that was chosen: columns and tables by `screen.grid`, the view, and whether hints are wanted."""

    def __init__(self, folder: Path | None = None, hints: Hints | None = None) -> None:
        """Read the files of a folder; without one choices are kept until the end of the process."""
        columns, tables, view = (folder and folder / f"{name}.json" for name in ("columns", "tables", "view"))
        self.columns = Kept(columns, "columns", tuple[str, ...])
        self.tables = Kept(tables, "order, units and pinned rows", TableChoices)
        self.view = Kept(view, "view", Density)
        self.hints = hints or Hints()
        self._writing = threading.Lock()
        self._work = NewestWork("lunscope-kept")

    def write_soon(self, told: Callable[[str], object]) -> None:
        """Write what has changed in a thread of its own, as a home folder may hang; `told` takes each problem there."""
        self._work.request(functools.partial(self._write, told))

    def close(self) -> None:
        """Write what is left, within the time that an end of the screens may take for it."""
        BackgroundCall(lambda: self._write(lambda _problem: None), "lunscope-kept").done.wait(_LAST_WRITE_S)

    def _write(self, told: Callable[[str], object]) -> None:
        with self._writing:
            self.hints.write()
            for problem in (self.columns.write(), self.tables.write(), self.view.write()):
                if problem:
                    told(problem)


class RecentTargets:
    """The last targets that a load was armed on, the newest first; without a file, of this process only.

    A file that cannot be read or written is no reason to refuse a load: the list is a convenience.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self.names: tuple[str, ...] = ()
        """Targets as the form takes them."""
        if file is not None:
            with suppress(OSError, ValueError):
                names = load_json(read_small(file))
                self.names = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()

    def add(self, names: Iterable[str]) -> None:
        """Put these first."""
        before, self.names = self.names, tuple(dict.fromkeys((*names, *self.names)))[:MOST_TARGETS]
        if self._file is not None and self.names != before:
            with suppress(OSError, UnicodeError):
                _replace_file(self._file, json.dumps(self.names))


def recent_targets() -> RecentTargets:
    """Those of this user, in `targets.json` of the state folder."""
    return RecentTargets(state_folder() / "targets.json")


def _replace_file(file: Path, text: str) -> None:
    """Write a line of text in place of what the file holds; its folder is made.

    Two processes at once leave what one of them wrote.

    Raises:
        OSError: it cannot be written; what it held is still there.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            new.write(f"{text}\n")
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


class Density(StrEnum):
    """How much the screens show."""

    NORMAL = "normal"
    DENSE = "dense"
    """More rows: no blank lines, no key line, tables before charts."""
    LITE = "lite"
    """No charts, for slow links."""

    @property
    def following(self) -> Density:
        """The next one, after the last the first."""
        every = tuple(Density)
        return every[(every.index(self) + 1) % len(every)]


class AxisChoice(StrEnum):
    """How the axis of values runs."""

    AUTO = "automatic"
    """Logarithmic where the largest value would flatten the rest."""
    LOG = "logarithmic"
    LINEAR = "linear"
