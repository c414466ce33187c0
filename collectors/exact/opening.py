"""Where exact counters come from here: probes of this process, or those of the probe helper."""

from __future__ import annotations

from collectors.exact.tracer import Tracer
from engine import _native
from engine.errors import LunscopeError


def refusal_of(procfs: str, sysfs: str) -> str:
    """Say why there can be no exact time here, with the mend; empty if there can."""
    return _native.tracer_refusal(procfs, sysfs)


def open_tracer(procfs: str, sysfs: str) -> Tracer:
    """Load and attach the programs, which takes a tenth of a second.

    Raises:
        LunscopeError: this host or this process's rights do not allow it.
        OSError: the kernel refuses a step; the text names it.
    """
    if refusal := refusal_of(procfs, sysfs):
        raise LunscopeError(refusal)
    return _native.BlockTracer(sysfs)
