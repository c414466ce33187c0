"""The largest peaks of a whole recording, found by a thread of its own while whoever asked goes on."""

from __future__ import annotations

import threading
import time

from collectors.latency.history import ticks_of
from collectors.latency.peaks import Peak, largest, peaks_of
from collectors.model import SeekableSource
from engine.errors import LunscopeError

CHUNK = 32
"""Samples read at once; in between, others that read the recording get their turn."""
BREATH_S = 0.005


class RecordingPeaks:
    """Reads a recording from its end backwards, again when it grew; every member may be called from any thread."""

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
        """Share of the recording that is read, 0 to 1."""
        return self._share

    def peaks(self) -> list[Peak]:
        """Give the largest found so far, the largest first."""
        with self._lock:
            return list(self._peaks)

    def begin(self) -> None:
        """Read what was not read yet, unless that goes on already."""
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
            # Whoever shows the recording reads the same file and says what is wrong with it.
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
