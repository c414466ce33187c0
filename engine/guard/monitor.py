"""Checks in the background that nothing else begins to use what a running load writes to.

A device is claimed once, but its bytes can be used: by another path to the LUN, another loop device, the file
behind it. Claims are checked every second and whenever something is mounted; the descriptors of all processes, which
take seconds on a large host, are scanned beside it, at a tenth of a core.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.errors import RefusedError, StoppedError
from engine.guard.claim_check import ClaimCheck
from engine.guard.target import OpenTarget
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.kernel_files import Roots
from engine.hostfs.writers import read_writers


class MountChanges:
    """Polls mountinfo, which is ready with an error after every change (proc_pid_mountinfo(5))."""

    def __init__(self, procfs: Path = Path("/proc")) -> None:
        self._mounts = os.open(procfs / "self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._mounts, select.POLLPRI | select.POLLERR)
        self._poll.register(self._wake, select.POLLIN)

    def wait(self, timeout_s: float) -> bool:
        """Wait at most so long; whether mounts have changed since the last call."""
        return any(fd == self._mounts for fd, _ in self._poll.poll(timeout_s * 1e3))

    def wake(self) -> None:
        """End every wait from now on at once; from any thread."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Close the descriptors; no thread may be waiting."""
        os.close(self._mounts)
        os.close(self._wake)


_SHARE = 0.1
"""Share of one core that the checks may take."""
_SLICE_S = 0.01
"""The checks pause after this much processor time: others wait no longer for the interpreter."""


class ScanPace:
    """Keeps the calling thread below a tenth of a core."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._worked_s = time.thread_time()

    def pause(self) -> None:
        """Pause if enough was done since the last pause.

        Raises:
            StoppedError: there is nothing to work for any more.
        """
        used_s = time.thread_time() - self._worked_s
        if used_s >= _SLICE_S:
            if self._stopped.wait(used_s * (1 / _SHARE - 1)):
                raise StoppedError("stopped")
            self._worked_s = time.thread_time()


EVERY_S = 0.75
"""Pause between two checks of claims: with the check itself and the reaction less than a second in all."""
_AFTER_CHANGE_S = 0.05
"""Pause between a change of mounts and the next check, where mounts change all the time."""
_STUCK_S = 2.0
"""A check that takes longer is stuck in the kernel at one device; another thread goes on with the others."""
_MOST_THREADS = 64


class UseMonitor:
    """Runs its threads while targets are written; they find, the owner of the load hears of it in `check`."""

    def __init__(self) -> None:
        self._written: tuple[OpenTarget, ...] = ()
        self._claims = ClaimCheck(())
        self._stopped = threading.Event()
        self._refusal = ""
        self._waits: list[MountChanges] = []
        self._waiting = threading.Lock()
        """Held to wake or close one of them: a number of a closed descriptor may mean something else by then."""
        self._claim_threads = 0
        self._generation = 0
        self._began_s = 0.0
        self._sees_writers = False

    def check(self, written: Sequence[OpenTarget]) -> None:
        """Say what is written now, and hear what was found since.

        Raises:
            RefusedError: as OpenTarget.refuse_new_use, or a device with the same bytes was claimed.
        """
        if self._refusal and written:
            # A new error each time: a stored one would keep the frames of its traceback, and what they hold, alive.
            raise RefusedError(self._refusal)
        if tuple(written) != self._written:
            self._written = tuple(written)
            self._claims = ClaimCheck(self._written)
        if self._stopped.is_set() or not written:
            return
        if time.monotonic() - self._began_s > _STUCK_S and self._claim_threads < _MOST_THREADS:
            self._start_claim_thread()
        if not self._sees_writers:
            self._sees_writers = True
            self._start(self._watch_writers)

    def stop(self) -> None:
        """End the threads; one that is stuck in the kernel ends when it returns."""
        self._stopped.set()
        with self._waiting:
            for changes in self._waits:
                changes.wake()

    def _start(self, watch: Callable[[], None]) -> None:
        threading.Thread(target=self._guarded, args=(watch,), name="lunscope-guard", daemon=True).start()

    def _guarded(self, watch: Callable[[], None]) -> None:
        """Run a watch; its end ends the load, as nothing is written unwatched."""
        try:
            watch()
        except StoppedError:
            return
        except RefusedError as refusal:
            self._refuse(str(refusal))
        except Exception as error:
            self._refuse(f"who uses the targets can no longer be seen ({error}): nothing is written then")

    def _refuse(self, text: str) -> None:
        if not self._stopped.is_set():
            self._refusal = self._refusal or text

    def _start_claim_thread(self) -> None:
        self._generation += 1
        self._claim_threads += 1
        self._began_s = time.monotonic()
        generation = self._generation
        self._start(lambda: self._watch_claims(generation))

    def _watch_claims(self, generation: int) -> None:
        changes = MountChanges()
        with self._waiting:
            self._waits.append(changes)
        try:
            changed = False
            while not self._stopped.is_set() and generation == self._generation:
                self._began_s = began_s = time.monotonic()
                self._claims.run(mounts_changed=changed)
                self._stopped.wait(_AFTER_CHANGE_S if changed else 0.0)
                changed = changes.wait(max(0.0, began_s + EVERY_S - time.monotonic()))
        finally:
            self._claim_threads -= 1
            with self._waiting:
                self._waits.remove(changes)
                changes.close()

    def _watch_writers(self) -> None:
        pace = ScanPace(self._stopped)
        while not self._stopped.is_set():
            if self._written:
                usage = UsageSnapshot(writers=read_writers(Roots(), pace.pause))
                for target in self._written:
                    target.refuse_new_use(usage)
                    pace.pause()
            self._stopped.wait(EVERY_S)
