"""Truth about block I/O from the kernel's event log: a tracefs instance of our own, read when the load is over."""

from __future__ import annotations

import os
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.kernel.tracefs import tracefs

STARTS = ("block_io_start", "block_getrq")
"""Events of the start of an I/O, of which older kernels have the second only."""
ENDS = ("block_rq_issue", "block_rq_complete")
BUFFER_KB = 16_384

LINE = re.compile(
    r"(?P<seconds>\d+)\.(?P<micros>\d{6}): (?P<event>block_\w+): (?P<major>\d+),(?P<minor>\d+) (?P<kind>\S+) "
    r"(?:(?:\d+ )?\(.*?\) )?(?P<sector>\d+) \+ (?P<sectors>\d+)"
)


@dataclass(frozen=True)
class Truth:
    """Times of the I/Os of one device, in microseconds, shape (ios,) each; -1 where the start is not in the log."""

    write: NDArray[np.bool_]
    bytes: NDArray[np.int64]
    queue_us: NDArray[np.int64]
    service_us: NDArray[np.int64]
    busy_us: int
    busy_spans: int
    """Stretches of busy time, of which each begins and ends with an event."""
    lost: int
    """Completions without an issue and issues without a completion."""


def events() -> tuple[str, ...]:
    """Events that are logged here.

    Raises:
        OSError: there is no tracefs.
    """
    folder = tracefs() / "events/block"
    return next((start for start in STARTS if (folder / start).exists()), STARTS[0]), *ENDS


def refusal() -> str:
    if os.geteuid() != 0:
        return "not root"
    try:
        folder, wanted = tracefs() / "events/block", events()
    except OSError as error:
        return f"tracefs: {error.strerror}"
    missing = [event for event in wanted if not (folder / event).exists()]
    return f"this kernel has no event {missing[0]}" if missing else ""


class EventLog:
    """One instance that logs the events of one device."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self) -> None:
        """Log anew: what was logged before is dropped."""
        (self._folder / "trace").write_text("")
        (self._folder / "tracing_on").write_text("1")

    def truth(self) -> Truth:
        """Stop logging, and return everything logged since the start."""
        (self._folder / "tracing_on").write_text("0")
        return _truth((self._folder / "trace").read_text().splitlines())


@contextmanager
def event_log(major: int, minor: int) -> Iterator[EventLog]:
    folder = tracefs() / "instances" / f"lunscope-test-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / "tracing_on").write_text("0")
        (folder / "trace_clock").write_text("mono")
        (folder / "buffer_size_kb").write_text(str(BUFFER_KB))
        for event in events():
            (folder / "events/block" / event / "filter").write_text(f"dev == {major << 20 | minor}")
            (folder / "events/block" / event / "enable").write_text("1")
        yield EventLog(folder)
    finally:
        for event in events():
            with suppress(OSError):
                (folder / "events/block" / event / "enable").write_text("0")
        folder.rmdir()


@dataclass
class _Io:
    start_us: int
    issue_us: int = -1


def _truth(lines: list[str]) -> Truth:
    """Match the events of the same sector in order; an I/O that was given back counts from its last issue."""
    under_way: dict[tuple[int, bool], deque[_Io]] = defaultdict(deque)
    done: list[tuple[bool, int, int, int]] = []
    spans: list[tuple[int, int]] = []
    lost = 0
    for line in lines:
        match = LINE.search(line)
        if match is None or match["kind"][0] not in "RW":
            continue
        now_us = int(match["seconds"]) * 1_000_000 + int(match["micros"])
        write = match["kind"][0] == "W"
        ios = under_way[int(match["sector"]), write]
        if match["event"] in STARTS:
            ios.append(_Io(now_us))
        elif match["event"] == "block_rq_issue":
            waiting = [io for io in ios if io.issue_us < 0]
            if not waiting:
                waiting = [_Io(-1)]
                ios.append(waiting[0])
            waiting[0].issue_us = now_us
        elif not ios or ios[0].issue_us < 0:
            lost += 1
        else:
            io = ios.popleft()
            queue_us = io.issue_us - io.start_us if io.start_us >= 0 else -1
            done.append((write, int(match["sectors"]) * 512, queue_us, now_us - io.issue_us))
            spans.append((io.issue_us, now_us))
    lost += sum(len(ios) for ios in under_way.values())
    columns = np.array(done, np.int64).reshape(-1, 4).T
    return Truth(columns[0].astype(bool), columns[1], columns[2], columns[3], *_union_us(spans), lost)


def _union_us(spans: list[tuple[int, int]]) -> tuple[int, int]:
    """Length of what the spans cover, and in how many pieces."""
    total, pieces, end = 0, 0, -1
    for first, last in sorted(spans):
        total += max(0, last - max(first, end))
        pieces += first > end
        end = max(end, last)
    return total, pieces
