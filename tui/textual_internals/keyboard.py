"""Terminal input: keys, mouse, replies to queries; read in the event loop."""

from __future__ import annotations

import asyncio
import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable

from textual import constants, events
from textual._xterm_parser import XTermParser
from textual.message import Message

_READ_BYTES = 4096
_TICK_S = constants.ESCAPE_DELAY + 0.01
"""Time after which a lone escape character is the Esc key."""


class Keyboard:
    """Parses terminal input into messages; `on_lost` is called once, with the reason, when input has ended."""

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        on_message: Callable[[Message], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._on_message = on_message
        self._on_lost = on_lost
        self._parser = XTermParser()
        self._decode = getincrementaldecoder("utf-8")(errors="replace").decode
        self._tick: asyncio.TimerHandle | None = None
        self.answers = False
        """Whether the terminal has reported its cursor position, which every terminal that answers queries does."""
        loop.add_reader(fd, self._read)

    def close(self) -> None:
        """Stop reading; may be called twice."""
        self._loop.remove_reader(self._fd)
        self._cancel_tick()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(f"the terminal gives no input: {error.strerror}")
            return
        if not data:
            self._lose("the terminal was closed")
            return
        self._cancel_tick()
        if text := self._decode(data):  # Feeding an empty text would end the parser.
            self._hand_over(self._parser.feed(text))
        self._tick = self._loop.call_later(_TICK_S, self._time_out)

    def _time_out(self) -> None:
        self._hand_over(self._parser.tick())

    def _hand_over(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, events.CursorPosition):
                self.answers = True
            else:
                self._on_message(message)

    def _cancel_tick(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    def _lose(self, reason: str) -> None:
        self.close()
        self._on_lost(reason)
