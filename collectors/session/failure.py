"""Error messages for a session file that can no longer be written."""

from __future__ import annotations

import sqlite3


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
