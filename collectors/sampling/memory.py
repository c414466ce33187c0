"""Return of freed memory to the kernel: after a scan of thousands of devices it is tens of megabytes."""

from __future__ import annotations

import functools
from collections.abc import Callable


def trim_heap() -> None:
    """Return memory cached by the C library, which takes some milliseconds; does nothing without glibc."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Find malloc_trim(3) of glibc."""
    import ctypes  # noqa: PLC0415 a host with few devices never needs it

    return getattr(ctypes.CDLL(None), "malloc_trim", None)
