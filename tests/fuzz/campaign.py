"""The loop that all fuzzers share: make an input, try it, keep what fails."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

KEPT = Path(__file__).parent / "kept"
LONGEST_S = 5.0
"""CPU time one input may take."""
_WALL_SHARE = 8
"""How much longer it may take by the clock, on a machine that others use too."""


class HangError(BaseException):
    """An input took too long; no handler for ordinary errors is to catch it."""


def campaign(  # noqa: PLR0917 (what run gets, and what it is about)
    name: str,
    make: Callable[[random.Random], bytes],
    attempt: Callable[[bytes], None],
    seed: int,
    count: int,
    seconds: float,
) -> int:
    """Try inputs until there were `count` or the time is over; returns how many.

    Raises:
        AssertionError: an input made anything else than a clear error; it names the file the input was saved in.
    """
    end_s = time.monotonic() + seconds
    for index in range(count):
        if time.monotonic() >= end_s:
            return index
        data = make(random.Random(f"{name} {seed} {index}"))
        try:
            with limited():
                attempt(data)
        except (Exception, HangError) as error:
            path = save(name, data)
            trace = "".join(traceback.format_exception(error)[-6:])
            raise AssertionError(
                f"{path}: input {index} of seed {seed}: {type(error).__name__}: {error}\n{trace}"
            ) from error
    return count


def save(name: str, data: bytes, suffix: str = "bin") -> Path:
    """Keep an input where tests find it, or in the folder that LUNSCOPE_FUZZ_FOUND names."""
    folder = Path(os.environ.get("LUNSCOPE_FUZZ_FOUND") or KEPT) / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.{suffix}"
    path.write_bytes(data)
    return path


@contextmanager
def limited(seconds: float = LONGEST_S) -> Iterator[None]:
    """End what computes longer, or waits for very much longer; to be used in the main thread."""

    def hang(*_: object) -> None:
        raise HangError(f"longer than {seconds:g} s")

    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, seconds * _WALL_SHARE),
    )
    before = [signal.signal(number, hang) for number, _, _ in timers]
    try:
        for _, timer, length_s in timers:
            signal.setitimer(timer, length_s)
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def assert_printable(lines: Iterator[str] | list[str], *, most_lines: int = 20_000) -> None:
    """No escapes, control characters or anything else that moves a cursor; and the lines end at some point."""
    for number, line in enumerate(lines):
        assert number < most_lines, "no end of lines"
        assert line.isprintable(), f"raw control character in {line!r}"
