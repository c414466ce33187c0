"""The largest peaks of a whole recording, found by a background thread."""

from __future__ import annotations

import threading
import time

from collectors.latency.history import ticks_of
from collectors.latency.summary import Peak, largest, peaks_of
from collectors.model import SeekableSource
from engine.errors import LunscopeError

CHUNK = 32
"""Samples per batch; between batches other readers of the recording can proceed."""
BREATH_S = 0.005


class RecordingPeaks:
    """Reads a recording backwards from its end, again when it has grown; all members are thread-safe."""

    def __init__(self, recording: SeekableSource, most: int) -> None:
        self._recording = recording
        self._most = most
        self._lock = threading.Lock()
        self._peaks: list[Peak] = []
        self._read_to_ns = recording.start_ns - 1
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._share = 0.0

    @property
    def share(self) -> float:
        """Share of the recording read so far, 0 to 1."""
        return self._share

    def peaks(self) -> list[Peak]:
        """Return the largest found so far, the largest first."""
        with self._lock:
            return list(self._peaks)

    def begin(self) -> None:
        """Start reading the unread part, unless that is in progress."""
        if (self._thread is None or not self._thread.is_alive()) and self._recording.end_ns > self._read_to_ns:
            self._thread = threading.Thread(target=self._run, name="lunscope-peaks", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def _run(self) -> None:
        try:
            self._read(self._read_to_ns, self._recording.end_ns)
        except LunscopeError:
            # The screen that shows the recording reads the same file and reports the error.
            self._share = 1.0

    def _read(self, after_ns: int, end_ns: int) -> None:
        upto_ns = end_ns
        while not self._stop.is_set():
            steps = [step for step in self._recording.window(upto_ns, CHUNK) if step.current.time_ns > after_ns]
            found = [peak for step in steps for name, tick in ticks_of(step).items() for peak in peaks_of(tick, name)]
            with self._lock:
                self._peaks = largest({*self._peaks, *found}, self._most)
            begin_ns = min((step.current.time_ns for step in steps), default=after_ns)
            if len(steps) < CHUNK or begin_ns >= upto_ns:
                self._read_to_ns, self._share = end_ns, 1.0
                return
            upto_ns = begin_ns - 1
            self._share = (end_ns - upto_ns) / (end_ns - after_ns)
            time.sleep(BREATH_S)
