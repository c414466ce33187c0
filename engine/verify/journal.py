"""Journals of verified loads: which write each grain of a target must hold, in a file that outlives the run.

The data on a target shows by itself whether a block is whole and at its own offset; that a whole block is stale shows
only against a journal.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from engine import _native
from engine.errors import LunscopeError
from engine.guard import OpenTarget, TargetKind
from engine.text import safe_text

_NEW = ".new"
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


def journal_folder() -> Path:
    """`$XDG_STATE_HOME/lunscope/verify`, by default under `~/.local/state` (XDG Base Directory Specification).

    Raises:
        OSError: the user has no home.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    try:
        state = Path(base) if base.startswith("/") else Path.home() / ".local/state"
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "~") from None
    return state / "lunscope" / "verify"


def journal_path(target: str) -> Path:
    """Name the journal of a device or file, the same for every link to it.

    Raises:
        OSError: as journal_folder.
    """
    real = os.path.realpath(target)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return journal_folder() / f"{digest}.journal"


class _NewJournal(Struct, frozen=True):
    path: Path
    fd: int

    @property
    def draft(self) -> Path:
        return self.path.with_suffix(_NEW)


class Journals:
    """Files for the journals of a run; they replace earlier ones when it starts, and are removed if it never does."""

    def __init__(self, targets: Sequence[OpenTarget]) -> None:
        """Make a file for every target that stays; where that fails the journal is in memory, with a notice."""
        self.notices: tuple[str, ...] = ()
        self._kept = False
        self._journals = [self._make(target) for target in targets]

    def _make(self, target: OpenTarget) -> _NewJournal | None:
        if target.kind is TargetKind.SCRATCH or target.path is None:
            return None
        try:
            path = journal_path(target.path)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.with_suffix(_NEW).unlink(missing_ok=True)
            fd = os.open(path.with_suffix(_NEW), _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            # Held as long as the load runs: a check of its target meanwhile would take new data for damage.
            fcntl.flock(fd, fcntl.LOCK_EX)
            return _NewJournal(path, fd)
        except OSError as error:
            self.notices = (
                f"no journal ({safe_text(str(error.filename))}: {error.strerror}): lunscope verify cannot find stale "
                "blocks after this run: set XDG_STATE_HOME to a folder you may write to",
            )
            return None

    @property
    def fds(self) -> list[int | None]:
        """Descriptors in the order of the targets; None keeps the journal in memory."""
        return [None if journal is None else journal.fd for journal in self._journals]

    def keep(self) -> None:
        """Replace those of earlier runs, right before the first write."""
        if self._kept:
            return
        for journal in self._journals:
            if journal is not None:
                journal.draft.replace(journal.path)
        self._kept = True

    def close(self) -> None:
        """Close the files; may be called twice."""
        journals, self._journals = self._journals, []
        for journal in journals:
            if journal is not None:
                os.close(journal.fd)
                if not self._kept:
                    journal.draft.unlink(missing_ok=True)


def forget_journals(targets: Sequence[OpenTarget]) -> None:
    """Remove the journals of targets that a load is to write which is not verified: they will not be true any more."""
    for target in targets:
        if target.kind is not TargetKind.SCRATCH and target.path is not None:
            with suppress(OSError):
                journal_path(target.path).unlink(missing_ok=True)


def open_journal(target: str) -> int | None:
    """Open the journal of the last verified run on a device or file; None if there is none that can be read.

    Raises:
        LunscopeError: that run has not ended.
    """
    try:
        fd = os.open(journal_path(target), _FLAGS)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if _native.journal_facts(fd) is not None:
            return fd
    except BlockingIOError:
        os.close(fd)
        raise LunscopeError(f"{safe_text(target)}: a load with --verify runs on it: wait until it ends") from None
    except OSError:
        pass
    os.close(fd)
    return None
