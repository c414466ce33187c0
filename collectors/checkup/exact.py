"""Whether exact time works here, tried for real: programs are attached for a moment, or the helper is asked."""

from __future__ import annotations

import time
from pathlib import Path

from collectors.checkup.checks import Check, Status
from collectors.exact.opening import full_refusal
from collectors.probe.client import connect, helper_path
from engine import _native
from engine.errors import LunscopeError, words_of


def exact_time(procfs: Path, sysfs: Path) -> Check:
    """Attach and detach, or say why that cannot be and what would lift it."""
    refusal = full_refusal(str(procfs), str(sysfs))
    if not refusal:
        return _attached(sysfs)
    if helper_path().is_socket():
        return _by_helper(helper_path())
    found, _, mend = refusal.partition(": ")
    return Check("exact time", Status.MISSING, found, mend)


def _attached(sysfs: Path) -> Check:
    started_s = time.monotonic()
    try:
        _native.BlockTracer(str(sysfs)).close()
    except OSError as error:
        return Check("exact time", Status.MISSING, words_of(error))
    took_ms = 1e3 * (time.monotonic() - started_s)
    return Check("exact time", Status.OK, f"block tracepoints can be watched, ready after {took_ms:.0f} ms: tier exact")


def _by_helper(path: Path) -> Check:
    try:
        connect(path).close()
    except LunscopeError as error:
        return Check("exact time", Status.MISSING, str(error))
    except OSError as error:
        mend = "start it again: sudo lunscope probe, or systemctl restart lunscope-probe"
        return Check("exact time", Status.MISSING, f"the probe helper at {path} does not answer: {error}", mend)
    return Check("exact time", Status.OK, f"the probe helper at {path} lets this user read: tier exact")
