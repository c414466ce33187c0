"""Sources over another one, as the recording: every sample is written to the file, whether a screen shows it or not."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from threading import Event as StopFlag

from collectors.model import AdjustableSource, Sample, Source, Step, TagWaitWatcher
from collectors.session.writer import SessionWriter
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.replacing import replace


class RelayingSource:
    """Passes requests on to the underlying source; what happens to its steps is up to the subclass."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def seekable(self) -> bool:
        """Whether the underlying source is."""
        return self._source.seekable

    @property
    def interval_s(self) -> float:
        """Nominal time between samples, in seconds."""
        return self._source.interval_s

    def watch_tag_wait(self, on: bool | None) -> None:
        """Make the underlying source time waits for free tags, if it can."""
        if isinstance(self._source, TagWaitWatcher):
            self._source.watch_tag_wait(on)

    def set_interval(self, interval_s: float) -> None:
        """Change the interval of the underlying source, if it can."""
        if isinstance(self._source, AdjustableSource):
            self._source.set_interval(interval_s)


class ObservedSource(RelayingSource):
    """Passes on the steps of a source after `observe` has seen each; `end` is called once when it is closed."""

    def __init__(self, source: Source, observe: Callable[[Step], None], end: Callable[[], None]) -> None:
        super().__init__(source)
        self._observe = observe
        self._end: Callable[[], None] | None = end

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        """Yield the steps of the underlying source."""
        for step in self._source.steps(stop):
            self._observe(step)
            yield step

    def close(self) -> None:
        """Close the other source; may be called twice."""
        end, self._end = self._end, None
        try:
            self._source.close()
        finally:
            if end is not None:
                end()


_PATIENCE_S = 0.05
"""Longest wait of the screen for the commit of a sample, which usually takes 0.1 ms."""
_MOST_WAITING = 64
"""Samples buffered while the disk takes no writes; further ones are left out and reported."""
_OF_LOAD = frozenset({EventKind.KNOB, EventKind.LOAD, EventKind.MONITOR})
"""Kinds of events that may come twice: in a sample, and by themselves when the load ends."""
_MOST_KNOWN = 64


class RecordingSource(RelayingSource):
    """A source that records what it passes on.

    A sample is in the file before it is yielded, unless the disk takes longer than 50 ms: then the screen continues and
    the sample follows. When the file fails, recording stops with one event, and the source continues. `first` is
    recorded at once, so that the file is not empty even if the process ends early.
    """

    def __init__(self, source: Source, writer: SessionWriter, first: Sample | None = None) -> None:
        super().__init__(source)
        self._writer = writer
        writer.interval_s = source.interval_s
        self._queue: queue.Queue[_Job | None] = queue.Queue(_MOST_WAITING)
        self._trouble = ""
        self._is_reported = False
        self._missed: list[Sample] = []
        self._left_out = 0
        self._last: Sample | None = None
        self._thread = threading.Thread(target=self._write_all, name="session writer", daemon=True)
        self._thread.start()
        if first is not None:
            self._record(first, gap=True)

    @property
    def path(self) -> str:
        """The session file."""
        return str(self._writer.path)

    @property
    def ticks(self) -> int:
        """Samples in the file."""
        return self._writer.ticks

    @property
    def size_bytes(self) -> int:
        """Current size of the recording on disk."""
        return self._writer.size_bytes

    @property
    def waiting(self) -> int:
        """Samples not yet in the file because its disk is slow."""
        return self._queue.qsize()

    @property
    def left_out(self) -> int:
        """Samples not recorded because the disk took no writes for too long."""
        return self._left_out

    @property
    def trouble(self) -> str:
        """Why recording stopped, or how many samples were left out, in one line; else empty."""
        return self._trouble or (f"{self.path}: {self._left_out} samples left out" if self._left_out else "")

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        """Yield the steps of the underlying source, each recorded."""
        for step in self._source.steps(stop):
            gap = step.previous is None or step.previous is not self._last
            self._last = step.current
            self._record(step.current, gap=gap)
            yield self._with_own_event(step)

    def add_event(self, event: Event) -> None:
        """Record an event outside any sample, such as a note, unless it was recorded already; does not wait."""
        self._offer(_Job(event=event))

    def close(self) -> None:
        """Close the other source, then finish the file; may be called twice.

        Raises:
            LunscopeError: the file could not be completed.
        """
        try:
            self._source.close()
        finally:
            self.finish()

    def finish(self) -> None:
        """Complete the file; further samples of the underlying source are not recorded.

        Raises:
            LunscopeError: the file could not be completed.
        """
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._writer.close()

    def _with_own_event(self, step: Step) -> Step:
        """Report once that recording stopped."""
        if not self._trouble or self._is_reported:
            return step
        self._is_reported = True
        event = Event.now(EventKind.MONITOR, f"recording stopped: {self._trouble}")
        return Step(step.previous, replace(step.current, events=(*step.current.events, event)))

    def _record(self, sample: Sample, *, gap: bool) -> None:
        job = _Job(self._after_missed(sample), gap=gap or bool(self._missed))
        if self._offer(job):
            self._missed.clear()
            job.done.wait(_PATIENCE_S)
        elif not self._trouble:
            # Keep only the events: the tables of a long stall would fill the memory.
            self._missed.append(replace(sample, tables={}, histograms={}))
            self._left_out += 1

    def _after_missed(self, sample: Sample) -> Sample:
        """Add the events of left-out samples to the next one, with an event that reports them."""
        if not self._missed:
            return sample
        text = f"{len(self._missed)} samples not recorded: the disk of {self._writer.path} took no write"
        own = Event(EventKind.MONITOR, text, sample.time_ns, sample.monotonic_ns)
        missed = (event for left_out in self._missed for event in left_out.events)
        return replace(sample, events=(*missed, own, *sample.events))

    def _offer(self, job: _Job) -> bool:
        if self._trouble or not self._thread.is_alive():
            return False
        try:
            self._queue.put_nowait(job)
        except queue.Full:
            return False
        return True

    def _write_all(self) -> None:
        known: deque[Event] = deque(maxlen=_MOST_KNOWN)
        while (job := self._queue.get()) is not None:
            try:
                if not self._trouble:
                    job.write(self._writer, known)
            except LunscopeError as error:
                self._trouble = str(error)
            except (
                BaseException
            ) as error:  # the thread has no caller to report to, and recording must not continue without it
                self._trouble = f"{self.path}: cannot be recorded: {type(error).__name__}: {error}"
            finally:
                job.done.set()


class _Job:
    def __init__(self, sample: Sample | None = None, event: Event | None = None, *, gap: bool = False) -> None:
        self._sample = sample
        self._event = event
        self._gap = gap
        self.done = threading.Event()

    def write(self, writer: SessionWriter, known: deque[Event]) -> None:
        """Write the sample or the event; `known` are the last events of the load that are in the file."""
        if self._sample is not None:
            events = tuple(event for event in self._sample.events if event not in known)
            whole = len(events) == len(self._sample.events)
            writer.write(self._sample if whole else replace(self._sample, events=events), gap=self._gap)
            known.extend(event for event in events if event.kind in _OF_LOAD)
        if self._event is not None and self._event not in known:
            writer.add_event(self._event)
            known.append(self._event)
