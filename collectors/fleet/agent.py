"""The agent of a host: frames of its controller on standard input, its own on standard output, and the lease."""

from __future__ import annotations

import os
import platform
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from collectors.fleet.agent_load import AgentLoad
from collectors.fleet.clocks import GridClock
from collectors.fleet.frames import MAX_LINE_BYTES, PROTOCOL, Frame, FrameError, decode, encode, text, whole
from collectors.fleet.host_summary import Summary, with_sums
from collectors.fleet.lease import Lease
from collectors.fleet.sample_stream import SampleSender
from collectors.model import Sample
from collectors.sampling.reading_settings import load_reading_settings
from collectors.sampling.schedule import SampleFlag
from collectors.session.writer import SessionWriter
from collectors.sources.live import LiveSource
from collectors.sources.load import LoadCollector
from collectors.sources.recorder import RecordingSource
from engine.config import state_folder
from engine.errors import LunscopeError, words_of
from engine.events import Event, EventKind
from engine.replacing import replace
from engine.running.control import LoadControl
from engine.version import version

_READ_BYTES = 1 << 16
_OUTPUT_PATIENCE_S = 1.0
LEASE_LOST_EXIT = 3
"""Exit code of an agent whose lease ended."""

Log = Callable[[str], None]


class AgentSettings(Struct, frozen=True):
    """How an agent samples its host."""

    procfs: Path
    sysfs: Path
    tier: str = "auto"


