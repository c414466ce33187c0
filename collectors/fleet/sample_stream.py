"""Samples as frames: encoded as in session files, each as differences from the one before."""

from __future__ import annotations

from typing import Any

from collectors.fleet.frames import Frame, FrameError, encode, pack, unpack, whole
from collectors.model import Sample
from collectors.session import objects
from collectors.session.checked_rows import StoredTick
from collectors.session.decoder import Decoder, ObjectReader
from collectors.session.encoder import Encoder, ObjectWriter
from collectors.session.format import MAX_BLOB_BYTES, DamageError, seal
from engine.errors import LunscopeError
from engine.events import Event
from engine.replacing import replace

_MOST_OBJECTS = 20_000
"""Objects kept of one segment of 30 minutes."""


class SampleSender:
    """Encodes the samples of one stream in order."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._objects = ObjectWriter()
        self._encoder = Encoder(self._objects)

    def frame(self, sample: Sample) -> bytes:
        """Return the next sample as a line."""
        encoded = self._encoder.encode(sample, gap=False)
        events = [objects.event_to_json(event) for event in sample.events]
        pending = [[number, kind, pack(data)] for number, kind, data in self._objects.take_pending()]
        return encode(
            "sample",
            stream=self._stream,
            tick=encoded.tick,
            base=encoded.tick - 1 if encoded.base is None else encoded.base,
            time_ns=sample.time_ns,
            monotonic_ns=sample.monotonic_ns,
            data=pack(encoded.data),
            **({"objects": pending} if pending else {}),
            **({"events": events} if events else {}),
        )


class _SentObjects:
    """The objects of the current segment, by number."""

    def __init__(self) -> None:
        self._sealed: dict[int, tuple[int, bytes]] = {}
        self._bytes = 0

    def add(self, items: object) -> None:
        for item in items if isinstance(items, list) else []:
            match item:
                case [int(number), int(kind), str(packed)] if 0 < number < 1 << 40 and 0 <= kind < 1 << 16:
                    data = unpack(packed)
                    self._bytes += len(data)
                    self._sealed[number] = (kind, seal(data, number, kind))
                case _:
                    raise FrameError("a damaged object")
        if len(self._sealed) > _MOST_OBJECTS or self._bytes > MAX_BLOB_BYTES:
            raise FrameError("more objects than any host has")

    def clear(self) -> None:
        self._sealed.clear()
        self._bytes = 0

    def select(self, query: str, *values: int) -> list[tuple[Any, ...]]:  # noqa: ARG002 - it has one table
        """Return an object by its number, as the database of a session file does."""
        found = self._sealed.get(values[0]) if values else None
        return [] if found is None else [found]


class _SentTicks:
    """The current tick, and the full one at the start of the segment, against which others are encoded."""

    def __init__(self) -> None:
        self._ticks: dict[int, StoredTick] = {}
        self._start = -1

    def add(self, tick: StoredTick) -> None:
        if tick.base == tick.tick:
            self._start = tick.tick
        self._ticks = {number: kept for number, kept in self._ticks.items() if number == self._start}
        self._ticks[tick.tick] = tick

    def get(self, tick: int) -> StoredTick:
        """Return a tick.

        Raises:
            DamageError: it is not kept.
        """
        if tick not in self._ticks:
            raise DamageError("encoded against a sample that was not received")
        return self._ticks[tick]


class SampleReceiver:
    """Decodes the samples of one stream in order."""

    def __init__(self) -> None:
        self._stream = -1
        self._begin()

    def _begin(self) -> None:
        self._objects, self._ticks = _SentObjects(), _SentTicks()
        self._decoder = Decoder(self._ticks, ObjectReader(self._objects), lambda _: ())

    def sample(self, frame: Frame) -> Sample:
        """Return the sample of a frame.

        Raises:
            FrameError: it is damaged, or a frame before it was not received.
        """
        stream, tick, base = whole(frame, "stream"), whole(frame, "tick"), whole(frame, "base")
        if stream != self._stream:
            self._stream = stream
            self._begin()
        if tick == base:
            self._objects.clear()
        self._objects.add(frame.get("objects"))
        time_ns, monotonic_ns = whole(frame, "time_ns"), whole(frame, "monotonic_ns")
        self._ticks.add(StoredTick(tick, time_ns, monotonic_ns, base, unpack(frame.get("data"))))
        try:
            sample = self._decoder.moment(tick).sample
            return replace(sample, events=_events(frame.get("events")))
        except (ValueError, LunscopeError) as error:
            raise FrameError(f"a damaged sample: {error}") from None


def _events(items: object) -> tuple[Event, ...]:
    if not isinstance(items, list):
        return ()
    return tuple(objects.event_from_json(item) for item in items if isinstance(item, dict))
