"""Scratch files for a load: made on disk, filled, and removed however the program ends."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from engine import _native
from engine.backend.outstanding import Waits
from engine.config import SCRATCH_ENV, scratch_folder
from engine.errors import LunscopeError, StoppedError, UsageError, too_many_open
from engine.guard.target import OpenTarget
from engine.job.sizes import human_size
from engine.syscalls import fallocate

_RESERVE_BYTES = 512 * 1024 * 1024
_RESERVE_SHARE = 0.05


def shown_folder(folder: Path) -> str:
    """Spell a folder for people, with `~` for their home."""
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


_SCRATCH_FIX = f"give a smaller --size, or name a folder with more space (--scratch-dir or {SCRATCH_ENV})"
_FILE_FIX = "give a smaller --size, or another folder"


def check_room(folder: Path, needed_bytes: int, fix: str = _SCRATCH_FIX) -> None:
    """Make sure that a filesystem keeps a reserve of 5 %, at least 512 MiB, after the files were made.

    Args:
        folder: may be missing; then the folder it will be made in counts.
        needed_bytes: size of the files.
        fix: how the text ends.

    Raises:
        LunscopeError: it would not; names the folder, what is needed and what is free, and the fix.
    """
    status = os.statvfs(next(parent for parent in (folder, *folder.absolute().parents) if parent.exists()))
    free = status.f_bavail * status.f_frsize
    reserve = max(_RESERVE_BYTES, int(status.f_blocks * status.f_frsize * _RESERVE_SHARE))
    if free - needed_bytes < reserve:
        raise no_room(folder, needed_bytes, free, reserve, fix)


def no_room(
    folder: Path, needed_bytes: int, free_bytes: int, reserve_bytes: int = 0, fix: str = _SCRATCH_FIX
) -> LunscopeError:
    """Build the error for a full filesystem."""
    kept = f" of which {human_size(reserve_bytes)} stay free" if reserve_bytes else ""
    return LunscopeError(
        f"{shown_folder(folder)}: not enough space: {human_size(needed_bytes)} needed, "
        f"{human_size(free_bytes)} free{kept}: {fix}"
    )


def free_bytes(fd: int) -> int:
    """Bytes an ordinary user may still write to the filesystem of an open file."""
    status = os.fstatvfs(fd)
    return status.f_bavail * status.f_frsize


def _open_nameless(folder: Path, flags: int) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | flags, 0o600)
    except OSError as error:
        # Filesystems without O_TMPFILE say EOPNOTSUPP; kernels before 3.11 took it for a folder opened for writing.
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
            raise
    path = folder / f".scratch-{secrets.token_hex(8)}"
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | flags, 0o600)
    path.unlink()
    return fd


def _explain(folder: Path, size_bytes: int, error: OSError) -> LunscopeError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        return no_room(folder, size_bytes, free)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return too_many_open(shown_folder(folder))
    if error.errno == errno.EINVAL:
        return UsageError(
            f"{shown_folder(folder)}: its filesystem refuses direct I/O: use --mode buffered, "
            f"or name another folder (--scratch-dir or {SCRATCH_ENV})"
        )
    return UsageError(
        f"{shown_folder(folder)}: {error.strerror}: name a folder you may write to (--scratch-dir or {SCRATCH_ENV})"
    )


def make_scratch(folder: Path, size_bytes: int, flags: int) -> int:
    """Make a file without a name, so that nothing is left of it however the program ends, and allocate its space.

    Args:
        folder: made with mode 0700 if it is missing.
        size_bytes: allocated at once where the filesystem can.
        flags: added to those of open(2), such as O_DIRECT.

    Raises:
        LunscopeError: no space, no permission, or no direct I/O there.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = _open_nameless(folder, flags)
    except OSError as error:
        raise _explain(folder, size_bytes, error) from None
    try:
        allocate(fd, size_bytes)
    except OSError as error:
        os.close(fd)
        raise _explain(folder, size_bytes, error) from None
    return fd


def make_named(path: Path, size_bytes: int, flags: int) -> int:
    """Make a new file that stays, and allocate its space; never touches one that exists.

    Raises:
        LunscopeError: it exists, there is no space, no permission, or no direct I/O there.
    """
    check_room(path.parent, size_bytes, _FILE_FIX)
    try:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | flags, 0o600)
    except FileExistsError:
        raise LunscopeError(f"{path}: appeared while it was to be made: try again") from None
    except OSError as error:
        # With O_DIRECT refused the kernel has made the file before it said EINVAL.
        if error.errno == errno.EINVAL:
            path.unlink(missing_ok=True)
            raise UsageError(f"{path}: its filesystem refuses direct I/O: use --mode buffered") from None
        raise UsageError(f"{path}: cannot be made: {error.strerror}: give a folder that exists") from None
    try:
        allocate(fd, size_bytes)
    except OSError as error:
        os.close(fd)
        path.unlink(missing_ok=True)
        raise _explain(path.parent, size_bytes, error) from None
    return fd


def allocate(fd: int, size_bytes: int) -> None:
    """Give a new file its size, with blocks where the filesystem can; blocks are unwritten until it is filled.

    Raises:
        OSError: no space.
    """
    fallocate(fd, size_bytes)
    os.ftruncate(fd, size_bytes)


_STEP_S = 0.05
"""How long one step of filling should take: a stop, or the end of a lease, waits for the step under way."""
_LEAST_STEP, _FIRST_STEP, _LARGEST_STEP = 64 * 1024, 256 * 1024, 8 * 1024 * 1024
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
        progress: called with the share done, 0 to 1, after every step; what it raises ends the filling.
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


def next_step(step_bytes: int, took_s: float) -> int:
    """Choose how many bytes to write next by how long the last ones took: a power of two, as alignments are."""
    while took_s > _STEP_S and step_bytes > _LEAST_STEP:
        step_bytes, took_s = step_bytes // 2, took_s / 2
    return min(2 * step_bytes, _LARGEST_STEP) if took_s < _STEP_S / 2 else step_bytes


def _fill_steps(target: OpenTarget, seed: int, stop: threading.Event, waits: Waits) -> Iterator[int]:
    """Fill one target, yielding the bytes of each step; each is on the disk then, so that nothing is written later."""
    offset, step_bytes = 0, _FIRST_STEP
    is_cached = not fcntl.fcntl(target.fd, fcntl.F_GETFL) & os.O_DIRECT
    while offset < target.size_bytes:
        if stop.is_set():
            raise StoppedError(f"{target.name}: stopped while it was filled; nothing is left of it")
        length, began_s = min(step_bytes, target.size_bytes - offset), time.monotonic()
        try:
            with waits.on(target.name):
                written = _native.fill(target.fd, offset, length, seed)
                if is_cached:
                    os.fdatasync(target.fd)
        except OSError as error:
            raise _fill_error(target, error) from None
        if written <= 0:
            raise _fill_error(target, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        offset += written
        step_bytes = next_step(step_bytes, time.monotonic() - began_s)
        yield written


def _settle(target: OpenTarget, waits: Waits) -> None:
    """Write cached data back and drop it from the page cache, so that the load starts from a known state."""
    try:
        with waits.on(target.name, "fsync"):
            os.fsync(target.fd)
    except OSError as error:
        raise _fill_error(target, error) from None
    os.posix_fadvise(target.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    target.mark_filled()


def _fill_error(target: OpenTarget, error: OSError) -> LunscopeError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        folder = Path(target.path).parent if target.path is not None else scratch_folder()
        return no_room(folder, target.size_bytes, free_bytes(target.fd))
    return LunscopeError(f"{target.name}: cannot be filled: {error.strerror}: nothing is left of it")
