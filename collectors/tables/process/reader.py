"""I/O by process: a scan of PROCFS/PID/io in the background."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

import numpy as np

from collectors.model import Rows, Table
from collectors.sampling.background import BackgroundThread
from collectors.sampling.reading import Reading
from collectors.tables.process.scan import ProcessIo, ProcessScanner
from collectors.tables.process.schema import PROCESS
from engine.events import Event, EventKind

CADENCE_S = 2.0
CPU_SHARE = 0.02
"""Share of one core for scanning; hosts with very many processes are scanned less often."""

_NO_ROWS = Rows((), ())


@dataclass(frozen=True, slots=True)
class _Scan:
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
        self._thread.start()

    @property
    def cpu_ns(self) -> int:
        """CPU time of the scanning thread."""
        return self._thread.cpu_ns

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
