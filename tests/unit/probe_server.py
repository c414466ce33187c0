"""A probe helper in a thread, with a tracer in the test's hand, and connections that speak to it byte by byte."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from collectors.exact.probe.connection import Admission
from collectors.exact.probe.hub import Hub
from collectors.exact.probe.message import receive
from collectors.exact.probe.server import Limits, ProbeServer
from collectors.exact.tracer import Tracer
from tests.unit.hand_tracer import HandTracer

MYSELF = Admission(frozenset({os.getuid()}))
PATIENCE_S = 10


class Helper:
    """A server in a thread; every attachment gets a new tracer."""

    def __init__(self, path: Path, admission: Admission = MYSELF, limits: Limits | None = None) -> None:
        self.path = path
        self.tracers: list[HandTracer] = []
        self.said: list[str] = []
        self.refusal = ""
        self.server = ProbeServer(path, admission, Hub(self._open), self.said.append, limits)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.server.serve, args=(self._stop,))
        self._thread.start()

    def _open(self) -> Tracer:
        if self.refusal:
            raise OSError(1, self.refusal)
        self.tracers.append(HandTracer())
        return self.tracers[-1]

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
