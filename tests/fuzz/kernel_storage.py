"""Loop devices and mounts by system calls alone, fast enough for thousands of races."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from pathlib import Path

_LOOP_SET_FD, _LOOP_CLR_FD, _LOOP_SET_CAPACITY = 0x4C00, 0x4C01, 0x4C07
_LOOP_CTL_ADD, _LOOP_CTL_REMOVE = 0x4C80, 0x4C81
_MNT_DETACH = 2
_FIRST_NUMBER = 400
"""Beyond those that losetup takes: whoever attaches one meanwhile gets another."""

_libc = ctypes.CDLL(None, use_errno=True)


def add_loop_nodes(count: int) -> list[str]:
    """Make loop devices that nobody else has."""
    made: list[str] = []
    control = os.open("/dev/loop-control", os.O_RDWR)
    try:
        number = _FIRST_NUMBER
        while len(made) < count:
            try:
                fcntl.ioctl(control, _LOOP_CTL_ADD, number)
                made.append(f"/dev/loop{number}")
            except FileExistsError:
                pass
            number += 1
    finally:
        os.close(control)
    return made


def remove_loop_node(node: str) -> None:
    control = os.open("/dev/loop-control", os.O_RDWR)
    try:
        fcntl.ioctl(control, _LOOP_CTL_REMOVE, int(node.removeprefix("/dev/loop")))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
    finally:
        os.close(control)


def attach(node: str, image: str) -> None:
    device, file = os.open(node, os.O_RDWR), os.open(image, os.O_RDWR)
    try:
        fcntl.ioctl(device, _LOOP_SET_FD, file)
    finally:
        os.close(device)
        os.close(file)


def detach(node: str) -> None:
    _on_device(node, _LOOP_CLR_FD)


def set_capacity(node: str) -> None:
    _on_device(node, _LOOP_SET_CAPACITY)


def _on_device(node: str, request: int) -> None:
    device = os.open(node, os.O_RDONLY)
    try:
        fcntl.ioctl(device, request, 0)
    finally:
        os.close(device)


def is_attached(node: str) -> bool:
    return Path("/sys/block", Path(node).name, "loop").exists()


def mount(node: str, point: str) -> None:
    _checked(_libc.mount(node.encode(), point.encode(), b"ext4", 0, None), node)


def unmount(point: str, *, lazily: bool = False) -> None:
    _checked(_libc.umount2(point.encode(), _MNT_DETACH if lazily else 0), point)


def _checked(result: int, name: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
