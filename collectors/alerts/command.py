"""The command that alerts run: in a thread of its own, one at a time, and not too often."""

from __future__ import annotations

import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.text import safe_text, short_text

LIMIT_S = 30.0
"""Longest run of a command; then it is killed with its process group."""
MOST_PER_MINUTE = 30
_MOST_WAITING = 16
_MOST_ERROR_BYTES = 4096
_LONGEST_VALUE = 1000


def parse_command(text: str) -> tuple[str, ...]:
    """Split a command into its arguments as a shell does, without running one.

    Raises:
        UsageError: a quote is not closed, or it is empty.
    """
    try:
        arguments = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"command '{safe_text(short_text(text, 80))}': {error}: close the quote") from error
    if not arguments or "\0" in text:
        raise UsageError("the command is empty: give a program, with its arguments if it has any")
    return arguments


def environment_of(event: Event) -> dict[str, str]:
    """Environment variables of an event: LUNSCOPE_ALERT_ and the names of its data in capitals, all safe to print."""
    data = {"text": event.text, "time_ns": event.time_ns, **event.data}
    return {
        f"LUNSCOPE_ALERT_{name.upper()}": "" if value is None else safe_text(str(value))[:_LONGEST_VALUE]
        for name, value in data.items()
    }


class CommandRunner:
    """Runs the command for each event; `offer` never waits, and problems are events of `take_events`."""

    def __init__(self, arguments: Sequence[str], *, limit_s: float = LIMIT_S, most: int = MOST_PER_MINUTE) -> None:
        self._arguments = tuple(arguments)
        self._limit_s, self._most = limit_s, most
        self._queue: queue.Queue[Event | None] = queue.Queue(_MOST_WAITING)
        self._starts: deque[float] = deque(maxlen=most)
        self._lock = threading.Lock()
        self._problems: dict[str, int] = {}
        self._left_out = 0
        self._thread: threading.Thread | None = None

    def offer(self, event: Event) -> None:
        """Run the command for an event, later if another runs; beyond the rate it is left out and reported."""
        now_s = time.monotonic()
        full = len(self._starts) == self._most and now_s - self._starts[0] < 60.0
        try:
            if full:
                raise queue.Full
            self._queue.put_nowait(event)
        except queue.Full:
            self._left_out += 1
            return
        self._starts.append(now_s)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="alert command", daemon=True)
            self._thread.start()

    def take_events(self) -> tuple[Event, ...]:
        """Return what went wrong since the last call, each problem once."""
        with self._lock:
            problems, self._problems = self._problems, {}
        left_out, self._left_out = self._left_out, 0
        texts = [f"{text} ({count} times)" if count > 1 else text for text, count in problems.items()]
        if left_out:
            texts.append(f"alert command not run for {left_out} alerts: at most {self._most} a minute, one at a time")
        return tuple(Event.now(EventKind.MONITOR, text) for text in texts)

    def close(self, patience_s: float = 2.0) -> None:
        """Let waiting commands run for a short time, then give up."""
        if self._thread is None:
            return
        with suppress(queue.Full):
            self._queue.put(None, timeout=patience_s)
            self._thread.join(patience_s)

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            problem = self._call(environment_of(event))
            if problem:
                with self._lock:
                    self._problems[problem] = self._problems.get(problem, 0) + 1

    def _call(self, variables: Mapping[str, str]) -> str:
        """Run it once; returns what went wrong in one line, or nothing."""
        name = safe_text(short_text(self._arguments[0], 80))
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    self._arguments,
                    env={**os.environ, **variables},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                return f"alert command {name}: {reason}: check its path"
            try:
                code = process.wait(self._limit_s)
            except subprocess.TimeoutExpired:
                _kill(process)
                return f"alert command {name}: killed, it ran longer than {self._limit_s:g} s"
            if code == 0:
                return ""
            errors.seek(0)
            words = errors.read(_MOST_ERROR_BYTES).decode("utf-8", "replace").strip().splitlines()
        why = f": {safe_text(short_text(words[-1], 200))}" if words else ""
        return f"alert command {name}: exit {code}{why}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
