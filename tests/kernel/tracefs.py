"""tracefs for tests, also where nobody has mounted it: a mount of their own that no other process sees."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

MOUNTED = Path("/sys/kernel/tracing")
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
"""System calls of every architecture since 5.2 (include/uapi/asm-generic/unistd.h)."""
_CREATE = 6
"""FSCONFIG_CMD_CREATE of linux/mount.h."""
_CLOEXEC = 1
"""FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC."""


@functools.cache
def tracefs() -> Path:
    """Folder of tracefs: where it is mounted, else of a mount in an anonymous namespace (fsmount(2)).

    It goes with the descriptor, which stays open as long as this process runs.

    Raises:
        OSError: the kernel has none, or this process may not mount.
    """
    if (MOUNTED / "events").is_dir():
        return MOUNTED
    context = _call(_FSOPEN, b"tracefs", _CLOEXEC)
    try:
        _call(_FSCONFIG, context, _CREATE, None, None, 0)
        mount = _call(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)
    return Path(f"/proc/{os.getpid()}/fd/{mount}")


def _call(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), "tracefs")
    return result
