"""Queries of an open block device (linux/fs.h, linux/loop.h), always by descriptor, never by name."""

from __future__ import annotations

import fcntl
import os
import struct

from msgspec import Struct

_BLKROGET = 0x125E
_BLKSSZGET = 0x1268
_BLKGETSIZE64 = 0x80081272
_BLKGETDISKSEQ = 0x80081280
_LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO64_BYTES = 232


def size_bytes(fd: int) -> int:
    """Get the size of the device behind a descriptor.

    Raises:
        OSError: the device is gone.
    """
    return int(struct.unpack("=Q", fcntl.ioctl(fd, _BLKGETSIZE64, bytes(8)))[0])


def logical_block_bytes(fd: int) -> int:
    """Get the smallest unit the device reads or writes."""
    return int(struct.unpack("=I", fcntl.ioctl(fd, _BLKSSZGET, bytes(4)))[0])


def is_read_only(fd: int) -> bool:
    """Whether the device refuses writes; opening it for writing may work all the same."""
    return bool(struct.unpack("=i", fcntl.ioctl(fd, _BLKROGET, bytes(4)))[0])


def disk_sequence(fd: int) -> int | None:
    """Get the `diskseq` of the disk behind a descriptor; None before Linux 5.15."""
    try:
        return int(struct.unpack("=Q", fcntl.ioctl(fd, _BLKGETDISKSEQ, bytes(8)))[0])
    except OSError:
        return None


class LoopBacking(Struct, frozen=True):
    """The backing of a loop device: an inode, or another device (rdev is 0 for a regular file)."""

    device: int
    inode: int
    rdev: int


def loop_backing(node: str, number: int) -> LoopBacking | None:
    """Get the backing of a loop device; None where the node cannot be opened or is another device.

    The kernel's answer holds for renamed, deleted and unreachable backing files too, unlike the path in sysfs.
    """
    try:
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if os.fstat(fd).st_rdev != number:
            return None
        answer = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_LOOP_INFO64_BYTES))
    except OSError:
        return None
    finally:
        os.close(fd)
    return LoopBacking(*struct.unpack_from("=3Q", answer))