class Agent:
    """Samples one host and drives its load for a controller, as long as it hears from it."""

    def __init__(self, settings: AgentSettings, input_fd: int, output_fd: int, log: Log) -> None:
        self._settings = settings
        self._input_fd = input_fd
        self._log = log
        self._output = AgentOutput(output_fd)
        self._control = LoadControl(may_write=lambda: self._lease.holds)
        self._stopped = threading.Event()
        self._load = AgentLoad(self._control, self._output.put, self._stopped)
        self._lease = Lease(self._lost)
        self._flag = SampleFlag()
        self._clock = GridClock(1.0)
        self._source: LiveSource | RecordingSource | None = None
        self._recording: RecordingSource | None = None
        self._sampling: threading.Thread | None = None
        self._full, self._stream = False, 0
        self._is_dismissed = False
        self._code = 0

    def run(self) -> int:
        """Serve until the controller has gone; returns the exit code."""
        self._output.put(
            encode("hello", protocol=PROTOCOL, version=version(), host=platform.node(), time_ns=time.time_ns())
        )
        self._lease.start()
        threading.Thread(target=self._read_all, name="lunscope-input", daemon=True).start()
        self._lease.wait()
        return self._code

    def _read_all(self) -> None:
        lines = LineInput()
        try:
            while data := os.read(self._input_fd, _READ_BYTES):
                received_ns = time.monotonic_ns()
                for line in lines.feed(data):
                    self._handle(decode(line), received_ns)
            self._lease.end("the connection to the controller was closed")
        except (FrameError, OSError) as error:
            self._lease.end(f"damaged input: {error}")

    def _handle(self, frame: Frame, received_ns: int) -> None:
        self._lease.renew()
        match text(frame, "type"):
            case "hello":
                self._begin(frame)
            case "lease":
                self._clock.set_phase(whole(frame, "phase_ns"))
                self._answer(whole(frame, "sent_ns"), received_ns)
            case "level":
                self._full = frame.get("full") is True
                self._stream += 1
                self._flag.request()
            case "bye":
                self._is_dismissed = True
                self._lease.end("")
            case "arm" | "start" | "turn" | "end" | "part" | "peek" | "epoch" | "stop":
                self._load.handle(frame)
            case _:
                pass  # of a later version

    def _answer(self, sent_ns: int, received_ns: int) -> None:
        self._output.put(
            encode(
                "clock",
                sent_ns=sent_ns,
                received_ns=received_ns,
                time_ns=time.time_ns(),
                answered_ns=time.monotonic_ns(),
            )
        )

    def _begin(self, frame: Frame) -> None:
        if whole(frame, "protocol") != PROTOCOL:
            self._lease.end(f"the controller speaks version {whole(frame, 'protocol')} of the protocol, not {PROTOCOL}")
            return
        if self._sampling is not None:
            return
        records = frame.get("record") is True
        name = text(frame, "name")
        self._sampling = threading.Thread(
            target=self._sample, args=(name, records), name="lunscope-sampling", daemon=True
        )
        self._sampling.start()

    def _sample(self, name: str, records: bool) -> None:
        try:
            source = self._source = self._open(records)
            summary, stream = Summary(name), -1
            sender = SampleSender(0)
            for step in source.steps(self._flag):
                if self._stopped.is_set():
                    return
                full = self._full
                if stream != self._stream:
                    stream = self._stream
                    sender = SampleSender(2 * stream + full)
                late_ns = self._clock.lateness_ns(step.current.monotonic_ns)
                current = replace(step.current, late_ns=late_ns)
                reduced = summary.of(current, late_ns, time.process_time_ns())
                self._send(sender, with_sums(current, reduced) if full else reduced)
        except Exception as error:
            self._output.put(encode("log", text=f"samples nothing: {_words(error)}"))
            self._log(f"samples nothing: {_words(error)}")

    def _send(self, sender: SampleSender, sample: Sample) -> None:
        if not self._output.put(sender.frame(sample)):
            self._stream += 1  # later samples are differences from this one: begin anew
        if not self._load.is_idle:
            self._output.put(self._load.status())

    def _open(self, records: bool) -> LiveSource | RecordingSource:
        settings = self._settings
        live = LiveSource(
            1.0,
            settings.procfs,
            settings.sysfs,
            settings.tier,
            [LoadCollector(self._control)],
            clock=self._clock,
            settings=load_reading_settings(),
        )
        if not records:
            return live
        folder = state_folder() / "fleet"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            writer = SessionWriter(folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.luns")
        except (LunscopeError, OSError) as error:
            self._output.put(encode("log", text=f"records nothing: {folder}: {_words(error)}"))
            return live
        self._recording = RecordingSource(live, writer, live.counters_now())
        return self._recording

    def _lost(self, reason: str) -> None:
        """End everything: first what may write, then the rest."""
        self._stopped.set()
        outstanding = self._control.stop(verify=False)
        self._load.report()
        if not self._is_dismissed and reason:
            self._note(reason, len(outstanding))
        self._flag.set()
        self._close()
        self._output.finish(_OUTPUT_PATIENCE_S)
        self._code = 0 if self._is_dismissed else LEASE_LOST_EXIT

    def _note(self, reason: str, outstanding: int) -> None:
        left = f"; {outstanding} I/Os are still outstanding" if outstanding else ""
        line = f"lease ended, load stopped: {reason}{left}"
        if self._recording is not None:
            self._recording.add_event(Event.now(EventKind.LOAD, line))
            line = f"{line}; recording kept: {self._recording.path}"
        self._output.put(encode("log", text=line))
        self._log(line)

    def _close(self) -> None:
        if self._sampling is not None:
            self._sampling.join(_OUTPUT_PATIENCE_S)
        recording = self._recording
        if recording is None:
            return
        try:
            recording.close()
            if self._is_dismissed and not recording.trouble:
                Path(recording.path).unlink(missing_ok=True)
        except LunscopeError as error:
            self._log(str(error))


def _words(error: Exception) -> str:
    return words_of(error) if isinstance(error, LunscopeError | OSError) else f"{type(error).__name__}: {error}"


_MOST_WAITING = 256
"""Frames buffered while the controller reads none; further ones are left out."""


class AgentOutput:
    """Writes lines to a descriptor in order, in a thread: a controller that reads no more must not hold up the load."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._write_all, name="lunscope-output", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> bool:
        """Send a line; whether it was taken. Never blocks."""
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            return False
        return True

    def finish(self, patience_s: float) -> None:
        """Wait for this time for what is waiting."""
        if self.put_end():
            self._thread.join(patience_s)

    def put_end(self) -> bool:
        """End the thread after what is waiting."""
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return False
        return True

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError:  # the controller has gone; the lease ends the agent
                return


class LineInput:
    """Cuts what arrives into lines without their ends."""

    def __init__(self, most_bytes: int = MAX_LINE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add what arrived; yields the lines that are complete.

        Raises:
            FrameError: a line is longer than allowed.
        """
        self._rest += data
        while (end := self._rest.find(b"\n")) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            yield line.removesuffix(b"\r")
        if len(self._rest) > self._most_bytes:
            raise FrameError(f"a line of more than {self._most_bytes:,} bytes")
