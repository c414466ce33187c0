"""I/O by process: a scan of PROCFS/PID/io in the background."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct

from collectors.kernel.identity import storable_name
from collectors.model import MISSING, Rows, Table
from collectors.sampling.reading import BackgroundThread, Reading
from collectors.tables.process.schema import PROCESS
from engine._native import read_attributes
from engine.events import Event, EventKind
from engine.hostfs.kernel_files import process_ids
from engine.text import whole_number

MAX_PROCESSES = 64
KEPT_S = 30.0
"""Time for which a process without further I/O stays listed, so that its rate is shown falling to 0."""

_MISSING = int(MISSING)
_COUNTERS = ("read_bytes", "write_bytes", "cancelled_write_bytes", "syscr", "syscw")


class ProcessIo(Struct, frozen=True):
    """I/O of one process between the last two scans, as columns of the PROCESS schema without its span."""

    key: str
    name: str
    deltas: tuple[int, ...]


class _Mover(Struct):
    """A process with recent I/O."""

    key: str
    name: str
    moved_s: float
    moved_bytes: int
    deltas: tuple[int, ...]


class ProcessScanner:
    """Reads PROCFS/PID/io of all processes; only those with changed content cost more than that.

    The counters are those of proc_pid_io(5): `read_bytes` was fetched from storage, `write_bytes` was dirtied, which is
    charged to the process that dirtied the page, not to the one that wrote it back.
    """

    def __init__(self, procfs: str = "/proc") -> None:
        self._procfs = procfs
        self._last_texts: dict[str, bytes] | None = None
        self._movers: dict[str, _Mover] = {}
        self.hidden = 0
        """Processes of the first scan with unreadable counters."""

    def scan(self) -> tuple[ProcessIo, ...]:
        """Scan once; return processes with recent storage I/O, the latest and largest first."""
        now_s = time.monotonic()
        pids = process_ids(self._procfs)
        texts = [io for (io,) in read_attributes(self._procfs, pids, ["io"])]
        texts_by_pid = {pid: text for pid, text in zip(pids, texts, strict=True) if text is not None}
        if self._last_texts is None:
            self.hidden = sum(Path(self._procfs, pid, "io").exists() for pid in pids if pid not in texts_by_pid)
        else:
            self._note_movers(self._last_texts, texts_by_pid, now_s)
        self._last_texts = texts_by_pid
        self._movers = {
            pid: mover for pid, mover in self._movers.items() if pid in texts_by_pid and now_s - mover.moved_s < KEPT_S
        }
        latest = sorted(self._movers.values(), key=lambda mover: (-mover.moved_s, -mover.moved_bytes))[:MAX_PROCESSES]
        return tuple(ProcessIo(mover.key, mover.name, mover.deltas) for mover in latest)

    def _note_movers(self, before: Mapping[str, bytes], texts_by_pid: Mapping[str, bytes], now_s: float) -> None:
        for pid, mover in self._movers.items():
            mover.deltas = (int(pid), *(0 for _ in _COUNTERS))
        moved = {}
        for pid, text in texts_by_pid.items():
            if before.get(pid) != text:
                deltas = _counter_deltas(_parse_io(before.get(pid, b"")), _parse_io(text))
                if deltas[0] or deltas[1]:
                    moved[pid] = (int(pid), *deltas)
                elif pid in self._movers:
                    self._movers[pid].deltas = (int(pid), *deltas)
        stats = read_attributes(self._procfs, list(moved), ["stat"])
        for (pid, deltas), (stat,) in zip(moved.items(), stats, strict=True):
            name, started = command_and_start(stat or b"")
            if started:
                self._movers[pid] = _Mover(f"{pid}:{started}", name, now_s, deltas[1] + deltas[2], deltas)


def _counter_deltas(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Differences of the counters; a pid that is used again by another process starts from zero."""
    if any(late < early for early, late in zip(before, after, strict=True)):
        before = (0,) * len(after)
    return tuple(_MISSING if _MISSING in pair else pair[1] - pair[0] for pair in zip(before, after, strict=True))


def _parse_io(text: bytes) -> tuple[int, ...]:
    """Parse the counters of PROCFS/PID/io in the order of the schema; 0 for a process that did not exist."""
    if not text:
        return (0,) * len(_COUNTERS)
    found = dict(line.split(b": ", 1) for line in text.splitlines() if b": " in line)
    return tuple(_count(found.get(name.encode())) for name in _COUNTERS)


def _count(text: bytes | None) -> int:
    count = None if text is None else whole_number(text)
    return count if count is not None and count < _MISSING else _MISSING


def command_and_start(text: bytes) -> tuple[str, str]:
    """Command and start time of PROCFS/PID/stat (fields 2 and 22); a command may hold anything, brackets too."""
    command = text[text.find(b"(") + 1 : text.rfind(b")")]
    fields = text[text.rfind(b")") + 1 :].split()
    started = fields[19].decode() if len(fields) > 19 and fields[19].isdigit() else ""
    return storable_name(command.decode("utf-8", "surrogateescape")), started


CADENCE_S = 2.0
CPU_SHARE = 0.02
"""Share of one core for scanning; hosts with very many processes are scanned less often."""

_NO_ROWS = Rows((), ())


class _Scan(Struct, frozen=True):
    span_ns: int
    """Time between this scan and the one before it."""
    processes: tuple[ProcessIo, ...]


class ProcessCollector:
    """Returns the latest scan at every tick: its rates are valid until the next one."""

    def __init__(self, procfs: str = "/proc") -> None:
        self._scanner = ProcessScanner(procfs)
        self._latest: _Scan | None = None
        self._served: _Scan | None = None
        self._table = Table(PROCESS, _NO_ROWS, np.empty((0, len(PROCESS.columns)), np.uint64))
        self._reported_hidden = False
        self._thread = BackgroundThread("processes", self._scan)

    def read(self) -> Reading:
        """Return the latest scan, without waiting.

        Raises:
            RuntimeError: the thread has failed.
        """
        self._thread.check()
        latest = self._latest
        if latest is None:
            return Reading({PROCESS.name: self._table})
        if latest is not self._served:
            self._table = _table(latest, self._table.rows)
            self._served = latest
        return Reading({PROCESS.name: self._table}, events=self._hidden_event())

    def close(self) -> None:
        """Stop the thread."""
        self._thread.stop()

    def _hidden_event(self) -> tuple[Event, ...]:
        hidden = self._scanner.hidden
        if self._reported_hidden or not hidden or os.geteuid() == 0:
            return ()
        self._reported_hidden = True
        text = f"the I/O of {hidden:,} of the processes may not be read; root or CAP_SYS_PTRACE would show it"
        return (Event.now(EventKind.MONITOR, text, hidden=hidden),)

    def _scan(self, stop: threading.Event) -> None:
        pause_s, scanned_ns = 0.0, time.monotonic_ns()
        while not stop.wait(pause_s):
            before = time.thread_time()
            processes = self._scanner.scan()
            now_ns = time.monotonic_ns()
            self._latest, scanned_ns = _Scan(now_ns - scanned_ns, processes), now_ns
            pause_s = max(CADENCE_S, (time.thread_time() - before) / CPU_SHARE)


def _table(scan: _Scan, rows: Rows) -> Table:
    keys = tuple(process.key for process in scan.processes)
    if keys != rows.keys:
        rows = Rows(keys, tuple(process.name for process in scan.processes))
    values = np.array([(*process.deltas, scan.span_ns // 1000) for process in scan.processes], np.uint64)
    return Table(PROCESS, rows, values.reshape(len(keys), len(PROCESS.columns)))
