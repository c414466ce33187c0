"""Lunscope as processes that are forked from one that has loaded Python, the common modules and those of the verbs.

What such a process does is what `python -m tui` does: its descriptors and limits are set before the streams are made
and lunscope begins. Only what Python does before that, and imports under a low limit of descriptors, is not in it.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import pkgutil
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
_HIGHEST = 1024
_MODES = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
_NOTHING = "/dev/null"


@dataclass(frozen=True)
class Around:
    """What a process begins with."""

    closed: tuple[int, ...] = ()
    """Standard descriptors that are not open."""
    files: Mapping[int, str] = field(default_factory=dict)
    """What standard descriptors are, instead of a pipe to the test."""
    most_descriptors: int = 0

    def set_limit(self) -> None:
        """Close and limit descriptors of this process."""
        for descriptor in self.closed:
            os.close(descriptor)
        if self.most_descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.most_descriptors, self.most_descriptors))


class Forker:
    """The process that forks."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=ROOT)
        self._lines = self._channel.makefile("r")

    def start(self, words: Sequence[str], environment: Mapping[str, str], around: Around, folder: Path) -> int:
        """Begin a process, and return its id; what it prints goes to files `out` and `err` of the folder."""
        files = {0: _NOTHING, 1: str(folder / "out"), 2: str(folder / "err"), **around.files}
        request = {
            "words": list(words),
            "environment": dict(environment),
            "files": [files[descriptor] for descriptor in range(3)],
            "closed": around.closed,
            "most": around.most_descriptors,
        }
        self._channel.sendall((json.dumps(request) + "\n").encode())
        return int(self._lines.readline())

    def wait(self, timeout_s: float) -> int:
        """Wait for the process that was started last, and return its exit code as subprocess does."""
        self._channel.settimeout(timeout_s)
        line = self._lines.readline()
        return os.waitstatus_to_exitcode(int(line))

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run lunscope to its end, which a time limit makes it come to."""
        with tempfile.TemporaryDirectory(prefix="lunscope-test-") as name:
            folder = Path(name)
            process = self.start(words, environment, Around(), folder)
            try:
                code = self.wait(timeout_s)
            except TimeoutError as error:
                os.kill(process, signal.SIGKILL)
                self.wait(timeout_s)
                raise AssertionError(f"{words} did not end: {(folder / 'err').read_text()}") from error
            out, err = ((folder / stream).read_text() for stream in ("out", "err"))
        return subprocess.CompletedProcess(words, code, out, err)

    def close(self) -> None:
        """End the process that forks."""
        self._lines.close()
        self._channel.close()
        self._process.wait()


@functools.cache
def _shared() -> Forker:
    forker = Forker()
    atexit.register(forker.close)
    return forker


def lunscope(
    *words: str | Path, env: Mapping[str, str] | None = None, timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run `lunscope WORDS` in the folder of the sources, as subprocess.run does: a fork costs a tenth of a start."""
    return _shared().run([*map(str, words)], os.environ if env is None else env, timeout_s)


def _serve(channel: int) -> None:
    """Fork as long as somebody asks; returns in the processes that were forked."""
    while request := _line(channel):
        process = os.fork()
        if process == 0:
            _become(json.loads(request))
            return
        os.write(channel, f"{process}\n".encode())
        os.write(channel, f"{os.waitpid(process, 0)[1]}\n".encode())
    os._exit(0)


def _line(channel: int) -> bytes:
    """The next request, nothing at the end."""
    read = b""
    while not read.endswith(b"\n") and (more := os.read(channel, 1 << 16)):
        read += more
    return read


def _become(request: dict[str, object]) -> None:
    """Make this process what a shell would have started."""
    words, environment, files = request["words"], request["environment"], request["files"]
    closed, most = request["closed"], request["most"]
    assert isinstance(words, list)
    assert isinstance(environment, dict)
    assert isinstance(files, list)
    assert isinstance(closed, list)
    assert isinstance(most, int)
    os.closerange(0, _HIGHEST)
    for path, mode in zip(files, _MODES, strict=True):
        os.open(path, mode | (os.O_CREAT if mode == os.O_WRONLY else 0), 0o600)
    Around(tuple(closed), {}, most).set_limit()
    os.environ.clear()
    os.environ.update(environment)
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        stream = _stream(descriptor)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = ["lunscope", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _stream(descriptor: int) -> object:
    """A standard stream as Python makes it: None where the descriptor is closed (Python/pylifecycle.c)."""
    try:
        os.fstat(descriptor)
    except OSError:
        return None
    mode, errors = ("r", "strict") if descriptor == 0 else ("w", "backslashreplace" if descriptor == 2 else "strict")
    return open(descriptor, mode, encoding="utf-8", errors=errors, closefd=False)


if __name__ == "__main__":
    import collectors.sources.live  # noqa: F401 (most verbs need it)
    import tui.commands
    import tui.main
    from tui.cli import run_cli  # noqa: F401 (loads the command line)
    from tui.garbage import loading

    for module in pkgutil.iter_modules(tui.commands.__path__, "tui.commands."):
        importlib.import_module(module.name)

    with loading():
        _serve(int(sys.argv[1]))
    tui.main.main()
