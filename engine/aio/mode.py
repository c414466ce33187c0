"""How data get past the page cache, turned on descriptors that stay open."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress

from engine.aio.limits import AioTarget
from engine.job.spec import Mode

WRITE_FLAGS = {Mode.DIRECT: 0, Mode.BUFFERED: 0, Mode.SYNC: os.RWF_SYNC, Mode.DSYNC: os.RWF_DSYNC}
"""Flags of every write (pwritev2(2)), as O_SYNC cannot be turned on an open descriptor (fcntl(2))."""


class OpenFiles:
    """The descriptors of a load's targets, and direct I/O turned on and off on them."""

    def __init__(self, fds: Sequence[int], targets: Sequence[AioTarget]) -> None:
        """Find out which descriptors take direct I/O; nothing may be outstanding."""
        self.fds = fds
        self._targets = targets
        self._refusals = [_direct_refusal(fd) for fd in fds]

    def check_direct(self) -> None:
        """Raise if a target takes no direct I/O.

        Raises:
            OSError: names the file that refuses.
        """
        for target, errno in zip(self._targets, self._refusals, strict=True):
            if errno is not None:
                text = f"{target.name}: direct I/O: {os.strerror(errno)}: this file takes no live change of mode"
                raise OSError(errno, text)

    def turn(self, *, direct: bool) -> None:
        """Turn direct I/O on or off for all targets; nothing may be outstanding."""
        for fd in self.fds:
            _set_direct(fd, direct=direct)

    def write_back(self, waiting: Callable[[int], AbstractContextManager[None]]) -> Iterator[tuple[int, int]]:
        """Put dirty pages onto the medium and out of memory, so that direct I/O meets none; yields target and errno.

        `waiting` is entered with the number of a target while that is written back.
        """
        for position, (fd, target) in enumerate(zip(self.fds, self._targets, strict=True)):
            if not target.writable:
                continue
            try:
                with waiting(position):
                    os.fdatasync(fd)
            except OSError as error:
                yield position, error.errno or 0
            # Advice: pages that stay are invalidated by the writes that meet them.
            with suppress(OSError):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def _direct_refusal(fd: int) -> int | None:
    """Why a descriptor takes no direct I/O, found by setting and clearing the flag."""
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT:
        return None
    try:
        _set_direct(fd, direct=True)
    except OSError as error:
        return error.errno
    _set_direct(fd, direct=False)
    return None


def _set_direct(fd: int, *, direct: bool) -> None:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_DIRECT if direct else flags & ~os.O_DIRECT)
