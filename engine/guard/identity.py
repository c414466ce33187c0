"""What a descriptor was about when it was opened, so that a change shows."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from msgspec import Struct

from engine.errors import RefusedError
from engine.guard.facts import unwritten_share
from engine.hostfs import blockio
from engine.hostfs.kernel_files import Roots
from engine.hostfs.sysblock import disk_sequence, look_up
from engine.text import safe_text


class Identity(Struct, frozen=True):
    """An inode or device and what may not change about it during a run."""

    device: int
    inode: int
    rdev: int
    """0 for regular files."""
    links: int
    sequence: int | None
    """`diskseq` of the disk: another disk under the same number has another one."""
    size_bytes: int
    """Bytes the load uses, which must stay there."""
    unwritten: float
    """Share of a file's bytes that are holes or unwritten."""

    @classmethod
    def of(cls, fd: int, size_bytes: int) -> Identity:
        """Identify an open descriptor."""
        status = os.fstat(fd)
        is_block = stat.S_ISBLK(status.st_mode)
        return cls(
            device=status.st_dev,
            inode=status.st_ino,
            rdev=status.st_rdev if is_block else 0,
            links=status.st_nlink,
            sequence=blockio.disk_sequence(fd) if is_block else None,
            size_bytes=size_bytes,
            unwritten=0.0 if is_block else unwritten_share(fd, size_bytes),
        )


def _refuse(name: str, what: str) -> RefusedError:
    return RefusedError(f"{safe_text(name)}: {what} since it was opened: check it, then start again")


def refuse_changed(fd: int, name: str, identity: Identity) -> None:
    """Compare an open descriptor with what it was.

    Raises:
        RefusedError: it shrank, is gone, was replaced, or a file got another name or holes.
    """
    try:
        now = Identity.of(fd, identity.size_bytes)
        capacity = blockio.size_bytes(fd) if identity.rdev else os.fstat(fd).st_size
    except OSError as error:
        raise _refuse(name, f"it is gone ({error.strerror})") from None
    if capacity < identity.size_bytes:
        raise _refuse(name, f"it shrank to {capacity} bytes" if capacity else "it lost its medium or its bytes")
    if identity.rdev:
        if is_gone(identity):
            raise _refuse(name, "its device is gone")
        refuse_other_disk(name, identity)
        return
    if now.links > identity.links:
        raise _refuse(name, f"it got another name ({now.links} hard links)")
    if now.unwritten > identity.unwritten:
        raise _refuse(name, "holes were punched into it")


def is_gone(identity: Identity) -> bool:
    """Whether the device no longer exists in the kernel: no descriptor can reach it."""
    return bool(identity.rdev) and look_up(Roots().sysfs, identity.rdev) is None


def refuse_other_disk(name: str, identity: Identity) -> None:
    """Compare the disk under a device number, or the medium in it, with what was there when it was opened.

    Raises:
        RefusedError: it is another one.
    """
    device = look_up(Roots().sysfs, identity.rdev) if identity.rdev else None
    if device and identity.sequence is not None and disk_sequence(device) not in (None, identity.sequence):
        raise _refuse(name, "another disk took its place")


def refuse_replaced(path: str, identity: Identity) -> None:
    """Compare what a name leads to now with what was opened.

    Raises:
        RefusedError: the name is gone or leads to something else.
    """
    try:
        status = Path(path).stat()
    except OSError:
        raise _refuse(path, "its name is gone") from None
    if identity.rdev:
        same = stat.S_ISBLK(status.st_mode) and status.st_rdev == identity.rdev
    else:
        same = (status.st_dev, status.st_ino) == (identity.device, identity.inode)
    if not same:
        raise _refuse(path, "its name leads to something else")
