"""What the controller knows of one host."""

from __future__ import annotations

from collections import deque
from enum import StrEnum

from msgspec import Struct, field

from collectors.fleet.clocks import ClockEstimate
from collectors.fleet.frames import Frame
from collectors.fleet.host_summary import Summary
from collectors.fleet.sample_stream import SampleReceiver
from collectors.model import Sample
from collectors.tables.fleet.schema import STATES

WRONG_CLOCK_NS = 1_000_000_000
"""A wall clock that is further off is named."""
_MOST_WORDS = 8


class HostState(StrEnum):
    """State of a host, the worst that holds."""

    WAITING = "waiting"
    CONNECTING = "connecting"
    LIVE = "live"
    SLOW = "slow"
    LATE = "late"
    CLOCK = "clock"
    LOST = "lost"
    FAILED = "failed"

    @property
    def number(self) -> int:
        """Its number in recordings."""
        return STATES.index(self.value)


class FleetHost(Struct, eq=False):
    """State of one host; written by the thread of the links only."""

    name: str
    gateway: str = ""
    state: HostState = HostState.WAITING
    reason: str = ""
    """Why it is lost or failed, in one line: ssh's own words where it is ssh that failed."""
    moved: str = ""
    """Through which gateway it is reached in place of one that failed, and why; empty while it was not moved."""
    moves: int = 0
    version: str = ""
    attempts: int = 0
    """Connections begun."""
    is_greeted: bool = False
    """Whether its agent's first frame has come."""
    garbage_bytes: int = 0
    """What came before it."""
    dropped_frames: int = 0
    received_bytes: int = 0
    heard_ns: int = 0
    since_s: float = 0.0
    """Time of the latest step on CLOCK_MONOTONIC: the attempt to connect, the first frame or the latest sample."""
    is_mute: bool = False
    """Whether it answers, but sends no samples."""
    said: str = ""
    """What it logged last."""
    wall_error_ns: int | None = None
    """Wall clock of the host minus that of the controller."""
    estimate: ClockEstimate = field(default_factory=ClockEstimate)
    receiver: SampleReceiver = field(default_factory=SampleReceiver)
    summary: Summary | None = None
    sample: Sample | None = None
    """The latest summary."""
    wants_full: bool = False
    """Whether all of its samples are asked for."""
    full: Sample | None = None
    """The latest full sample, while the host is shown alone."""
    status: Frame = field(default_factory=dict)
    """State of its load."""
    result: Frame | None = None
    """Result of the load that has ended."""
    given: object = field(default_factory=dict)
    """What its names led to when a load was first armed on them, as its agent says: permissions are for that only."""
    done: dict[int, Frame] = field(default_factory=dict)
    """What it did, by number of what it was asked."""
    words: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_WORDS))
    """The last lines of standard error."""
    news: deque[str] = field(default_factory=lambda: deque(maxlen=64))
    """What it logged, until the merged samples have it."""

    @property
    def is_connected(self) -> bool:
        """Whether its agent answers."""
        return self.is_greeted and self.state not in {HostState.LOST, HostState.FAILED}

    @property
    def offset_ns(self) -> int:
        """Its CLOCK_MONOTONIC minus the controller's; 0 while it is not known."""
        best = self.estimate.best
        return 0 if best is None else best.offset_ns

    @property
    def is_awaited(self) -> bool:
        """Whether nothing has come that could be shown, and something may yet."""
        return self.sample is None and self.state not in {HostState.LOST, HostState.FAILED}

    def waiting_s(self, now_s: float) -> float:
        """How long nothing more has come."""
        return now_s - self.since_s

    def why_waiting(self, now_s: float) -> str:
        """Say what it has not done yet, and for how long."""
        time_text = f"for {self.waiting_s(now_s):.0f} s"
        if self.state is HostState.WAITING:
            return f"is not connected yet, {time_text}"
        if not self.is_greeted:
            return f"has not answered {time_text}{f': {self.words[-1]}' if self.words else ''}"
        greeted = "greeted but " if self.sample is None else ""
        return f"{greeted}sends no sample {time_text}{f': {self.said}' if self.said else ''}"

    def begin_attempt(self, now_s: float) -> None:
        """Forget what belongs to a connection: another begins."""
        self.attempts += 1
        self.since_s, self.is_mute, self.said = now_s, False, ""
        self.state, self.reason = HostState.CONNECTING, ""
        self.is_greeted, self.garbage_bytes = False, 0
        self.estimate, self.receiver = ClockEstimate(), SampleReceiver()
        self.sample = self.full = None
        self.status = {}
        self.words.clear()

    def move(self, gateway: str, why: str) -> None:
        """Have it connected again through another gateway."""
        self.moved = f"through {gateway}, not {self.gateway}: {why}"
        self.gateway, self.moves = gateway, self.moves + 1
        self.state, self.reason, self.is_greeted = HostState.WAITING, why, False
        self.news.append(self.moved)
