"""Permissions belong to the device or file that had the name when they were given, never to the name.

A name is free for another device after a rescan, a new login or `losetup`, within the time between two loads.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from engine.errors import OtherTargetError
from engine.guard.own_writes import is_as_left
from engine.hostfs.kernel_files import Roots, device_text
from engine.hostfs.sysblock import disk_sequence, look_up, lun_of
from engine.job.sizes import human_size
from engine.job.spec import Permissions, TargetIdentity
from engine.replacing import replace
from engine.text import safe_text

_NOTHING: Mapping[str, TargetIdentity | None] = MappingProxyType({})


def identity_at(path: str) -> TargetIdentity | None:
    """Identify what a name leads to, without opening it; None if that is nothing."""
    try:
        return identity_of(Path(path).stat())
    except (OSError, ValueError):
        return None


def identity_of(status: os.stat_result) -> TargetIdentity:
    """Identify a device or file."""
    if not stat.S_ISBLK(status.st_mode):
        return TargetIdentity(status.st_dev, status.st_ino)
    device = look_up(Roots().sysfs, status.st_rdev)
    if device is None:
        return TargetIdentity(status.st_rdev)
    return TargetIdentity(
        device=status.st_rdev,
        sequence=disk_sequence(device),
        wwid=lun_of(device.disk_folder) or "",
        size_bytes=device.end_bytes - device.start_bytes,
    )


def bound(permissions: Permissions, before: Mapping[str, TargetIdentity | None] = _NOTHING) -> Permissions:
    """Give permissions to what their names lead to now, or led to when they were given `before`."""
    given = {path: before[path] if path in before else identity_at(path) for path in permissions.allow_write}
    return replace(permissions, given=given)


def changed(permissions: Permissions) -> str:
    """Say which name leads to something else than when it was allowed; empty if none does."""
    for path in sorted(permissions.allow_write & permissions.given.keys()):
        if text := _difference(path, permissions, _stat(path)):
            return text
    return ""


def refuse_other(path: str, status: os.stat_result | None, permissions: Permissions) -> None:
    """Refuse what is not what was allowed; `status` is None where there is nothing of that name.

    Raises:
        OtherTargetError: says what it was and what it is.
    """
    if text := _difference(path, permissions, status):
        raise OtherTargetError(f"{text}: check it, and allow it again")


def _stat(path: str) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except (OSError, ValueError):
        return None


def _difference(path: str, permissions: Permissions, status: os.stat_result | None) -> str:
    if path not in permissions.given:
        return ""
    then, now = permissions.given[path], None if status is None else identity_of(status)
    if then == now or (then is None and status is not None and is_as_left(status)):
        return ""
    return (
        f"{safe_text(path)} is another target than when writing was allowed: it was {_words(then)}, "
        f"and is {_words(now)} now"
    )


def _words(identity: TargetIdentity | None) -> str:
    if identity is None:
        return "not there"
    if identity.inode:
        return f"inode {identity.inode} of {device_text(identity.device)}"
    facts = [f"device {device_text(identity.device)}", human_size(identity.size_bytes)]
    facts += [] if identity.sequence is None else [f"diskseq {identity.sequence}"]
    facts += [safe_text(identity.wwid)] if identity.wwid else []
    return ", ".join(facts)
