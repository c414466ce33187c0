"""The exclusive claim of a device that a load writes."""

from __future__ import annotations

import os
import time

from engine.guard import permission
from engine.guard.finding import Found, reopen
from engine.guard.shared import SharedTargets
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.sysblock import look_up


def claim_block(usage: UsageSnapshot, shared: SharedTargets, found: Found, mode_flags: int) -> tuple[int, int | None]:
    """Open a device for writing with an exclusive claim, which keeps mounts, swap and volume managers off it.

    Returns:
        The descriptor, and another one of the open file with the claim, where a load that runs beside it has that.

    Raises:
        RefusedError: it is in use, or claimed.
    """
    permission.refuse_used(usage, found.path, found.fd)
    number = found.status.st_rdev
    claim = shared.claim_of(number)
    if claim is not None:
        return _open_claimed(found, mode_flags, claim), claim
    try:
        fd = _open_exclusive(found, mode_flags)
    except BlockingIOError:
        device = look_up(usage.roots.sysfs, number)
        raise permission.claimed(found, device) from None
    try:
        shared.held.add(number)
        shared.keep_claim(number, fd)
        permission.refuse_claimed_elsewhere(usage, found.path, fd, shared.held)
    except BaseException:
        os.close(fd)
        raise
    return fd, None


def _open_claimed(found: Found, mode_flags: int, claim: int) -> int:
    """Open a device that a load beside this one has claimed and checked."""
    try:
        return reopen(found, os.O_RDWR | mode_flags)
    except BaseException:
        os.close(claim)
        raise


_RELEASE_S = 2.0
"""How long the kernel may take to tear down the ring of an earlier load, which holds its devices until then."""
_RETRY_S = 0.01
_claimed_before: set[int] = set()
"""Numbers of the devices that this process has claimed."""


def note_claim(number: int) -> None:
    """Note that this process claims a device, if only to ask: a claim for a load waits for the end of that one."""
    _claimed_before.add(number)


def _open_exclusive(found: Found, mode_flags: int) -> int:
    """Claim a device, waiting for an earlier load of this process to let go of it (io_ring_exit_work in the kernel).

    Raises:
        BlockingIOError: something else has claimed it.
    """
    number, deadline_s = found.status.st_rdev, time.monotonic() + _RELEASE_S
    while True:
        try:
            fd = reopen(found, os.O_RDWR | os.O_EXCL | mode_flags)
        except BlockingIOError:
            if number not in _claimed_before or time.monotonic() > deadline_s:
                raise
            time.sleep(_RETRY_S)
        else:
            _claimed_before.add(number)
            return fd
