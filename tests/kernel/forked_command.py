"""Lunscope as processes that are forked from one that has loaded Python, the common modules and those of the verbs.

What such a process does is what `python -m tui` does: its descriptors and limits are set before the streams are made
and lunscope begins. Only what Python does before that, and imports under a low limit of descriptors, is not in it.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.terminal import Terminal

ROOT = Path(__file__).parents[2]
_HIGHEST = 1024
_LARGEST = 1 << 18
"""Bytes of a request, most of which is the environment."""
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


_AS_LUNSCOPE_SETS_IT = {"OPENBLAS_NUM_THREADS": "1", "TEXTUAL_ANIMATIONS": "none", "TEXTUAL_SMOOTH_SCROLL": "0"}
"""Before it imports what reads these."""


class Forker:
    """The process that forks."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                env={**os.environ, **_AS_LUNSCOPE_SETS_IT},
            )

    def begin(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        *,
        around: Around | None = None,
        folder: str = str(ROOT),
        session: bool = False,
    ) -> int:
        """Begin a process with these descriptors as standard streams, and return its id.

        The standard input of one in a session of its own is its terminal, if it is one.
        """
        around = around or Around()
        request = {
            "words": list(words),
            "environment": dict(environment),
            "closed": around.closed,
            "most": around.most_descriptors,
            "folder": folder,
            "session": session,
        }
        socket.send_fds(self._channel, [json.dumps(request).encode()], streams)
        return int(self._channel.recv(_LARGEST))

    def start(self, words: Sequence[str], environment: Mapping[str, str], around: Around, folder: Path) -> int:
        """Begin a process, and return its id; what it prints goes to files `out` and `err` of the folder."""
        files = {0: _NOTHING, 1: str(folder / "out"), 2: str(folder / "err"), **around.files}
        writing = os.O_WRONLY | os.O_CREAT
        streams = [os.open(files[number], writing if number else os.O_RDONLY, 0o600) for number in range(3)]
        try:
            return self.begin(words, environment, streams, around=around)
        finally:
            for stream in streams:
                os.close(stream)

    def wait(self, process: int, timeout_s: float | None) -> int:
        """Wait for the end of a process, and return its exit code as subprocess does.

        Raises:
            TimeoutError: it still runs.
        """
        descriptor = os.pidfd_open(process)
        try:
            if not select.select([descriptor], [], [], timeout_s)[0]:
                raise TimeoutError(f"process {process} still runs")
        finally:
            os.close(descriptor)
        self._channel.sendall(json.dumps({"ended": process}).encode())
        return os.waitstatus_to_exitcode(int(self._channel.recv(_LARGEST)))

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run lunscope to its end, which a time limit makes it come to."""
        with tempfile.TemporaryDirectory(prefix="lunscope-test-") as name:
            folder = Path(name)
            process = self.start(words, environment, Around(), folder)
            try:
                code = self.wait(process, timeout_s)
            except TimeoutError as error:
                os.kill(process, signal.SIGKILL)
                self.wait(process, timeout_s)
                raise AssertionError(f"{words} did not end: {(folder / 'err').read_text()}") from error
            out, err = ((folder / stream).read_text() for stream in ("out", "err"))
        return subprocess.CompletedProcess(words, code, out, err)

    def close(self) -> None:
        """End the process that forks."""
        self._channel.close()
        self._process.wait()


@functools.cache
def shared() -> Forker:
    """Return the process that forks for all tests of this one."""
    forker = Forker()
    atexit.register(forker.close)
    return forker


def lunscope(
    *words: str | Path, env: Mapping[str, str] | None = None, timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run `lunscope WORDS` in the folder of the sources, as subprocess.run does: a fork costs a tenth of a start."""
    return shared().run([*map(str, words)], os.environ if env is None else env, timeout_s)


