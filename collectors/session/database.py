"""Opening of session files with SQLite: hardened against untrusted files, with actionable errors."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from collectors.session.format import APPLICATION_ID, MAX_BLOB_BYTES, TABLES, VERSION, DamageError
from engine.errors import LunscopeError, UsageError, unusable


def result_code(error: Exception) -> int:
    """Primary result code of SQLite; 0 for an error that Python raised by itself, as for text that is not UTF-8."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def failure_reason(error: Exception) -> str:
    """Return reason and fix, for a message that begins with the path."""
    if isinstance(error, sqlite3.Error):
        match result_code(error):
            case sqlite3.SQLITE_FULL:
                return "the disk is full; what was recorded so far can be replayed; free space or record elsewhere"
            case sqlite3.SQLITE_READONLY:
                return "became read-only or was moved; what was recorded so far can be replayed; record elsewhere"
            case _:
                return f"cannot be written ({error}); what was recorded so far can be replayed; record elsewhere"
    if isinstance(error, FileNotFoundError):
        return "was removed or replaced while recording; record to a file that stays"
    return f"cannot be recorded: {error}"


LARGEST_BYTES = 32 << 20
"""Largest file to check: SQLite checks more than 1 GB/s of cached data; reading a disk first is slower."""
_LONGEST_S = 0.1
_INSTRUCTIONS = 1000


def structure_damage(connection: sqlite3.Connection, size_bytes: int) -> str:
    """Return the first finding of a quick check; empty if there is none, or if it would take too long."""
    if size_bytes > LARGEST_BYTES:
        return ""
    end_s = time.monotonic() + _LONGEST_S
    connection.set_progress_handler(lambda: int(time.monotonic() >= end_s), _INSTRUCTIONS)
    try:
        [(found,), *_] = connection.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.OperationalError:  # interrupted, or held by a recorder
        return ""
    except (sqlite3.DatabaseError, ValueError) as error:
        found = str(error)
    finally:
        connection.set_progress_handler(None, 0)
    return "" if found == "ok" else " ".join(str(found).replace("*** in database main ***", "").split())


_BUSY_TIMEOUT_S = 2.0
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_BLOB_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 10_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 2,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 20,
    sqlite3.SQLITE_LIMIT_COLUMN: 16,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 4,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 8,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_HELD = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_A_SESSION = "not a lunscope session"


WAL_SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of the files SQLite keeps next to a database."""


def wal_files(path: Path) -> list[Path]:
    """Existing log files of a database."""
    beside = (path.with_name(path.name + suffix) for suffix in WAL_SUFFIXES)
    return [file for file in beside if os.path.lexists(file)]


def connect(path: Path, options: str) -> sqlite3.Connection:
    """Return a connection in autocommit mode, to be used by one thread at a time."""
    uri = f"file:{quote(os.fsencode(path.absolute()))}?{options}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_TIMEOUT_S)


class Database:
    """A session file open for reading."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            LunscopeError: the file does not exist, cannot be opened, or is no session this version can read.
        """
        self.path = path
        _refuse_other_files(path)
        self._connection, self.notice = _open(path)
        """Missing parts of the file, in one line; empty if none."""

    @cached_property
    def damage(self) -> str:
        """First finding of a check of a small file; empty if none, or if the file is too large to check.

        Checked when first asked for, and not by opening: the check reads the whole file.
        """
        return structure_damage(self._connection, self.size_bytes())

    def select(self, query: str, *values: int) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            DamageError: SQLite finds their pages damaged.
            LunscopeError: another program holds the file.
        """
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.ProgrammingError:
            raise
        except (sqlite3.DatabaseError, OverflowError) as error:
            if result_code(error) in _HELD:
                raise LunscopeError(f"{self.path}: held by another program; try again") from error
            raise DamageError(str(error)) from None

    def size_bytes(self) -> int:
        """Bytes of the file and its log."""
        return sum(file.stat().st_size for file in (self.path, *wal_files(self.path)) if file.exists())

    def close(self) -> None:
        """Release the file; may be called twice."""
        self._connection.close()


def _open(path: Path) -> tuple[sqlite3.Connection, str]:
    for options, notice in _open_options(path):
        connection = connect(path, options)
        try:
            _harden(connection)
            _check_identity(path, connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if not _worth_another_try(error):
                raise UsageError(f"{path}: {_NOT_A_SESSION} ({error}); name a file made with --record") from error
        except LunscopeError:
            connection.close()
            raise
        else:
            return connection, notice
    raise UsageError(f"{path}: cannot be opened; check that you may read the file and its -wal")


def _refuse_other_files(path: Path) -> None:
    try:
        status = path.stat()
    except OSError as error:
        raise unusable(f"{path}: {error.strerror}; name a file made with --record", error) from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: not a regular file; name a file made with --record")
    if status.st_size == 0 and not _log_holds_data(path):
        raise UsageError(f"{path}: empty, {_NOT_A_SESSION}; name a file made with --record")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path}: permission denied; session files are readable by their owner")


def _log_holds_data(path: Path) -> bool:
    """Whether a write-ahead log with content is beside the file: it is being written, or was not closed."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except OSError:
        return False


def _open_options(path: Path) -> list[tuple[str, str]]:
    """Open with the WAL if present, else immutable, which creates no -wal or -shm files."""
    if _log_holds_data(path):
        lost = "its -wal cannot be used here: shown up to the last checkpoint"
        return [("mode=ro", ""), ("mode=rw", ""), ("mode=ro&immutable=1", lost)]
    return [("mode=ro&immutable=1", "not closed, and without its -wal: shown up to the last checkpoint")]


def _worth_another_try(error: sqlite3.DatabaseError) -> bool:
    # A log without its index, or a folder where none can be created, does not mean that the file is no session.
    return result_code(error) in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR}


def _harden(connection: sqlite3.Connection) -> None:
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    # Only this makes SQLite read a file that is shorter than its header states; it must come before the first read of
    # the file, and nothing is ever written through it.
    pragmas = ("writable_schema=ON", "query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0")
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")


def _check_identity(path: Path, connection: sqlite3.Connection) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id != APPLICATION_ID:
        raise UsageError(f"{path}: {_NOT_A_SESSION}; name a file made with --record")
    if version > VERSION:
        raise UsageError(f"{path}: session format {version}, this lunscope reads up to {VERSION}; update lunscope")
    found = {tuple(row) for row in connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT 10")}
    if found != {("table", name, sql) for name, sql in TABLES.items()}:
        raise UsageError(f"{path}: {_NOT_A_SESSION} (other tables inside); name a file made with --record")
