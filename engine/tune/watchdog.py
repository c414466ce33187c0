"""The process that restores a change when its lunscope ends, however that ends, or when its time is over.

It is started before the first value is written, as a session of its own without a terminal, and waits for the end of
a pipe that only its lunscope can write to: the kernel closes it after kill -9, too.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from enum import Enum, auto
from pathlib import Path

from engine.errors import LunscopeError
from engine.helper_process import READY
from engine.text import decimal_number
from engine.tune.apply import restore
from engine.tune.journal import Journal
from engine.tune.record import ChangeRecord, State
from engine.tune.tree import KernelTree

KEEP = b"keep\n"
TOLD_TO_END = "its watchdog was told to end by SIGTERM"

_LONGEST_WAIT_MS = 24 * 3600 * 1000
"""poll(2) takes less than 2^31 ms, 24.8 days; a longer time is waited for in parts."""


def restore_record(tree: KernelTree, journal: Journal, record: ChangeRecord, trouble: str = "") -> ChangeRecord:
    """Restore a change that is not to be kept and write its record, with what was wrong if anything was.

    One that was never completed may have left any value, so that its values are not compared.
    """
    unfinished = record.state is State.CHANGING
    restored = restore(tree, record.plan, force=unfinished)
    ended = record.end(State.FAILED if unfinished else State.REVERTED, restored.left, trouble)
    if journal.folder.is_dir():
        journal.write(ended)
    return ended


class Ending(Enum):
    """What ends the wait for the end of a change."""

    OVER = auto()
    """The time of the change is over, or its lunscope has ended."""
    TOLD = auto()
    """SIGTERM."""
    KEPT = auto()
    """The change stays."""


class _Pipe:
    """Waits for the deadline, the end of the pipe, or SIGTERM."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._deadline_s: float | None = None
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._wake = wake_read
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._poll.register(wake_read, select.POLLIN)

    def wait(self) -> Ending:
        """Return what ends the change."""
        while True:
            left_s = math.inf if self._deadline_s is None else self._deadline_s - time.monotonic()
            if left_s <= 0:
                return Ending.OVER
            ready = dict(self._poll.poll(min(left_s * 1000 + 1, _LONGEST_WAIT_MS)))
            if self._wake in ready:
                return Ending.TOLD
            if self._descriptor in ready:
                message = os.read(self._descriptor, 64)
                if message in {b"", KEEP}:
                    return Ending.KEPT if message else Ending.OVER
                self._set_deadline(message)

    def _set_deadline(self, message: bytes) -> None:
        seconds = decimal_number(message.decode("ascii", "replace").strip())
        if seconds is not None:
            self._deadline_s = time.monotonic() + seconds


def main() -> int:
    """Run with the folder of the journal, the number of the change, and the pipe as stdin."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    journal, change = Journal(Path(sys.argv[1])), int(sys.argv[2])
    pipe = _Pipe(0)
    record = journal.read(change)
    with KernelTree(Path(record.root)) as tree:
        os.write(1, READY)
        ending = pipe.wait()
        if ending is Ending.KEPT:
            return 0
        try:
            record = journal.read(change)
        except LunscopeError as error:
            # Somebody has removed the folder: the record from before the change has all former values, too.
            restore(tree, record.plan, force=True)
            print(error, file=sys.stderr)  # noqa: T201 (its stderr is read by its lunscope)
            return 1
        if record.state in {State.CHANGING, State.HELD}:
            restore_record(tree, journal, record, TOLD_TO_END if ending is Ending.TOLD else "")
    return 0
