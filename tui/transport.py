"""Moving in time: pausing the display of a live host, or the cursor of a recording."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias, cast

from collectors.model import Frame, SeekableSource, Source, Step
from engine.events import Event

SLOWEST, FASTEST = 0.125, 1000.0
SECOND_NS = 1_000_000_000


class KeptFrames(Protocol):
    """The newest frames of a live host."""

    def frame_at(self, time_ns: int) -> Frame | None:
        """Find the interval that contains a wall time, or the nearest; None before the first."""

    def frame_beside(self, frame: Frame, count: int) -> Frame | None:
        """Find the frame `count` intervals after a frame, or the last one in that direction."""


class _Asked:
    """The time last sought, which may lie between two samples: what comes next is counted from it."""

    def __init__(self) -> None:
        self._asked_ns = self._shown_ns = 0

    def shown(self, asked_ns: int, position_ns: int) -> None:
        """Take a time and the position that is shown for it."""
        self._asked_ns, self._shown_ns = asked_ns, position_ns

    def at(self, position_ns: int) -> int:
        """Return the time sought while its position is shown, else the position."""
        return self._asked_ns if self._shown_ns == position_ns else position_ns


class LiveTransport:
    """A live host: sampling continues; the display is frozen, and steps through the intervals that are kept."""

    seekable = False
    notice = ""
    seeks = 0
    stride_ns = math.inf
    """A live host never seeks: missing samples are a gap."""

    def __init__(self) -> None:
        self.held: Frame | None = None
        self._kept: KeptFrames | None = None
        self._latest: Frame | None = None
        self._asked = _Asked()
        self._moved: Callable[[], object] = lambda: None

    def follow(self, kept: KeptFrames, moved: Callable[[], object]) -> None:
        """Step through these frames; `moved` is called when another one will be shown."""
        self._kept, self._moved = kept, moved

    @property
    def paused(self) -> bool:
        """Whether the display is paused."""
        return self.held is not None

    @property
    def start_ns(self) -> int:
        """Wall time of the first frame that can be shown; that of the newest while none is kept."""
        first = None if self._kept is None else self._kept.frame_at(0)
        return first.time_ns if first is not None else self.end_ns

    @property
    def end_ns(self) -> int:
        """Wall time of the newest frame."""
        return 0 if self._latest is None else self._latest.time_ns

    @property
    def position_ns(self) -> int:
        """Wall time of the frame shown."""
        return self.end_ns if self.held is None else self.held.time_ns

    @property
    def moment_ns(self) -> int:
        """Wall time from which the next event or peak is sought: the one last sought, or that of the frame shown."""
        return self._asked.at(self.position_ns)

    def pause(self, latest: Frame | None) -> None:
        """Freeze the latest frame, or resume."""
        self._hold(latest if self.held is None else None)

    def resume(self) -> None:
        """Show the newest frame again, and all that follow."""
        if self.held is not None:
            self._hold(None)

    def shown(self, latest: Frame) -> Frame:
        """Choose the frame to show when `latest` arrived."""
        self._latest = latest
        return self.held or latest

    def arrived(self) -> None:
        """Do nothing: a frame that is kept is there at once."""

    def step(self, count: int) -> None:
        """Pause, and move by intervals."""
        shown = self.held or self._latest
        if shown is not None:
            beside = None if self._kept is None else self._kept.frame_beside(shown, count)
            self._hold(beside or shown)

    def seek(self, time_ns: int) -> None:
        """Pause, and show the interval that contains a wall time, or the nearest."""
        frame = (None if self._kept is None else self._kept.frame_at(time_ns)) or self._latest
        if frame is not None:
            self._asked.shown(time_ns, frame.time_ns)
            self._hold(frame)

    def move(self, seconds: float) -> None:
        """Seek by seconds from the frame shown."""
        self.seek(self.position_ns + round(seconds * SECOND_NS))

    def events(self) -> list[Event]:
        """Nothing: live events come with the frames."""
        return []

    def _hold(self, frame: Frame | None) -> None:
        self.held = frame
        self._moved()


class ReplayTransport:
    """A recording: its cursor pauses, steps, seeks and changes speed."""

    seekable = True

    def __init__(self, source: SeekableSource) -> None:
        self._source = source
        self._aim_ns: int | None = None
        self._asked = _Asked()
        self.seeks = 0
        """Incremented with every seek and step, so that work for an earlier one can be cancelled."""

    @property
    def source(self) -> SeekableSource:
        """The recording itself, for readers independent of the cursor."""
        return self._source

    @property
    def stride_ns(self) -> float:
        """Largest step between samples shown in succession: at most 20 are shown per second."""
        return 2e9 * max(self._source.interval_s, 0.05 * self.speed)

    @property
    def paused(self) -> bool:
        """Whether the cursor is paused."""
        return self._source.paused

    @property
    def speed(self) -> float:
        """Recorded seconds per second."""
        return self._source.speed

    @property
    def start_ns(self) -> int:
        """Wall time of the first sample."""
        return self._source.start_ns

    @property
    def end_ns(self) -> int:
        """Wall time of the last sample."""
        return self._source.end_ns

    @property
    def position_ns(self) -> int:
        """Wall time of the sample last shown, or the one asked for since."""
        return self._source.position_ns if self._aim_ns is None else self._aim_ns

    @property
    def moment_ns(self) -> int:
        """Wall time from which the next event or peak is sought: the one last sought, or that of the sample shown."""
        return self._asked.at(self.position_ns) if self._aim_ns is None else self._aim_ns

    @property
    def notice(self) -> str:
        """Damage found in the file."""
        return self._source.notice

    def pause(self, _latest: Frame | None) -> None:
        """Pause the cursor, or resume; at the end of the recording it restarts from the beginning."""
        if self.paused and self.position_ns >= self.end_ns:
            self.seek(self.start_ns)
        self._source.pause(not self.paused)

    def shown(self, latest: Frame) -> Frame:
        """Take the latest frame: a paused cursor yields only requested ones."""
        return latest

    def arrived(self) -> None:
        """Clear the request if the cursor has arrived: a frame that was under way when it was made says nothing."""
        if self._source.is_moving:
            return
        if self._aim_ns is not None:
            self._asked.shown(self._aim_ns, self._source.position_ns)
        self._aim_ns = None

    def step(self, count: int) -> None:
        """Pause, and move by samples from the requested position."""
        self.seeks += 1
        self._aim_ns = self._source.step(count)

    def seek(self, time_ns: int) -> None:
        """Go to a wall time within the recording."""
        self.seeks += 1
        self._aim_ns = min(max(time_ns, self.start_ns), self.end_ns)
        self._source.seek(self._aim_ns)

    def move(self, seconds: float) -> None:
        """Seek by seconds from the requested position, so that quick presses add up."""
        self.seek(self.position_ns + round(seconds * SECOND_NS))

    def change_speed(self, factor: float) -> None:
        """Multiply the speed, within limits."""
        self._source.set_speed(min(max(self.speed * factor, SLOWEST), FASTEST))

    def past(self, end_ns: int, count: int) -> Iterator[Step]:
        """Read steps up to a moment, oldest first, one at a time in memory."""
        return self._source.window(end_ns, count)

    def events(self) -> list[Event]:
        """All events of the recording."""
        return self._source.events()


Transport: TypeAlias = LiveTransport | ReplayTransport


def transport_of(source: Source) -> Transport:
    """Make the transport for a source; nothing else checks whether it is seekable."""
    return ReplayTransport(cast(SeekableSource, source)) if source.seekable else LiveTransport()
