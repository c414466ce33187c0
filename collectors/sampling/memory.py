"""Memory that was freed goes back to the kernel: after a look at thousands of devices it is tens of megabytes."""

from __future__ import annotations

import functools
from collections.abc import Callable


def trim_heap() -> None:
    """Return what the C library keeps for later, some milliseconds beside the ticks; not every library can."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Find malloc_trim(3) of glibc."""
    import ctypes  # noqa: PLC0415 a host with few devices never needs it

    return getattr(ctypes.CDLL(None), "malloc_trim", None)