class Forked(subprocess.Popen[str]):
    """`lunscope WORDS` as subprocess.Popen starts it, in the folder of the sources and with texts.

    It differs in what starts a process and waits for it (Lib/subprocess.py), which is a child of the one that forks.
    """

    def __init__(self, *words: str | Path, **others: Any) -> None:
        super().__init__([*map(str, words)], **{"text": True, "cwd": ROOT, **others})

    def _execute_child(self, args: list[str], *given: Any) -> None:
        preexec, passed, folder, environment, shell = given[1], given[3], given[4], given[5], given[8]
        assert [preexec, passed, shell] == [None, (), False], "not with a process that is forked"
        ends, session = given[9:15], given[20]
        streams = [
            number if end == -1 else end for number, end in zip(range(3), (ends[0], ends[3], ends[5]), strict=True)
        ]
        try:
            variables = os.environ if environment is None else environment
            self.pid = shared().begin(args, variables, streams, folder=str(folder), session=session)
        finally:
            getattr(self, "_close_pipe_fds")(*ends)  # noqa: B009 (no public method, so unknown to mypy)

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if self.returncode is None:
            with suppress(TimeoutError):
                self.returncode = shared().wait(self.pid, 0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            try:
                self.returncode = shared().wait(self.pid, timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
        return self.returncode


class ForkedTerminal(Terminal):
    """`lunscope WORDS` on a terminal, without the second that a screen takes to be imported."""

    def _start(self, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, int]:
        ours, theirs = os.openpty()
        try:
            return shared().begin(command, environment, [theirs] * 3, folder=str(Path.cwd()), session=True), ours
        finally:
            os.close(theirs)

    def _has_ended(self) -> bool:
        descriptor = os.pidfd_open(self.pid)
        try:
            return bool(select.select([descriptor], [], [], 0)[0])
        finally:
            os.close(descriptor)

    def _exit_code(self) -> int:
        return shared().wait(self.pid, None)


def _serve(channel: int) -> None:
    """Fork as long as somebody asks; returns in the processes that were forked."""
    asked = socket.socket(fileno=channel)
    while True:
        text, streams, _, _ = socket.recv_fds(asked, _LARGEST, 3)
        if not text:
            os._exit(0)
        request = json.loads(text)
        if "ended" in request:
            asked.sendall(str(os.waitpid(request["ended"], 0)[1]).encode())
            continue
        process = os.fork()
        if process == 0:
            asked.detach()
            _become(request, streams)
            return
        for stream in streams:
            os.close(stream)
        asked.sendall(str(process).encode())


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Make this process what a shell would have started."""
    # Those that were sent are above the standard ones, which are open here.
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, _HIGHEST)
    if request["session"]:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup of the tests is not meant for it
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["folder"])
    Around(tuple(request["closed"]), {}, request["most"]).set_limit()
    os.environ.clear()
    os.environ.update(request["environment"])
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        opened = _stream(descriptor)
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)
    sys.argv = ["lunscope", *request["words"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _stream(descriptor: int) -> object:
    """A standard stream as Python makes it: None where the descriptor is closed (Python/pylifecycle.c)."""
    try:
        os.fstat(descriptor)
    except OSError:
        return None
    mode, errors = ("r", "strict") if descriptor == 0 else ("w", "backslashreplace" if descriptor == 2 else "strict")
    return open(descriptor, mode, encoding="utf-8", errors=errors, closefd=False)


def _keep_what_is_loaded() -> None:
    """Refer to what modules hold for ever: at its end a process would take all of it apart, and so copy its pages."""
    held = [value for module in list(sys.modules.values()) for value in vars(module).values()]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


if __name__ == "__main__":
    import collectors.sources.live  # noqa: F401 (most verbs need it)
    import tui.app.app
    import tui.commands
    import tui.main
    import tui.screens
    from tui.cli import run_cli  # noqa: F401 (loads the command line)
    from tui.process.garbage import loading

    for package in (tui.commands, tui.screens):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)

    _keep_what_is_loaded()
    with loading():
        _serve(int(sys.argv[1]))
    tui.main.main()
