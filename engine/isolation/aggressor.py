"""The other load: `lunscope run` as a process of its own, in its control group before it does any I/O.

io is no threaded controller (cgroup-v2.rst), so that threads of one process cannot have different limits.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import engine
from engine.errors import LunscopeError, StoppedError
from engine.isolation.group_keeper import members
from engine.syscalls import die_with_parent
from engine.text import safe_text, short_text

_START = "import sys; sys.path.insert(0, sys.argv[1]); from engine.isolation.aggressor import main; main()"
_LOOK_S = 0.05
_BEGIN_S = 60.0
"""How long the process may take to its first I/O."""
_END_S = 60.0
"""How long it may take to end; I/Os that a limit holds complete first."""


class Aggressor:
    """One load from its start to its end; the kernel ends it with this process, and so does its own runtime."""

    def __init__(self, arguments: Sequence[str], group: Path) -> None:
        package = str(Path(engine.__file__).parent.parent)
        self._group = group
        # Files, not pipes: nobody reads while it runs. `end` closes them.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, package, str(os.getpid()), str(group / "cgroup.procs"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._errors,
            start_new_session=True,
        )

    def wait_begun(self, is_stopped: Callable[[float], bool]) -> None:
        """Wait until it has read.

        Raises:
            StoppedError: the operator stopped it.
            LunscopeError: it ended, or did not begin.
        """
        until_s = time.monotonic() + _BEGIN_S
        while self._read_bytes() == 0:
            self.check()
            if time.monotonic() > until_s:
                raise LunscopeError("the aggressor read nothing from a device: use --mode direct")
            if is_stopped(_LOOK_S):
                raise StoppedError("stopped before the aggressor began")

    def check(self) -> None:
        """Raise LunscopeError if it has ended by itself."""
        if self._process.poll() is not None:
            self._errors.seek(0)
            words = self._errors.read().decode("utf-8", "replace").strip().splitlines() or ["no message"]
            raise LunscopeError(f"the aggressor ended: {safe_text(short_text(words[-1], 300))}")

    def end(self) -> float | None:
        """Stop it and wait for that; returns its reads per second, None where it did not say.

        Raises:
            LunscopeError: it does not end.
        """
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            fix = "use a higher --cap, or a lower queue depth"
            raise LunscopeError(f"the aggressor does not end in {_END_S:g} s, as its cap holds I/Os: {fix}") from None
        self._output.seek(0)
        text = self._output.read()
        self._close()
        return _reads_per_s(text)

    def abandon(self) -> None:
        """Stop it without waiting: I/Os that a cap holds complete once that is gone, and the group after them."""
        self._process.terminate()
        self._close()

    def _close(self) -> None:
        self._output.close()
        self._errors.close()

    def _read_bytes(self) -> int:
        """Bytes that the processes of the group had read from devices (proc(5), /proc/PID/io)."""
        return sum(map(_device_bytes, members(self._group)))


def _device_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("read_bytes:")), 0)


def _reads_per_s(text: bytes) -> float | None:
    try:
        epochs = json.loads(text)["epochs"]
        return float(epochs[-1]["read"]["iops"])
    except (ValueError, LookupError, TypeError):
        return None


def main() -> None:
    """Enter the group and become the load; arguments: package, parent, file of the group, those of the load."""
    package, parent, group, *arguments = sys.argv[1:]
    die_with_parent(int(parent))
    # Ignored signals are inherited, as SIGINT by the background jobs of a shell: this process is ended by one.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Not a text file: the kernel takes the number in one write(2).
    descriptor = os.open(group, os.O_WRONLY)
    os.write(descriptor, str(os.getpid()).encode())
    os.close(descriptor)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    os.execve(sys.executable, [sys.executable, "-m", "tui", *arguments], environment)  # noqa: S606
