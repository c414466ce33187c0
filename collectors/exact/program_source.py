"""Programs beside those on block I/O: run by this process, or by the probe helper where it lacks the rights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from collectors.exact.probe.client import connect_nfs, connect_throttle, helper_path
from collectors.exact.tracer_supervisor import full_refusal
from collectors.sampling.nfs_program import NFS_PLACES, NfsProgram
from collectors.sampling.throttle_program import PLACES, ThrottleProgram
from engine import _native
from engine.errors import LunscopeError, words_of


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
