"""Opening of a tracer: programs of this process, or those of the probe helper."""

from __future__ import annotations

from collectors.exact.probe.client import connect, helper_path
from collectors.exact.tracer import Tracer
from engine import _native
from engine.errors import LunscopeError

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
