"""What waits to be written: nothing blocks, nothing is cut in half, and the newest picture wins."""

from __future__ import annotations

import asyncio
import os
import re
import select
from collections.abc import Iterator

import pytest

from tui.terminal.output import MAX_BEHIND_BYTES, TerminalOutput, whole_units

FRAME = "\x1b[1;1H\x1b[38;5;12mé" + "x" * 100
MANY = 4000
TOO_LONG_S = 10.0


class Pipe:
    """A terminal that is read when the test wants it."""

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe2(os.O_NONBLOCK)
        self.drained = 0
        self.lost: list[str] = []

    def output(self) -> TerminalOutput:
        return TerminalOutput(self.write_fd, asyncio.get_running_loop(), self._drained, self.lost.append)

    def _drained(self) -> None:
        self.drained += 1

    async def read_all(self) -> bytes:
        """Read until nothing more comes."""
        seen = b""
        for _ in range(50):
            try:
                seen += os.read(self.read_fd, 1 << 20)
            except BlockingIOError:
                await asyncio.sleep(0.002)
        return seen

    def read_until(self, end: bytes) -> bytes:
        """Read in a thread, while the loop is kept from running."""
        seen = b""
        while not seen.endswith(end) and select.select([self.read_fd], [], [], TOO_LONG_S)[0]:
            seen += os.read(self.read_fd, 1 << 20)
        return seen


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.write_fd)
    if made.read_fd >= 0:
        os.close(made.read_fd)


async def test_what_is_read_at_once_arrives_whole(pipe: Pipe) -> None:
    output = pipe.output()
    output.frame(FRAME)
    output.control("\a")
    assert await pipe.read_all() == FRAME.encode() + b"\a"
    assert pipe.drained == 0


async def test_frames_that_nobody_reads_are_dropped_and_asked_for_again_once(pipe: Pipe) -> None:
    output = pipe.output()
    for _ in range(MANY):
        output.frame(FRAME)
    assert output.is_behind
    seen = await pipe.read_all()
    assert seen == FRAME.encode() * (len(seen) // len(FRAME.encode()))
    assert len(seen) < MANY * len(FRAME.encode()) - MAX_BEHIND_BYTES
    assert pipe.drained == 1
    assert not output.is_behind
    output.frame("newest")
    assert await pipe.read_all() == b"newest"


async def test_what_is_no_picture_is_kept(pipe: Pipe) -> None:
    output = pipe.output()
    for _ in range(MANY):
        output.frame(FRAME)
    output.control("\x1b[?1000h")
    assert (await pipe.read_all()).endswith(b"\x1b[?1000h")


async def test_finishing_cuts_a_frame_between_sequences(pipe: Pipe) -> None:
    output = pipe.output()
    output.frame(FRAME * MANY)
    seen = os.read(pipe.read_fd, 1 << 14)

    reading = asyncio.get_running_loop().run_in_executor(None, pipe.read_until, b"BYE")
    assert output.finish("BYE", TOO_LONG_S)
    seen += await reading
    assert seen.endswith(b"BYE")
    assert len(seen) < MANY * len(FRAME)
    assert re.fullmatch(rb"(\x1b\[1;1H|\x1b\[38;5;12m|\xc3\xa9|x)*BYE", seen)


async def test_finishing_ends_in_time_though_nobody_reads(pipe: Pipe) -> None:
    output = pipe.output()
    output.frame(FRAME * MANY)
    assert not output.finish("BYE", 0.05)


async def test_a_terminal_that_went_away_is_reported_once(pipe: Pipe) -> None:
    output = pipe.output()
    os.close(pipe.read_fd)
    pipe.read_fd = -1
    output.frame(FRAME)
    output.frame(FRAME)
    assert len(pipe.lost) == 1
    assert "Broken pipe" in pipe.lost[0]


@pytest.mark.parametrize(
    ("data", "position", "end"),
    [
        (b"ab\x1b[31mcd", 2, 2),
        (b"ab\x1b[31mcd", 3, 7),
        (b"ab\x1b[31mcd", 6, 7),
        (b"\xe2\x94\x80x", 1, 3),
        (b"\x1b]52;c;AAAA\x07x", 5, 12),
        (b"\x1b[31m", 5, 5),
        (b"ab", 0, 0),
    ],
)
def test_where_output_can_end(data: bytes, position: int, end: int) -> None:
    assert whole_units(data, position) == end
