"""Whether SQLite finds the pages of a session file sound, as far as that can be told without making anybody wait.

SQLite advises to check files from others before they are used (sqlite.org/security.html). What takes too long here is
checked as it is read: cells by SQLite (cell_size_check), rows by their checksums.
"""

from __future__ import annotations

import sqlite3
import time

LARGEST_BYTES = 32 << 20
"""SQLite checks more than 1 GB/s of what is in memory; a disk that has to be read first is slower."""
_LONGEST_S = 0.1
_INSTRUCTIONS = 1000


def structure_damage(connection: sqlite3.Connection, size_bytes: int) -> str:
    """Say what a quick check finds first; empty if nothing, or if it would take too long."""
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
