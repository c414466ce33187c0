"""How data get past the page cache, turned on descriptors that stay open."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence

from engine.job.spec import Mode

WRITE_FLAGS = {Mode.DIRECT: 0, Mode.BUFFERED: 0, Mode.SYNC: os.RWF_SYNC, Mode.DSYNC: os.RWF_DSYNC}
"""Flags of every write (pwritev2(2)), as O_SYNC cannot be turned on an open descriptor (fcntl(2))."""


def turn_mode(fds: Sequence[int], names: Sequence[str], *, direct: bool) -> None:
    """Turn direct I/O on or off for all descriptors, or for none if one refuses.

    Raises:
        OSError: names the file that refuses.
    """
    for position, (fd, name) in enumerate(zip(fds, names, strict=True)):
        try:
            _set_direct(fd, direct=direct)
        except OSError as error:
            for other in fds[:position]:
                _set_direct(other, direct=not direct)
            text = f"{name}: direct I/O: {os.strerror(error.errno or 0)}: this file takes no live change of mode"
            raise OSError(error.errno, text) from error


def _set_direct(fd: int, *, direct: bool) -> None:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_DIRECT if direct else flags & ~os.O_DIRECT)
