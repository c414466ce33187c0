"""The folder with the records of changes, and the locks by which two lunscopes do not change one device.

A record is a file of its own, replaced as a whole. While a change is made or held, its lock file is locked by the
lunscope and by its watchdog (flock(2)): a record that is held but not locked was left by a crash of both.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import LunscopeError, words_of
from engine.tune.audit import append_audit
from engine.tune.record import OPEN, ChangeRecord, State, from_json, to_json

STATE_ENV = "LUNSCOPE_STATE_DIR"
FOLDER_OF_ROOT = Path("/run/lunscope-tune")
MOST_ENDED = 200
"""Ended changes that are kept for `tune undo --list`."""

_NAME = re.compile(r"([0-9]{6})\.json")
_MOST_BYTES = 256 << 20


def state_folder() -> Path:
    """Return `$LUNSCOPE_STATE_DIR/tune`, for root /run/lunscope-tune, else `$XDG_RUNTIME_DIR/lunscope/tune`.

    It is gone after a reboot, and so are the values. It is not /run/lunscope, which systemd removes with the service
    of the probe.

    Raises:
        LunscopeError: there is none.
    """
    if chosen := os.environ.get(STATE_ENV):
        return Path(chosen) / "tune"
    if os.geteuid() == 0:
        return FOLDER_OF_ROOT
    if (base := os.environ.get("XDG_RUNTIME_DIR", "")).startswith("/"):
        return Path(base) / "lunscope" / "tune"
    raise LunscopeError(f"no folder for records of changes: XDG_RUNTIME_DIR is not set; set it, or {STATE_ENV}")


class Journal:
    """The records of this host."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (state_folder() if folder is None else folder).absolute()

    def open(self) -> None:
        """Make the folder if it is not there.

        Raises:
            LunscopeError: that fails, or it belongs to somebody else.
        """
        try:
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            owner = self.folder.lstat()
        except OSError as error:
            raise LunscopeError(f"{self.folder}: {words_of(error)}; set {STATE_ENV}") from None
        if owner.st_uid != os.geteuid() or owner.st_mode & 0o022 or self.folder.is_symlink():
            raise LunscopeError(f"{self.folder}: others can write it; remove it, or set {STATE_ENV}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock under which numbers are given and targets are claimed."""
        self.open()
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def records(self) -> list[ChangeRecord]:
        """Read all records, oldest first; none where there is no folder. Damaged ones are left out."""
        found = []
        for number in self._numbers():
            with suppress(LunscopeError):
                found.append(self.read(number))
        return found

    def read(self, number: int) -> ChangeRecord:
        """Read one record.

        Raises:
            LunscopeError: there is none, or it is damaged.
        """
        path = self.path(number)
        try:
            with path.open("rb") as file:
                text = file.read(_MOST_BYTES).decode(errors="replace")
        except OSError as error:
            raise LunscopeError(f"{path}: {words_of(error)}") from None
        return from_json(text, str(path))

    def write(self, record: ChangeRecord) -> None:
        """Replace a record as a whole, and add a line to the audit file unless it only begins.

        Raises:
            LunscopeError: the folder takes no file.
        """
        self._replace(record)
        if record.state is not State.CHANGING:
            append_audit(self.folder, record)

    def _replace(self, record: ChangeRecord) -> None:
        path, new = self.path(record.number), self.folder / f".{record.number:06}.{os.getpid()}"
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(to_json(record))
            new.replace(path)
        except OSError as error:
            raise LunscopeError(f"{path}: {words_of(error)}; nothing is changed without a record") from None

    def next_number(self) -> int:
        """Return a number that no record has; under the lock."""
        return max(self._numbers(), default=0) + 1

    def path(self, number: int) -> Path:
        """Name the file of a record."""
        return self.folder / f"{number:06}.json"

    def hold(self, number: int) -> int:
        """Lock a change for as long as the descriptor, or a copy of it, is open."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._lock_path(number), flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    def is_held(self, number: int) -> bool:
        """Whether a lunscope or its watchdog still holds a change."""
        try:
            descriptor = os.open(self._lock_path(number), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def left_behind(self) -> list[ChangeRecord]:
        """List changes that are in force although whoever was to restore them is gone."""
        waiting = (record for record in self.records() if record.state in {State.CHANGING, State.HELD})
        return [record for record in waiting if not self.is_held(record.number)]

    def remove_old(self) -> None:
        """Remove ended records but the latest, and locks nobody needs; under the lock."""
        ended = [record.number for record in self.records() if record.state not in OPEN]
        for number in ended[:-MOST_ENDED]:
            self.path(number).unlink(missing_ok=True)
        for number in ended:
            if not self.is_held(number):
                self._lock_path(number).unlink(missing_ok=True)

    def _lock_path(self, number: int) -> Path:
        return self.folder / f"{number:06}.lock"

    def _numbers(self) -> list[int]:
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 - names only
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))
