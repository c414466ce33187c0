"""One reader's connection as the helper sees it: it is never waited for."""

from __future__ import annotations

import math
import socket
import time

from collectors.exact.probe.message import MOST_REQUEST_BYTES, Incoming, Message, encode

REQUEST_S = 2.0
"""Within which a request must be whole, from its first byte on."""
ANSWER_S = 5.0
"""Within which the reader must have taken an answer, from when it was ready."""

_PART_BYTES = 1 << 16


class Connection:
    """A socket that does not block, the request that arrives by it and the answer that leaves by it.

    There is one of them at a time: no request is read while an answer is unsent, so a reader that does not read holds
    up itself alone.
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
        """Whether some of an answer is left."""
        return bool(self._unsent)

    @property
    def held_bytes(self) -> int:
        """Memory that an unfinished request or answer takes."""
        return self._incoming.held_bytes + len(self._unsent)

    @property
    def due_s(self) -> float:
        """When what is under way must be done, by the monotonic clock; infinite while nothing is."""
        return self._due_s

    @property
    def delay(self) -> str:
        """Say what is under way, for the line that says why the reader is let go."""
        return "it did not take its answer" if self._unsent else "it did not finish its request"

    def receive(self) -> Message | None:
        """Read what is there of a request; returns it when it is whole.

        Raises:
            MessageError: what came is not a message, or the connection ended.
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
        """Send as much of a message as the socket takes; the rest is left for `flush`.

        Raises:
            OSError: the connection failed.
        """
        self._unsent = memoryview(encode(message))
        self._due_s = time.monotonic() + ANSWER_S
        self.flush()

    def flush(self) -> None:
        """Send more of what is left.

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
