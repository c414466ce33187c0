"""Lines of a stream of bytes, each limited in length."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.fleet.frames import MAX_LINE_BYTES, FrameError


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
