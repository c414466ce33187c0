"""The other load: a process of its own, in its control group before it does any I/O.

io is no threaded controller (cgroup-v2.rst), so that threads of one process cannot have different limits.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import engine
from engine.errors import LunscopeError
from engine.helper_process import how_ended
from engine.isolation.victim import READ_IOS
from engine.job.file import dump_job, parse_job
from engine.job.spec import JobSpec, Permissions
from engine.running.control import LoadControl
from engine.strict_json import load_json
from engine.syscalls import die_with_parent
from engine.text import safe_text, short_text

_START = "import sys; sys.path.insert(0, sys.argv.pop()); from engine.isolation.aggressor import main; sys.exit(main())"
_COUNT = b"count\n"
_POLL_S = 0.05
_BEGIN_S = 120.0
"""How long the process may take to its first I/O."""
_END_S = 60.0
"""How long it may take to answer and to end; I/Os that a limit holds complete first."""


class Aggressor:
    """One load that only reads, from its start to its end; the kernel ends it with the thread that started it."""

    def __init__(self, job: JobSpec, group: Path) -> None:
        # A file, not a pipe: nobody reads it while the load runs. `_close` closes it.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        package = str(Path(engine.__file__).parent.parent)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(os.getpid()), str(group / "cgroup.procs"), package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._answer = select.poll()
        self._answer.register(self._output, select.POLLIN)
        self._send(json.dumps(dump_job(job)).encode() + b"\n")

    def wait_begun(self, rest: Callable[[float], None]) -> None:
        """Wait until the first of its I/Os has completed; `rest` lets time pass, and raises where that is to end.

        Raises:
            LunscopeError: it ended, or did not begin.
        """
        until_s = time.monotonic() + _BEGIN_S
        while not self._answer.poll(0):
            if time.monotonic() > until_s:
                raise LunscopeError(f"no I/O of the aggressor completed in {_BEGIN_S:g} s: use a higher --cap")
            rest(_POLL_S)
        self._read_line()

    def check(self) -> None:
        """Raise LunscopeError if it has ended by itself."""
        if self._process.poll() is not None:
            self._fail()

    def ios(self) -> int:
        """Count its completed I/Os.

        Raises:
            LunscopeError: it ended, or does not answer.
        """
        self._send(_COUNT)
        if not self._answer.poll(_END_S * 1000):
            raise LunscopeError(f"the aggressor does not answer in {_END_S:g} s")
        return int(self._read_line())

    def end(self) -> None:
        """Stop it and wait for that.

        Raises:
            LunscopeError: it does not end.
        """
        self._input.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            fix = "use a higher --cap, or a lower queue depth"
            raise LunscopeError(f"the aggressor does not end in {_END_S:g} s, as its cap holds I/Os: {fix}") from None
        self._close()

    def abandon(self) -> None:
        """Kill it without waiting: I/Os that a cap holds complete once that is gone, and the group after them."""
        self._process.kill()
        self._close()

    def _close(self) -> None:
        for stream in (self._input, self._output, self._errors):
            stream.close()

    def _send(self, line: bytes) -> None:
        try:
            self._input.write(line)
            self._input.flush()
        except BrokenPipeError:
            self._fail()

    def _read_line(self) -> bytes:
        line = self._output.readline()
        if not line:
            self._process.wait()
            self._fail()
        return line

    def _fail(self) -> NoReturn:
        self._errors.seek(0)
        words = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        why = f": {safe_text(short_text(words[-1], 300))}" if words else ""
        raise LunscopeError(f"the aggressor {how_ended(self._process.wait())}{why}")


def main() -> int:
    """Enter the group and drive the job of the first line of stdin until its end; answer each further line."""
    parent, group = sys.argv[1:]
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Not a text file: the kernel takes the number in one write(2).
    descriptor = os.open(group, os.O_WRONLY)
    os.write(descriptor, str(os.getpid()).encode())
    os.close(descriptor)
    control = LoadControl()
    try:
        job = parse_job(load_json(sys.stdin.readline()))
        control.arm(job, Permissions())
        control.start()
        _answer(control)
    except LunscopeError as error:
        print(error, file=sys.stderr)  # noqa: T201 (the parent reads it)
        return 1
    finally:
        control.stop()
    return 0


def _answer(control: LoadControl) -> None:
    while not _completed(control):
        time.sleep(_POLL_S)
    os.write(1, b"begun\n")
    for _ in sys.stdin:
        os.write(1, f"{_completed(control)}\n".encode())


def _completed(control: LoadControl) -> int:
    counters = control.peek()
    if counters is None or control.wait(0):
        raise LunscopeError(control.status.message or "its time was over")
    return int(counters[:, READ_IOS].sum())
