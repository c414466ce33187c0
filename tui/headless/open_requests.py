"""The connections of an HTTP server: how many there may be, and how long each may take as a whole."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

HEAD_S = 5.0
"""Time until the whole request must have come, however its bytes are spread."""
WHOLE_S = 30.0
"""Time until the whole answer must have been taken."""
_LEAST_S = 1.0
"""A younger connection is not ended for another one; those without a request are ended first."""


class OpenRequests:
    """Ends connections that are overdue, and one where another would be too many.

    A timeout of the socket begins again with each byte: with one byte a second a client would keep a place for hours.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: dict[socket.socket, tuple[bool, float]] = {}
        """Whether the request of each has come, and when the connection began."""

    def add(self, connection: socket.socket) -> bool:
        """Note a new connection; False where it is one too many, and none can be ended for it."""
        now_s = time.monotonic()
        with self._lock:
            if len(self._open) >= self._most:
                oldest = min(self._open, key=self._open.__getitem__)
                if now_s - self._open[oldest][1] < _LEAST_S:
                    return False
                self._end(oldest)
            self._open[connection] = False, now_s
        return True

    def has_come(self, connection: socket.socket) -> None:
        """Note that the request is complete."""
        with self._lock:
            if connection in self._open:
                self._open[connection] = True, self._open[connection][1]

    def remove(self, connection: socket.socket) -> None:
        """Note that a connection is closed."""
        with self._lock:
            self._open.pop(connection, None)

    def end_overdue(self) -> None:
        """End what takes too long; called often."""
        now_s = time.monotonic()
        with self._lock:
            for connection, (has_come, begun_s) in tuple(self._open.items()):
                if now_s - begun_s >= (WHOLE_S if has_come else HEAD_S):
                    self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        del self._open[connection]
        with contextlib.suppress(OSError):  # the client has closed it
            connection.shutdown(socket.SHUT_RDWR)
