"""The terminal's output queue: never blocks, never splits an escape sequence, drops stale frames."""

from __future__ import annotations

import asyncio
import os
import re
import select
import time
from collections import deque
from collections.abc import Callable

from msgspec import Struct

MAX_BEHIND_BYTES = 16 << 10
"""Unwritten output above which further frames are dropped: they would be stale."""
_MAX_CONTROL_BYTES = 256 << 10
"""Unwritten output above which bells and clipboard text are dropped too."""

_UNIT = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequence
    rb"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # string: title, clipboard
    rb"|\x1b[ -/]*[0-~]"  # other escape
    rb"|[\xc2-\xf4][\x80-\xbf]{1,3}"  # a character of several bytes
    rb"|.",
    re.DOTALL,
)
"""Sequences that must not be split (ECMA-48, 5.4 and 5.6)."""


class _Piece(Struct):
    data: bytes
    is_frame: bool


class TerminalOutput:
    """Writes to a non-blocking descriptor, in the asyncio event loop.

    Frames are dropped while more than MAX_BEHIND_BYTES wait; after a drop `on_drained` is called once the queue is
    empty, and must redraw the whole screen. `on_lost` is called once, with the reason, when the terminal is lost.
    """

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        on_drained: Callable[[], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._on_drained = on_drained
        self._on_lost = on_lost
        self._pieces: deque[_Piece] = deque()
        self._written = 0
        """Bytes of the first piece that are written."""
        self._waiting_bytes = 0
        self._waits = False
        self._is_stale = False
        self._is_closed = False

    @property
    def is_behind(self) -> bool:
        """Whether a frame would be dropped now."""
        return self._waiting_bytes > MAX_BEHIND_BYTES

    def drop_frame(self) -> None:
        """Note that a frame was not drawn because it would be dropped."""
        self._is_stale = True

    def frame(self, text: str) -> None:
        """Send a frame, or drop it."""
        if self.is_behind:
            self._is_stale = True
        elif text:
            self._add(text, is_frame=True)

    def control(self, text: str) -> None:
        """Send anything but frames: modes, queries, the bell."""
        if self._waiting_bytes < _MAX_CONTROL_BYTES:
            self._add(text, is_frame=False)

    def finish(self, text: str, timeout_s: float) -> bool:
        """Drop queued frames, end a partly written one, send `text`; returns whether all was written in time.

        Blocks for `timeout_s` at most; nothing can be written afterwards.
        """
        self._forget_frames()
        self._is_stale = False
        self._add(text, is_frame=False)
        deadline_s = time.monotonic() + timeout_s
        readiness = select.poll()
        readiness.register(self._fd, select.POLLOUT)
        while self._pieces and not self._is_closed and (left_s := deadline_s - time.monotonic()) > 0:
            readiness.poll(left_s * 1000)
            self._write()
        self.close()
        return not self._pieces

    def close(self) -> None:
        """Stop writing."""
        self._stop_waiting()
        self._is_closed = True

    def _add(self, text: str, *, is_frame: bool) -> None:
        if self._is_closed:
            return
        data = text.encode("utf-8", "replace")
        self._pieces.append(_Piece(data, is_frame))
        self._waiting_bytes += len(data)
        if not self._waits:
            self._write()

    def _forget_frames(self) -> None:
        first = self._pieces.popleft() if self._written else None
        kept = [piece for piece in self._pieces if not piece.is_frame]
        if first is not None:
            if first.is_frame:
                first.data = first.data[: whole_units(first.data, self._written)]
            kept.insert(0, first)
        self._pieces = deque(kept)
        self._waiting_bytes = sum(len(piece.data) for piece in kept) - self._written

    def _write(self) -> None:
        try:
            while self._pieces:
                self._write_some(self._pieces[0].data)
        except BlockingIOError:
            self._wait()
        except OSError as error:
            self._lose(f"the terminal takes no output: {error.strerror}")
        else:
            self._stop_waiting()
            self._drained()

    def _write_some(self, data: bytes) -> None:
        if self._written < len(data):
            count = os.write(self._fd, memoryview(data)[self._written :])
            self._written += count
            self._waiting_bytes -= count
        if self._written >= len(data):
            self._pieces.popleft()
            self._written = 0

    def _drained(self) -> None:
        if self._is_stale:
            self._is_stale = False
            self._on_drained()

    def _wait(self) -> None:
        if not self._waits:
            self._waits = True
            self._loop.add_writer(self._fd, self._write)

    def _stop_waiting(self) -> None:
        if self._waits:
            self._waits = False
            self._loop.remove_writer(self._fd)

    def _lose(self, reason: str) -> None:
        self.close()
        self._pieces.clear()
        self._waiting_bytes = self._written = 0
        self._on_lost(reason)


def whole_units(data: bytes, position: int) -> int:
    """Where output that stopped at `position` can end without half an escape sequence or character."""
    end = 0
    for unit in _UNIT.finditer(data):
        if end >= position:
            return end
        end = unit.end()
    return end
