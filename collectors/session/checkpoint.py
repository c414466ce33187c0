"""Moving committed ticks from the write-ahead log into the session file, away from whoever waits for a commit."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

from collectors.session.database import connect


class Checkpointer:
    """A thread with a connection of its own, because a checkpoint waits for the disk and a tick must not."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path, "mode=rw")
        self._wanted = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="session checkpoint", daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Ask for a checkpoint; returns at once."""
        self._wanted.set()

    def close(self) -> None:
        """Finish the checkpoint in hand and end the thread."""
        self._stop = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(self._connection) as connection:
            while True:
                self._wanted.wait()
                self._wanted.clear()
                if self._stop:
                    return
                # A full or broken disk shows at the next commit too; until then the log holds every tick.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
