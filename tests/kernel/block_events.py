"""Truth about block I/O from the kernel's event log: a tracefs instance of our own, read when the load is over."""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.kernel.tracefs import tracefs

QUEUED = "block_bio_queue"
"""Before an I/O gets its request, and so before the kernel takes the time of its start."""
STARTS = ("block_io_start", "block_getrq")
"""Events of the start of an I/O, of which older kernels have the second only."""
ENDS = ("block_rq_issue", "block_rq_complete")
BUFFER_KB = 16_384
_KERNEL = int(os.uname().release.partition(".")[0])

LINE = re.compile(
    r"(?P<seconds>\d+)\.(?P<micros>\d{6}): (?P<event>block_\w+): (?P<major>\d+),(?P<minor>\d+) (?P<kind>\S+) "
    r"(?:(?:\d+ )?\(.*?\) )?(?P<sector>\d+) \+ (?P<sectors>\d+)"
)


Times = NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """Times of the I/Os of one device in microseconds, by sector, shape (ios,) each; -1 where one is not in the log."""

    write: NDArray[np.bool_]
    bytes: NDArray[np.int64]
    queued_us: Times
    start_us: Times
    issue_us: Times
    done_us: Times
    busy_us: int
    busy_spans: int
    """Stretches of busy time, of which each begins and ends with an event."""
    lost: int
    """Completions without an issue and issues without a completion."""

    @property
    def queue_us(self) -> Times:
        """From the start to the issue; -1 where the start is not in the log."""
        return np.where(self.start_us < 0, -1, self.issue_us - self.start_us)

    @property
    def service_us(self) -> Times:
        return self.done_us - self.issue_us


@dataclass(frozen=True)
class Between:
    """What somebody may find who is told of each event after one log and before another, which have the same I/Os."""

    first: Truth
    last: Truth

    @property
    def service_us(self) -> tuple[Times, Times]:
        """Least and most of each I/O."""
        return self.first.done_us - self.last.issue_us, self.last.done_us - self.first.issue_us

    @property
    def queue_us(self) -> tuple[Times, Times]:
        """Least and most of each I/O. Linux 7 takes the time of the start after the event: there is no least there."""
        least = np.zeros_like(self.first.issue_us) if _KERNEL >= 7 else self.first.queue_us
        return least, self.last.issue_us - self.first.queued_us

    @property
    def busy_us(self) -> tuple[int, int]:
        """Least and most."""
        first, last = self.first, self.last
        return _union_us(last.issue_us, first.done_us)[0], _union_us(first.issue_us, last.done_us)[0]


def by_chance_us(times: int) -> float:
    """How far sums of so many times may be off, because the log tells whole microseconds: five standard deviations."""
    return 5.0 * math.sqrt(times / 6.0)


def events() -> tuple[str, ...]:
    """Events that are logged here.

    Raises:
        OSError: there is no tracefs.
    """
    folder = tracefs() / "events/block"
    return QUEUED, next((start for start in STARTS if (folder / start).exists()), STARTS[0]), *ENDS


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

    def count(self, event: str) -> int:
        """Count one kind of event since the start."""
        return sum(f" {event}: " in line for line in (self._folder / "trace").read_text().splitlines())

    def start(self) -> None:
        """Log anew: what was logged before is dropped."""
        (self._folder / "trace").write_text("")
        (self._folder / "tracing_on").write_text("1")

    def truth(self) -> Truth:
        """Stop logging, and return everything logged since the start."""
        (self._folder / "tracing_on").write_text("0")
        return _truth((self._folder / "trace").read_text().splitlines())


@contextmanager
def event_log(major: int, minor: int, name: str = "log", more: Sequence[str] = ()) -> Iterator[EventLog]:
    """Log the events that times are computed of, and more ones, until the end."""
    folder = tracefs() / "instances" / f"lunscope-test-{os.getpid()}-{name}"
    folder.mkdir()
    try:
        (folder / "tracing_on").write_text("0")
        (folder / "trace_clock").write_text("mono")
        (folder / "buffer_size_kb").write_text(str(BUFFER_KB))
        for event in (*events(), *more):
            (folder / "events/block" / event / "filter").write_text(f"dev == {major << 20 | minor}")
            (folder / "events/block" / event / "enable").write_text("1")
        yield EventLog(folder)
    finally:
        for event in (*events(), *more):
            with suppress(OSError):
                (folder / "events/block" / event / "enable").write_text("0")
        folder.rmdir()


@dataclass
class _Io:
    queued_us: int = -1
    start_us: int = -1
    issue_us: int = -1


def _truth(lines: list[str]) -> Truth:
    """Match the events of the same sector in order; an I/O that was given back counts from its last issue."""
    under_way: dict[tuple[int, bool], deque[_Io]] = defaultdict(deque)
    queued_us: dict[tuple[int, bool], int] = {}
    done: list[tuple[int, bool, int, int, int, int, int]] = []
    lost = 0
    for line in lines:
        match = LINE.search(line)
        if match is None or match["kind"][0] not in "RW":
            continue
        now_us = int(match["seconds"]) * 1_000_000 + int(match["micros"])
        which = sector, write = int(match["sector"]), match["kind"][0] == "W"
        ios, event = under_way[which], match["event"]
        if event == QUEUED:
            # Again if there was no request for it and its submitter did not want to wait.
            queued_us[which] = now_us
        elif event in STARTS:
            ios.append(_Io(queued_us.pop(which, -1), now_us))
        elif event == "block_rq_issue":
            _not_issued(ios).issue_us = now_us
        elif not ios or ios[0].issue_us < 0:
            lost += 1
        else:
            io = ios.popleft()
            times = io.queued_us, io.start_us, io.issue_us, now_us
            done.append((sector, write, int(match["sectors"]) * 512, *times))
    lost += sum(len(ios) for ios in under_way.values())
    columns = np.array(sorted(done, key=lambda io: (io[:2], io[-1])), np.int64).reshape(-1, 7).T
    _, writes, sizes, queued, start, issue, end = columns
    return Truth(writes.astype(bool), sizes, queued, start, issue, end, *_union_us(issue, end), lost)


def _not_issued(ios: deque[_Io]) -> _Io:
    """The first that waits; one of which the log does not have the start is new."""
    for io in ios:
        if io.issue_us < 0:
            return io
    ios.append(_Io())
    return ios[-1]


def _union_us(begins: Times, ends: Times) -> tuple[int, int]:
    """Length of what the spans cover, and in how many pieces."""
    total, pieces, end = 0, 0, -1
    for first, last in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
        total += max(0, last - max(first, end))
        pieces += first > end
        end = max(end, last)
    return total, pieces
