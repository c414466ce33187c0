"""The thread between a source and the screen: it derives frames and keeps the newest only."""

from __future__ import annotations

import threading
from collections.abc import Callable

from textual.message import Message

from collectors.model import Frame, Source, Step
from collectors.sampling.schedule import SampleFlag
from engine.errors import LunscopeError
from tui.history.charts import EventHistory, History
from tui.history.recorded_past import LivePast, RecordedPast
from tui.process.prompt_thread import respond_promptly
from tui.transport import ReplayTransport, Transport


class FrameArrived(Message, bubble=False):
    """A new frame; a pending one is replaced by the next, so that the screen never lags."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame

    def can_replace(self, message: Message) -> bool:
        """Any pending frame is older."""
        return isinstance(message, FrameArrived)


class FeedEnded(Message, bubble=False):
    """The source ended; `reason` is one line, or empty at the end of a recording."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Feed:
    """Runs a source in a plain thread; a Textual thread worker could delay the exit."""

    def __init__(
        self,
        source: Source,
        transport: Transport,
        history: History,
        events: EventHistory,
        post: Callable[[Message], object],
    ) -> None:
        self._source = source
        self._transport = transport
        self._history = history
        self._events = events
        self._post = post
        self._stop = SampleFlag()
        self._observe: Callable[[Step], None] = lambda _step: None
        self._sum_up: Callable[[Frame], None] = lambda _frame: None
        self._thread = threading.Thread(target=self._run, name="lunscope-feed", daemon=True)
        self._past = RecordedPast(history, transport) if isinstance(transport, ReplayTransport) else LivePast(history)

    def observed_by(self, observe: Callable[[Step], None]) -> None:
        """Call this with every step, in the thread of the feed; before `start`."""
        self._observe = observe

    def summed_up_in(self, add: Callable[[Frame], None]) -> None:
        """Call this with the frame of every step, likewise."""
        self._sum_up = add

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def request_sample(self) -> None:
        """Request a sample ahead of schedule, if the source is live; never blocks."""
        self._stop.request()

    def close(self, timeout_s: float = 5.0) -> bool:
        """Stop and join; whether the thread ended in time."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        # It shares the interpreter with the thread of the screens, which would wait for it.
        respond_promptly()
        try:
            self._events.add(self._transport.events())
            for step in self._source.steps(self._stop):
                self._observe(step)
                self._take(step)
        except LunscopeError as error:
            self._post(FeedEnded(str(error)))
        except Exception as error:
            self._post(FeedEnded(f"{type(error).__name__}: {error}"))
        else:
            if not self._stop.is_set():
                self._post(FeedEnded(""))

    def _take(self, step: Step) -> None:
        generation = self._transport.seeks
        frame, step = self._past.frame_of(step), Step(step.previous, step.current)
        self._sum_up(frame)
        self._history.totals.take(step.current)
        self._history.gone_paths.follow(frame)
        self._events.add(frame.events)
        if self._transport.seekable:
            self._history.load.move(step)
        else:
            self._history.load.add(step)
            self._history.intervals.add(step, frame)
        self._post(FrameArrived(frame))
        for filled in self._past.fill(step, frame, lambda: self._transport.seeks != generation or self._stop.is_set()):
            self._post(FrameArrived(filled))
        transport = self._transport
        if isinstance(transport, ReplayTransport) and self._fetch_load(step, transport):
            self._post(FrameArrived(frame))

    def _fetch_load(self, step: Step, transport: ReplayTransport) -> bool:
        """Read the load's intervals around its last turn, which the cursor may have skipped; returns whether it did."""
        return self._history.load.fetch(self._events.all(), transport, step, self._source.interval_s)
