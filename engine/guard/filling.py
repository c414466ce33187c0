"""Filling what lunscope made: never-written space reads many times too fast."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from engine import _native
from engine.backend.outstanding import Waits
from engine.config import scratch_folder
from engine.errors import LunscopeError, StoppedError
from engine.guard.scratch import free_bytes, no_room
from engine.guard.target import OpenTarget

_CHUNK_BYTES = 8 * 1024 * 1024
_SEED_STEP = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio: seeds of neighbouring targets share no bits by chance."""


def fill_scratch(
    targets: Sequence[OpenTarget],
    seed: int,
    progress: Callable[[float], None],
    stop: threading.Event,
    waits: Waits | None = None,
) -> None:
    """Write incompressible data to every target lunscope made, each with its own.

    Args:
        targets: those that need no filling are passed over.
        seed: the same seed writes the same bytes.
        progress: called with the share done, 0 to 1, after every few MiB.
        stop: set from any thread to end early.
        waits: gets every call that may hang.

    Raises:
        StoppedError: `stop` was set.
        LunscopeError: the disk is full, or failed; what was made is closed and removed.
    """
    waits = waits or Waits()
    waiting = [(index, target) for index, target in enumerate(targets) if target.needs_fill]
    total = sum(target.size_bytes for _, target in waiting)
    done = 0
    try:
        for index, target in waiting:
            target_seed = (seed + index * _SEED_STEP) % 2**63
            for step in _fill_steps(target, target_seed, stop, waits):
                done += step
                progress(done / total)
            _settle(target, waits)
    except BaseException:
        for _, target in waiting:
            target.close()
        raise
    progress(1.0)


def _fill_steps(target: OpenTarget, seed: int, stop: threading.Event, waits: Waits) -> Iterator[int]:
    """Fill one target, yielding the bytes of each step."""
    offset = 0
    while offset < target.size_bytes:
        if stop.is_set():
            raise StoppedError(f"{target.name}: stopped while it was filled; nothing is left of it")
        length = min(_CHUNK_BYTES, target.size_bytes - offset)
        try:
            with waits.on(target.name):
                written = _native.fill(target.fd, offset, length, seed)
        except OSError as error:
            raise _explain(target, error) from None
        if written <= 0:
            raise _explain(target, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        offset += written
        yield written


def _settle(target: OpenTarget, waits: Waits) -> None:
    """Write cached data back and drop it from the page cache, so that the load starts from a known state."""
    try:
        with waits.on(target.name, "fsync"):
            os.fsync(target.fd)
    except OSError as error:
        raise _explain(target, error) from None
    os.posix_fadvise(target.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    target.mark_filled()


def _explain(target: OpenTarget, error: OSError) -> LunscopeError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        folder = Path(target.path).parent if target.path is not None else scratch_folder()
        return no_room(folder, target.size_bytes, free_bytes(target.fd))
    return LunscopeError(f"{target.name}: cannot be filled: {error.strerror}: nothing is left of it")
