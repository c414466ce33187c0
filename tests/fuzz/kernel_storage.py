"""Loop devices, partitions, mounts, swap and rings by system calls alone, fast enough for thousands of tries."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import struct
from pathlib import Path

_LOOP_SET_FD, _LOOP_CLR_FD, _LOOP_SET_CAPACITY = 0x4C00, 0x4C01, 0x4C07
_LOOP_CONFIGURE = 0x4C0A
_LOOP_CTL_ADD, _LOOP_CTL_REMOVE, _LOOP_CTL_GET_FREE = 0x4C80, 0x4C81, 0x4C82
_LO_FLAGS_AUTOCLEAR, _LO_FLAGS_PARTSCAN = 4, 8
_LOOP_CONFIG = "=II 3Q QQ 4I 64s 64s 32s 2Q 64x"
"""struct loop_config with its loop_info64 (linux/loop.h)."""
_BLKPG, _BLKPG_ADD_PARTITION, _BLKPG_DEL_PARTITION = 0x1269, 1, 2
_BLKPG_PARTITION = "=qqi64s64s4x"
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
_MNT_DETACH = 2
_IO_URING_SETUP, _IO_URING_REGISTER, _IORING_REGISTER_FILES = 425, 427, 2
_PAGE = mmap.PAGESIZE
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


def lock_device(node: str) -> int:
    """Open a device for reading and keep udev off it, which would take away partitions that are in no table.

    See "Locking Block Device Access" of systemd (BLOCK_DEVICE_LOCKING.md).
    """
    descriptor = os.open(node, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def attach_free(image: str, offset: int = 0, size: int = 0, *, autoclear: bool = True) -> tuple[str, int]:
    """Attach a loop device that may have partitions; with `autoclear` it goes with the descriptor that is returned."""
    file, control = os.open(image, os.O_RDWR), os.open("/dev/loop-control", os.O_RDWR)
    try:
        # As tests/attaching.py, so that all tests and sessions take turns.
        fcntl.flock(control, fcntl.LOCK_EX)
        while True:
            node = f"/dev/loop{fcntl.ioctl(control, _LOOP_CTL_GET_FREE)}"
            held = lock_device(node)
            device = os.open(node, os.O_RDWR)
            try:
                flags = _LO_FLAGS_PARTSCAN | (_LO_FLAGS_AUTOCLEAR if autoclear else 0)
                info = struct.pack(_LOOP_CONFIG, file, 0, 0, 0, 0, offset, size, 0, 0, 0, flags, b"", b"", b"", 0, 0)
                fcntl.ioctl(device, _LOOP_CONFIGURE, info)
                return node, held
            except OSError as error:
                os.close(held)
                if error.errno != errno.EBUSY:
                    raise
            finally:
                os.close(device)
    finally:
        os.close(control)
        os.close(file)


def add_partition(node: str, number: int, start: int, length: int) -> str:
    _partition(node, _BLKPG_ADD_PARTITION, number, start, length)
    return f"{node}p{number}"


def delete_partition(node: str, number: int) -> None:
    _partition(node, _BLKPG_DEL_PARTITION, number, 0, 0)


def _partition(node: str, request: int, number: int, start: int, length: int) -> None:
    values = ctypes.create_string_buffer(struct.pack(_BLKPG_PARTITION, start, length, number, b"", b""))
    asked = struct.pack("@iiiP", request, 0, len(values), ctypes.addressof(values))
    device = os.open(node, os.O_RDONLY)
    try:
        fcntl.ioctl(device, _BLKPG, asked)
    finally:
        os.close(device)


def mount(node: str, point: str) -> None:
    _checked(_libc.mount(node.encode(), point.encode(), b"ext4", 0, None), node)


def bind(folder: str, point: str) -> None:
    _checked(_libc.mount(folder.encode(), point.encode(), None, _MS_BIND, None), folder)


def mount_overlay(lower: str, upper: str, work: str, point: str) -> None:
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    _checked(_libc.mount(b"overlay", point.encode(), b"overlay", 0, options.encode()), options)


def keep_mounts_private() -> None:
    """Keep what is mounted from now on in the mount namespace of this process."""
    _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "/")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), f"unshare({flags:#x})")


def sync_filesystem(descriptor: int) -> None:
    _checked(_libc.syncfs(descriptor), f"descriptor {descriptor}")


def swap_header(size: int) -> bytes:
    """The first page of a swap device (union swap_header in linux/swap.h)."""
    info = struct.pack("=III", 1, size // _PAGE - 1, 0)
    return (bytes(1024) + info).ljust(_PAGE - 10, b"\0") + b"SWAPSPACE2"


def swap_on(path: str) -> None:
    _checked(_libc.swapon(path.encode(), 0), path)


def swap_off(path: str) -> None:
    _checked(_libc.swapoff(path.encode()), path)


def map_shared(path: str, *, writable: bool) -> None:
    """Map the first page for good, by a descriptor for writing that is closed."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        _libc.mmap.restype = ctypes.c_void_p
        at = _libc.mmap(None, ctypes.c_size_t(_PAGE), access, mmap.MAP_SHARED, descriptor, ctypes.c_long(0))
        _checked(int(at == ctypes.c_void_p(-1).value), path)
    finally:
        os.close(descriptor)


def register_with_ring(path: str) -> int:
    """Register a file with an io_uring, close its descriptor, and return that of the ring."""
    ring = _libc.syscall(ctypes.c_long(_IO_URING_SETUP), 8, ctypes.create_string_buffer(120))
    _checked(int(ring < 0), "io_uring")
    descriptor = os.open(path, os.O_RDWR)
    try:
        files = (ctypes.c_int * 1)(descriptor)
        _checked(
            _libc.syscall(ctypes.c_long(_IO_URING_REGISTER), ring, _IORING_REGISTER_FILES, files, 1), "registering"
        )
    finally:
        os.close(descriptor)
    return int(ring)


def unmount(point: str, *, lazily: bool = False) -> None:
    _checked(_libc.umount2(point.encode(), _MNT_DETACH if lazily else 0), point)


def _checked(result: int, name: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
