"""Writer of a session file, one commit per tick."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from collectors.model import Sample
from collectors.session import objects
from collectors.session.create_file import create_private, remove_existing
from collectors.session.database import connect, failure_reason, result_code, wal_files
from collectors.session.encoder import EncodedTick, Encoder, ObjectWriter
from collectors.session.format import APPLICATION_ID, MAX_PARTS, TABLES, VERSION, ObjectKind, cut, seal
from engine.errors import LunscopeError
from engine.events import Event
from engine.version import version


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
        """Finish the current checkpoint and end the thread."""
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
                # A full or failing disk also fails the next commit; until then the log holds every tick.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


_CHECKPOINT_NS = 60 * 10**9


class SessionWriter:
    """Writes one recording; safe to be called from several threads.

    After `write` returns, the tick survives a crash of this process; a power failure loses ticks since the last
    checkpoint, about a minute, and so does copying the file without its `-wal`. `close` leaves one single file.

    Raises:
        UsageError: the file exists and may not be overwritten.
        RefusedError: the file to overwrite is no session, or the path leads through another user's link.
        LunscopeError: the file cannot be created.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False) -> None:
        self.path = Path(path)
        if overwrite and os.path.lexists(self.path):
            remove_existing(self.path)
        self._recording_lock = create_private(self.path)
        self._lock = threading.Lock()
        self._failure = ""
        self._clock_ns: int | None = None
        self._ticks = 0
        self._checkpoint_ns = 0
        self.interval_s: float | None = None
        """Nominal time between samples, stored if set before the first; else readers measure it."""
        self._objects = ObjectWriter()
        self._encoder = Encoder(self._objects)
        self._checkpointer: Checkpointer | None
        self._connection, self._checkpointer = self._set_up()
        status = self.path.stat()
        self._identity = (status.st_dev, status.st_ino)

    @property
    def ticks(self) -> int:
        """Samples written."""
        return self._ticks

    @property
    def size_bytes(self) -> int:
        """Current size of the recording on disk."""
        files = [self.path, *wal_files(self.path)]
        return sum(file.stat().st_size for file in files if file.exists() and not file.name.endswith("-shm"))

    def write(self, sample: Sample, *, gap: bool = False) -> None:
        """Commit one sample; `gap`: the sample written before is not its predecessor in time.

        Raises:
            LunscopeError: the file was removed, the disk is full or failed; nothing more can be written, but all
                previous ticks remain readable.
        """
        with self._lock:
            self._check()
            try:
                encoded = self._encoder.encode(sample, gap=gap)
                self._commit(encoded, sample)
            except (sqlite3.Error, ValueError) as error:
                raise self._fail(error) from error
            self._ticks += 1
            if self._checkpointer is not None and sample.monotonic_ns >= self._checkpoint_ns:
                self._checkpoint_ns = sample.monotonic_ns + _CHECKPOINT_NS
                self._checkpointer.request()

    def add_event(self, event: Event) -> None:
        """Commit an event outside any sample, a note or a knob turn; it replays with the next sample.

        Raises:
            LunscopeError: as `write`.
        """
        with self._lock:
            self._check()
            try:
                self._put_events(self._ticks, (event,))
            except (sqlite3.Error, ValueError) as error:
                raise self._fail(error) from error

    def close(self) -> None:
        """Mark the recording as complete and leave one file; may be called twice.

        Raises:
            LunscopeError: the log could not be merged into the file, which is complete only with it.
        """
        with self._lock:
            if self._checkpointer is None:
                return
            self._checkpointer.close()
            self._checkpointer = None
            try:
                if not self._failure:
                    self._finish()
            except sqlite3.Error as error:
                log = self.path.with_name(self.path.name + "-wal")
                raise LunscopeError(f"{self.path}: not closed ({error}); keep it together with {log.name}") from error
            finally:
                self._connection.close()
                self._recording_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _set_up(self) -> tuple[sqlite3.Connection, Checkpointer]:
        connection: sqlite3.Connection | None = None
        try:
            connection = connect(self.path, "mode=rw")
            _make_tables(connection)
            return connection, Checkpointer(self.path)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            for file in (*wal_files(self.path), self.path):
                file.unlink(missing_ok=True)
            self._recording_lock.release()
            raise self._fail(error) from error

    def _commit(self, encoded: EncodedTick, sample: Sample) -> None:
        clock_ns = sample.time_ns - sample.monotonic_ns
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            if self._clock_ns is None:
                self._clock_ns = clock_ns
                self._put_header(clock_ns)
            self._put_objects()
            self._put_tick(encoded, sample.time_ns, clock_ns - self._clock_ns)
            self._put_events(encoded.tick, sample.events)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _put_header(self, clock_ns: int) -> None:
        header = {"clock_ns": clock_ns, "interval_s": self.interval_s, "lunscope": version()}
        self._objects.put(ObjectKind.HEADER, objects.dump(header))

    def _put_objects(self) -> None:
        rows = [(number, kind, seal(data, number, kind)) for number, kind, data in self._objects.take_pending()]
        self._connection.executemany("INSERT INTO objects VALUES (?, ?, ?)", rows)

    def _put_tick(self, encoded: EncodedTick, time_ns: int, drift_ns: int) -> None:
        tick, base = encoded.tick, encoded.base
        sealed = seal(encoded.data, tick, time_ns, drift_ns, -1 if base is None else base)
        head, *rest = cut(sealed)
        row = (tick, time_ns, drift_ns, base, len(rest), head)
        self._connection.execute("INSERT INTO ticks VALUES (?, ?, ?, ?, ?, ?)", row)
        self._connection.executemany("INSERT INTO parts VALUES (?, ?)", enumerate(rest, tick * MAX_PARTS))

    def _put_events(self, tick: int, events: tuple[Event, ...]) -> None:
        rows = [(tick, seal(objects.dump(objects.event_to_json(event)), tick)) for event in events]
        self._connection.executemany("INSERT INTO events VALUES (NULL, ?, ?)", rows)

    def _finish(self) -> None:
        self._objects.put(ObjectKind.END, b"{}")
        self._put_objects()
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try:
            self._connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            # A reader has it open: the file is complete, and the last reader removes its empty -wal and -shm files.
            if result_code(error) not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise

    def _check(self) -> None:
        """Fail if the file was removed: further ticks would be lost."""
        if self._failure:
            raise LunscopeError(self._failure)
        if self._checkpointer is None:
            raise LunscopeError(f"{self.path}: the recording was closed")
        try:
            status = self.path.stat()
        except OSError as error:
            raise self._fail(error) from error
        if (status.st_dev, status.st_ino) != self._identity:
            raise self._fail(FileNotFoundError("removed or replaced by another file"))

    def _fail(self, error: Exception) -> LunscopeError:
        self._failure = f"{self.path}: {failure_reason(error)}"
        return LunscopeError(self._failure)


def _make_tables(connection: sqlite3.Connection) -> None:
    # The file has no content to lose in a power failure yet, so no sync is needed before its first tick.
    for pragma in ("synchronous=OFF", "journal_mode=WAL", "wal_autocheckpoint=0"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={VERSION}")
    for statement in TABLES.values():
        connection.execute(statement)
    connection.execute("COMMIT")
    # From here on the main file alone identifies it as a session.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    connection.execute("PRAGMA synchronous=NORMAL")
