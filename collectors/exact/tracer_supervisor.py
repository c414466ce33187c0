"""Programs of exact time, of this process or of the probe helper where it lacks the rights; attached in a thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from collectors.exact.probe.client import connect, connect_nfs, connect_throttle, helper_path
from collectors.exact.tracer import Tracer
from collectors.sampling.attached import FIRST_PAUSE_S, AttachedProgram
from collectors.sampling.programs import NFS_PLACES, PLACES, FreezeProgram, NfsProgram, ThrottleProgram
from engine import _native
from engine.errors import LunscopeError, words_of
from engine.events import Event, EventKind

_HELPER = "or have root start `lunscope probe`"


def refusal_of(procfs: str, sysfs: str) -> str:
    """Return why exact time is unavailable, and the fix; empty if it is available, directly or by the helper."""
    return "" if helper_path().is_socket() else full_refusal(procfs, sysfs)


def full_refusal(procfs: str, sysfs: str) -> str:
    """Return why this process cannot attach, and the fix: the probe helper where only rights are missing."""
    refusal = _native.tracer_refusal(procfs, sysfs)
    helps = refusal and not _native.tracer_refusal(procfs, sysfs, rights=False)
    return f"{refusal}; {_HELPER}" if helps else refusal


def open_tracer(procfs: str, sysfs: str) -> Tracer:
    """Attach, which takes 0.1 s, or connect to the probe helper if this process has no right to attach.

    Raises:
        LunscopeError: this host or this process's rights do not allow it, and no helper is available.
        OSError: the kernel refuses a step; the text names it.
    """
    refusal = _native.tracer_refusal(procfs, sysfs)
    if not refusal:
        return _native.BlockTracer(sysfs)
    path = helper_path()
    if not path.is_socket():
        raise LunscopeError(full_refusal(procfs, sysfs))
    try:
        return connect(path)
    except OSError as error:
        raise LunscopeError(f"{refusal}; the probe helper at {path} does not answer: {error}") from error


class TracerSupervisor(AttachedProgram[Tracer]):
    """Says as events that there is a tracer, or why there is none."""

    def __init__(self, open_tracer: Callable[[], Tracer], first_pause_s: float = FIRST_PAUSE_S) -> None:
        super().__init__("tracer", open_tracer, first_pause_s)
        self._events: list[Event] = []
        self._reported = ""

    def take_events(self) -> tuple[Event, ...]:
        """Return and clear the events since the last call."""
        with self._changed:
            events, self._events = tuple(self._events), []
        return events

    def say(self, text: str) -> None:
        """Report an event."""
        with self._changed:
            self._report(text)

    def _begin(self, took_s: float) -> None:
        self.refusal = self._reported = ""
        self._report(f"exact time: block tracepoints are watched, ready after {1e3 * took_s:.0f} ms")

    def _refuse(self, reason: str) -> None:
        """Report a reason once, however often it repeats."""
        self.refusal = reason
        if reason != self._reported:
            self._reported = reason
            self._report(f"no exact time: {reason}")

    def _report(self, text: str) -> None:
        self._events.append(Event.now(EventKind.MONITOR, text))


class _Program(Protocol):
    def read(self) -> object: ...

    def close(self) -> None: ...


Program = TypeVar("Program", bound=_Program)


class ProgramSource(Struct, Generic[Program], frozen=True):
    """Where one kind of program comes from."""

    attach: Callable[..., Program]
    """Loads it into the kernel, which takes 0.1 s: with the root of sysfs, and `places`."""
    places: int
    """How many kinds of I/O it tells apart."""
    connect: Callable[[Path], Program]
    """Connects to the helper that runs it."""

    def own(self, sysfs: str) -> Program:
        """Load and attach it in this process.

        Raises:
            OSError: the kernel refuses.
        """
        return self.attach(sysfs, places=self.places)

    def open(self, procfs: str, sysfs: str) -> Program:
        """Load and attach, or connect to the probe helper if this process has no right to attach.

        Raises:
            LunscopeError: this host or this process's rights do not allow it, and no helper is available.
            OSError: the kernel refuses, or the helper.
        """
        if not _native.tracer_refusal(procfs, sysfs):
            return self.own(sysfs)
        return self._helper(procfs, sysfs)

    def refusal(self, procfs: str, sysfs: str) -> str:
        """Return why it cannot run here, and the fix; empty if it can. Attaches and detaches."""
        try:
            if _native.tracer_refusal(procfs, sysfs):
                helper = self._helper(procfs, sysfs)
                try:
                    helper.read()
                finally:
                    helper.close()
            else:
                self.attach(sysfs, places=1).close()
        except (OSError, LunscopeError) as error:
            return words_of(error)
        return ""

    def _helper(self, procfs: str, sysfs: str) -> Program:
        path = helper_path()
        if not path.is_socket():
            raise LunscopeError(full_refusal(procfs, sysfs))
        return self.connect(path)


THROTTLE: ProgramSource[ThrottleProgram] = ProgramSource(_native.ThrottleTracer, PLACES, connect_throttle)
"""Times waits for the limits of control groups."""
NFS_CALLS: ProgramSource[NfsProgram] = ProgramSource(_native.NfsTracer, NFS_PLACES, connect_nfs)
"""Times the calls of NFS clients."""


def open_freezes(procfs: str, sysfs: str) -> FreezeProgram:
    """Attach the programs that note when filesystems are frozen and thawed; the probe helper has none.

    Raises:
        LunscopeError: this host or this process's rights do not allow it.
        OSError: the kernel refuses.
    """
    if refusal := _native.tracer_refusal(procfs, sysfs):
        raise LunscopeError(refusal)
    return _native.FreezeTracer(sysfs)
