"""A probe helper in a thread, with a tracer in the test's hand, and connections that speak to it byte by byte."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from collectors.exact.probe.connection import Admission
from collectors.exact.probe.hub import Hub
from collectors.exact.probe.message import receive
from collectors.exact.probe.server import Limits, ProbeServer
from collectors.exact.tracer import Tracer
from collectors.sampling.programs import NfsCalls, NfsProgram, NfsSlowCalls, ThrottleProgram, Waits
from tests.unit.hand_tracer import HandTracer

MYSELF = Admission(frozenset({os.getuid()}))
PATIENCE_S = 10


class HandThrottle:
    """Waits as a test sets them; cells are handed out once, as the programs do."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.cells: list[list[int]] = []
        self.closed = False

    def read(self) -> Waits:
        cells, self.cells = self.cells, []
        return np.array(self.rows, np.uint64).reshape(-1, 5), np.array(cells, np.uint64).reshape(-1, 3)

    def losses(self) -> tuple[int, int]:
        return 3, 4

    def close(self) -> None:
        self.closed = True


class HandNfs:
    """Calls as a test sets them, each handed out once."""

    def __init__(self) -> None:
        self.next: tuple[list[list[int]], list[str], list[list[int]]] = [], [], []
        self.slow: tuple[list[list[int]], list[str], list[str]] = [], [], []
        self.closed = False

    def read(self) -> NfsCalls:
        (rows, names, cells), self.next = self.next, ([], [], [])
        return np.array(rows, np.uint64).reshape(-1, 10), names, np.array(cells, np.uint64).reshape(-1, 4)

    def slowest(self) -> NfsSlowCalls:
        (rows, operations, commands), self.slow = self.slow, ([], [], [])
        return np.array(rows, np.uint64).reshape(-1, 9), operations, commands

    def losses(self) -> tuple[int, int]:
        return 5, 6

    def close(self) -> None:
        self.closed = True


class Helper:
    """A server in a thread; every attachment gets a new tracer."""

    def __init__(self, path: Path, admission: Admission = MYSELF, limits: Limits | None = None) -> None:
        self.path = path
        self.tracers: list[HandTracer] = []
        self.said: list[str] = []
        self.refusal = ""
        self.throttles: list[HandThrottle] = []
        self.throttle_refusal = ""
        self.nfs: list[HandNfs] = []
        hub = Hub(self._open, self._open_throttle, self._open_nfs)
        self.server = ProbeServer(path, admission, hub, self.said.append, limits)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.server.serve, args=(self._stop,))
        self._thread.start()

    def _open(self) -> Tracer:
        if self.refusal:
            raise OSError(1, self.refusal)
        self.tracers.append(HandTracer())
        return self.tracers[-1]

    def _open_throttle(self) -> ThrottleProgram:
        if self.throttle_refusal:
            raise OSError(1, self.throttle_refusal)
        self.throttles.append(HandThrottle())
        return self.throttles[-1]

    def _open_nfs(self) -> NfsProgram:
        self.nfs.append(HandNfs())
        return self.nfs[-1]

    @property
    def tracer(self) -> HandTracer:
        return self.tracers[-1]

    def end(self) -> None:
        if self._thread.is_alive():
            self._stop.set()
            self._thread.join(PATIENCE_S)
            self.server.close()


def wait_for(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(1_000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come to that")


def raw(helper: Helper) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_S)
    connection.connect(str(helper.path))
    receive(connection, PATIENCE_S)
    return connection
