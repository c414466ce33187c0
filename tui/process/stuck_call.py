"""Names the file that lunscope itself waits for: a filesystem that does not answer keeps a call without end.

Targets of loads are named by the load (engine/backend/outstanding.py). Everything else, a job, a recording, the
settings, is opened by the main thread, and any of it may be on a network filesystem. The kernel says in which call the
thread is.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from engine.text import safe_text

_BETWEEN_LOOKS_S = 2.0
_MOST_PATH_BYTES = 4096
_ARGUMENTS = 6

_OF_PATHS = {
    "x86_64": {
        "open": ((2, 0), (257, 1), (437, 1)),
        "stat": ((4, 0), (6, 0), (262, 1), (332, 1), (137, 0), (21, 0), (269, 1), (439, 1)),
        "readlink": ((89, 0), (267, 1)),
        "mkdir": ((83, 0), (258, 1)),
        "unlink": ((87, 0), (263, 1)),
        "rename": ((82, 0), (264, 1), (316, 1)),
    },
    "aarch64": {
        "open": ((56, 1), (437, 1)),
        "stat": ((79, 1), (291, 1), (43, 0), (48, 1), (439, 1)),
        "readlink": ((78, 1),),
        "mkdir": ((34, 1),),
        "unlink": ((35, 1),),
        "rename": ((38, 1), (276, 1)),
    },
}
"""Numbers of system calls with a path (asm/unistd.h), and which of their arguments it is."""
_OF_DESCRIPTORS = {
    "x86_64": {"read": (0, 17), "write": (1, 18), "fsync": (74, 75), "truncate": (77,)},
    "aarch64": {"read": (63, 67), "write": (64, 68), "fsync": (82, 83), "truncate": (46,)},
}
"""Calls whose first argument is a descriptor."""
_PATHS = {
    (machine, number): (what, index)
    for machine, calls in _OF_PATHS.items()
    for what, numbers in calls.items()
    for number, index in numbers
}
_DESCRIPTORS = {
    (machine, number): what
    for machine, calls in _OF_DESCRIPTORS.items()
    for what, numbers in calls.items()
    for number in numbers
}
_TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
"""Devices that may be silent as long as they want."""


class ThreadMoment(Struct, frozen=True):
    """What a thread does at one moment; two are equal if it has not run in between."""

    call: str
    """The system call with its arguments, as numbers (proc_pid_syscall(5))."""
    switches: tuple[str, ...]
    """How often it was switched (`ctxt_switches` in proc_pid_status(5))."""


def moment_of(thread: int) -> ThreadMoment:
    """Look at a thread of this process.

    Raises:
        OSError: this kernel does not say.
    """
    folder = Path(f"/proc/self/task/{thread}")
    lines = (folder / "status").read_text(errors="replace").splitlines()
    return ThreadMoment((folder / "syscall").read_text(), tuple(line for line in lines if "ctxt_switches" in line))


def file_words(call: str, machine: str = os.uname().machine) -> str | None:
    """Say which file a call is for, as in "open of /data/x"; None if it is for none."""
    fields = call.split()
    if len(fields) <= _ARGUMENTS or not fields[0].isdigit():
        return None
    number, arguments = int(fields[0]), [int(field, 16) for field in fields[1:]]
    if named := _PATHS.get((machine, number)):
        what, index = named
        return f"{what} of {safe_text(_path_at(arguments[index]))}"
    if what := _DESCRIPTORS.get((machine, number), ""):
        path = _path_of(arguments[0])
        return f"{what} of {safe_text(path)}" if path.startswith("/") and not path.startswith(_TERMINALS) else None
    return None


def _path_at(address: int) -> str:
    """Read a path in our own memory; through a file, as the memory may be free by now."""
    with open("/proc/self/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - as in kernel_files
        rest_of_page = _MOST_PATH_BYTES - address % _MOST_PATH_BYTES
        text = os.pread(memory.fileno(), rest_of_page, address)
        if b"\0" not in text:
            text += os.pread(memory.fileno(), _MOST_PATH_BYTES, address + rest_of_page)
    return os.fsdecode(text.partition(b"\0")[0])


def _path_of(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - as in kernel_files


class Watch:
    """Says on stderr which file the main thread waits for; to be stopped before the process forks."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lunscope-stuck", daemon=True)
        self._main = threading.get_native_id()
        # Where no thread can be started, others say so.
        self._is_started = False
        with suppress(RuntimeError):
            self._thread.start()
            self._is_started = True

    def stop(self) -> None:
        """End its thread, and wait for that."""
        self._stopped.set()
        if self._is_started:
            self._thread.join()

    def _watch(self) -> None:
        # Signals are for the main thread, which may wait for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        _watch(self._main, self._stopped)


def _watch(thread: int, stopped: threading.Event) -> None:
    before, since_s, next_s = None, 0.0, 0.0
    while not stopped.wait(_BETWEEN_LOOKS_S):
        try:
            now = moment_of(thread)
        except OSError:
            return
        now_s = time.monotonic()
        if now != before:
            before, since_s, next_s = now, now_s, now_s
            continue
        if now_s < next_s:
            continue
        with suppress(OSError):
            if words := file_words(now.call):
                _complain(f"lunscope: waiting for {words}, for {now_s - since_s:.0f} s or more")
        next_s = now_s + 2 * (now_s - since_s)


def _complain(line: str) -> None:
    """Write a line to stderr, unless that is the terminal of a screen."""
    try:
        is_of_screen = not termios.tcgetattr(2)[3] & termios.ICANON
    except termios.error:
        is_of_screen = False
    if not is_of_screen:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
