"""Helper side of one reader's connection; the helper never blocks on it."""

from __future__ import annotations

import math
import socket
import time

from collectors.exact.probe.message import MOST_REQUEST_BYTES, Incoming, Message, encode

REQUEST_S = 2.0
"""Timeout of a complete request, from its first byte on."""
ANSWER_S = 5.0
"""Timeout for the reader to receive an answer, from when it was ready."""

_PART_BYTES = 1 << 16


class Connection:
    """A non-blocking socket with its incoming request or outgoing answer.

    Only one of them is in progress: no request is read while an answer is unsent, so a reader that does not read delays
    only itself.
    """

    def __init__(self, connection: socket.socket, user: int) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.user = user
        self._incoming = Incoming(MOST_REQUEST_BYTES, 0)
        self._unsent = memoryview(b"")
        self._due_s = math.inf

    @property
    def has_unsent(self) -> bool:
        """Whether part of an answer is unsent."""
        return bool(self._unsent)

    @property
    def held_bytes(self) -> int:
        """Memory of an unfinished request or answer."""
        return self._incoming.held_bytes + len(self._unsent)

    @property
    def due_s(self) -> float:
        """Deadline of the request or answer in progress (CLOCK_MONOTONIC); infinite if there is none."""
        return self._due_s

    @property
    def delay(self) -> str:
        """Why a reader that missed its deadline is disconnected."""
        return "it did not take its answer" if self._unsent else "it did not finish its request"

    def receive(self) -> Message | None:
        """Read available bytes of a request; return it when complete.

        Raises:
            MessageError: the bytes are not a message, or the connection ended.
            OSError: the connection failed.
        """
        begun = self._incoming.begun
        try:
            message = self._incoming.add(self.socket.recv(min(self._incoming.wanted, _PART_BYTES)))
        except BlockingIOError:
            return None
        if message is not None:
            self._due_s = math.inf
        elif not begun:
            self._due_s = time.monotonic() + REQUEST_S
        return message

    def send(self, message: Message) -> None:
        """Send as much of a message as the socket takes; `flush` sends the rest.

        Raises:
            OSError: the connection failed.
        """
        self._unsent = memoryview(encode(message))
        self._due_s = time.monotonic() + ANSWER_S
        self.flush()

    def flush(self) -> None:
        """Send more of the rest.

        Raises:
            OSError: the connection failed.
        """
        try:
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent[:_PART_BYTES]) :]
        except BlockingIOError:
            return
        # The answer's memory is freed with its last view.
        self._unsent, self._due_s = memoryview(b""), math.inf

    def close(self) -> None:
        """Close the socket; may be called twice."""
        self.socket.close()
