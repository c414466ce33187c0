"""What an agent sends and receives, as lines."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator

from collectors.fleet.frames import MAX_LINE_BYTES, FrameError

_MOST_WAITING = 256
"""Frames buffered while the controller reads none; further ones are left out."""


class AgentOutput:
    """Writes lines to a descriptor in order, in a thread: a controller that reads no more must not hold up the load."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._write_all, name="lunscope-output", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> bool:
        """Send a line; whether it was taken. Never blocks."""
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            return False
        return True

    def finish(self, patience_s: float) -> None:
        """Wait for this time for what is waiting."""
        if self.put_end():
            self._thread.join(patience_s)

    def put_end(self) -> bool:
        """End the thread after what is waiting."""
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return False
        return True

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError:  # the controller has gone; the lease ends the agent
                return


class LineInput:
    """Cuts what arrives into lines without their ends."""

    def __init__(self, most_bytes: int = MAX_LINE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add what arrived; yields the lines that are complete.

        Raises:
            FrameError: a line is longer than allowed.
        """
        self._rest += data
        while (end := self._rest.find(b"\n")) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            yield line.removesuffix(b"\r")
        if len(self._rest) > self._most_bytes:
            raise FrameError(f"a line of more than {self._most_bytes:,} bytes")
