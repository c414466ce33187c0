"""Moving in time: pausing the display of a live host, or the cursor of a recording."""

from __future__ import annotations

import math
from typing import TypeAlias, cast

from collectors.model import Frame, SeekableSource, Source, Step
from engine.events import Event

SLOWEST, FASTEST = 0.125, 1000.0
SECOND_NS = 1_000_000_000


class LiveTransport:
    """A live host: sampling continues; a pause only freezes the display."""

    seekable = False
    notice = ""
    seeks = 0
    stride_ns = math.inf
    """A live host never seeks: missing samples are a gap."""

    def __init__(self) -> None:
        self.held: Frame | None = None

    @property
    def paused(self) -> bool:
        """Whether the display is paused."""
        return self.held is not None

    def pause(self, latest: Frame | None) -> None:
        """Freeze the latest frame, or resume."""
        self.held = None if self.held is not None else latest

    def shown(self, latest: Frame) -> Frame:
        """Choose the frame to show when `latest` arrived."""
        return self.held or latest

    def arrived(self) -> None:
        """Do nothing: there are no seeks."""

    def past(self, _end_ns: int, _count: int) -> list[Step]:
        """Nothing: the past of a live host is known only from received frames."""
        return []

    def events(self) -> list[Event]:
        """Nothing: live events come with the frames."""
        return []


class ReplayTransport:
    """A recording: its cursor pauses, steps, seeks and changes speed."""

    seekable = True

    def __init__(self, source: SeekableSource) -> None:
        self._source = source
        self._aim_ns: int | None = None
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
        """Clear the request: the cursor has arrived."""
        self._aim_ns = None

    def step(self, count: int) -> None:
        """Pause, and move by samples."""
        self.seeks += 1
        self._source.step(count)

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

    def past(self, end_ns: int, count: int) -> list[Step]:
        """Fetch steps up to a moment, for the charts after a seek."""
        return self._source.window(end_ns, count)

    def events(self) -> list[Event]:
        """All events of the recording."""
        return self._source.events()


Transport: TypeAlias = LiveTransport | ReplayTransport


def transport_of(source: Source) -> Transport:
    """Make the transport for a source; nothing else checks whether it is seekable."""
    return ReplayTransport(cast(SeekableSource, source)) if source.seekable else LiveTransport()
