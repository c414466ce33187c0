"""Changes of tunables by any lunscope of this host, as events."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from collectors.sampling.reading import Reading
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.text import safe_text, short_text
from engine.tune.audit import AUDIT_FILE, MOST_BYTES, AuditEntry, parse_audit
from engine.tune.journal import FOLDER_OF_ROOT, STATE_ENV, state_folder


class TuneChangesCollector:
    """Reads what is appended to the audit files of root and of this user; earlier changes are no events."""

    def __init__(self, sysfs: str) -> None:
        self._root = os.path.realpath(sysfs)
        self._files = [_Appended(folder / AUDIT_FILE) for folder in _folders()]

    def read(self) -> Reading:
        """Return an event for each change since the previous reading."""
        entries = [entry for file in self._files for entry in file.read() if entry.root == self._root]
        return Reading(events=tuple(_event(entry) for entry in entries))

    def close(self) -> None:
        """Hold nothing open."""


def _folders() -> list[Path]:
    folders = [] if os.environ.get(STATE_ENV) else [FOLDER_OF_ROOT]
    with suppress(LunscopeError):
        folders.append(state_folder())
    return list(dict.fromkeys(folders))


def _event(entry: AuditEntry) -> Event:
    age_ns = max(time.time_ns() - entry.time_ns, 0)
    data: dict[str, str | int | float | None] = {
        "change": entry.number,
        "state": entry.state,
        "settings": entry.settings,
        "uid": entry.who.uid,
        "user": entry.who.user,
        "login": entry.who.login,
        "pid": entry.who.pid,
    }
    text = safe_text(short_text(entry.text))
    return Event(EventKind.TUNE, text, entry.time_ns, time.monotonic_ns() - age_ns, data)


class _Appended:
    """Lines that are appended to a file that may come, grow and be replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode, self._offset = self._end()

    def read(self) -> Iterator[AuditEntry]:
        inode, size = self._end()
        if inode != self._inode:
            self._inode, self._offset = inode, 0
        if size <= self._offset:
            return
        for line in self._lines():
            entry = parse_audit(line)
            if entry is not None:
                yield entry

    def _end(self) -> tuple[int, int]:
        try:
            status = os.stat(self._path)  # noqa: PTH116 - at every tick
        except OSError:
            return 0, 0
        return status.st_ino, status.st_size

    def _lines(self) -> list[bytes]:
        """Read complete lines only."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read(2 * MOST_BYTES)
        except OSError:
            return []
        complete = text.rpartition(b"\n")[0]
        self._offset += len(complete) + 1 if complete else 0
        return complete.split(b"\n")
