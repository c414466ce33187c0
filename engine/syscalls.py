"""System calls and functions of the C library that Python does not offer."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import signal
import struct
from collections.abc import Callable

from msgspec import Struct

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_STATX_DONT_SYNC = 0x4000
_STATX_BASIC_STATS = 0x7FF
_STATX_BTIME = 0x800
_STATX_DIOALIGN = 0x2000
_STATX_BYTES = 256
_STATX = struct.Struct("=I24xH2xQQ32xqI36x4I8x2I")
"""Fields of linux/stat.h: mask, mode, inode, size, birth, numbers of rdev and device, alignments of direct I/O."""
_STATFS_BYTES = 256
OVERLAY_MAGIC = 0x794C7630
"""OVERLAYFS_SUPER_MAGIC of linux/magic.h."""
_PR_SET_PDEATHSIG = 1
_CACHESTAT = 451
"""Number of cachestat(2), the same on all architectures; Linux 6.5 and newer."""
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}
_KCMP_FILES = 2
_FALLOCATE_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS)

_PIDFD_GETFD = 438
"""The same on all architectures."""
_OPENAT2 = 437
"""Number of openat2(2), the same on all architectures; Linux 5.6 and newer."""
_RESOLVE_BENEATH = 0x08
_RESOLVE_NO_MAGICLINKS = 0x02

_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000
_MOUNT_NAMESPACE = struct.Struct("=IIQ")
"""struct mnt_ns_info of linux/nsfs.h: size, number of mounts, id."""
_NS_MNT_GET_NEXT, _NS_MNT_GET_PREV = 0x8010B70B, 0x8010B70C
"""Requests of linux/nsfs.h; Linux 6.11 and newer."""

_HEAP_OPTIONS = {-3: 256 << 10, -1: 4 << 20, -8: 2}
"""M_MMAP_THRESHOLD and M_TRIM_THRESHOLD in bytes, and M_ARENA_MAX, of malloc.h."""

_libc = ctypes.CDLL(None, use_errno=True)


class Statx(Struct, frozen=True):
    """What statx(2) says of one inode."""

    mode: int
    device: int
    inode: int
    rdev: int
    size_bytes: int
    birth_ns: int | None
    """Time of birth; None where the filesystem does not keep it."""
    dio_memory_align: int | None
    """Alignment direct I/O requires of buffers, 0 where there is no direct I/O, None where the kernel does not say."""
    dio_offset_align: int | None
    """Alignment direct I/O requires of offsets and lengths, likewise."""


def statx(target: int | str) -> Statx:
    """Get attributes of a descriptor or path without a request to a network server, so that a dead one cannot block.

    Raises:
        OSError: as statx(2).
    """
    by_descriptor = isinstance(target, int)
    folder = target if by_descriptor else _AT_FDCWD
    path = b"" if isinstance(target, int) else os.fsencode(target)
    flags = _AT_STATX_DONT_SYNC | (_AT_EMPTY_PATH if by_descriptor else 0)
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if _libc.statx(folder, path, flags, _STATX_BASIC_STATS | _STATX_BTIME | _STATX_DIOALIGN, buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), None if by_descriptor else target)
    mask, mode, inode, size, birth_s, birth_rest_ns, *numbers, memory_align, offset_align = _STATX.unpack_from(buffer)
    has_alignment = bool(mask & _STATX_DIOALIGN)
    return Statx(
        mode=mode,
        device=os.makedev(numbers[2], numbers[3]),
        inode=inode,
        rdev=os.makedev(numbers[0], numbers[1]),
        size_bytes=size,
        birth_ns=birth_s * 1_000_000_000 + birth_rest_ns if mask & _STATX_BTIME else None,
        dio_memory_align=memory_align if has_alignment else None,
        dio_offset_align=offset_align if has_alignment else None,
    )


def filesystem_magic(path: str) -> int:
    """Return the number of a path's filesystem type (linux/magic.h).

    Raises:
        OSError: as statfs(2).
    """
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _libc.statfs(os.fsencode(path), buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int(struct.unpack_from("@l", buffer)[0]) & 0xFFFFFFFF


def fallocate(fd: int, size_bytes: int) -> None:
    """Allocate the first bytes of a file, or do nothing where the filesystem cannot; never writes zeros instead.

    Raises:
        OSError: the space is not there (ENOSPC, EDQUOT, EFBIG) or the descriptor is wrong.
    """
    if not _libc.fallocate(fd, 0, ctypes.c_int64(0), ctypes.c_int64(size_bytes)):
        return
    number = ctypes.get_errno()
    if number not in _FALLOCATE_UNSUPPORTED:
        raise OSError(number, os.strerror(number))


def cached_bytes(fd: int, size_bytes: int) -> int | None:
    """Count how many of the first bytes of a file or device are in the page cache; None where the kernel cannot say."""
    span = (ctypes.c_uint64 * 2)(0, size_bytes)
    counts = (ctypes.c_uint64 * 5)()
    if _libc.syscall(ctypes.c_long(_CACHESTAT), fd, span, counts, 0):
        return None
    return min(int(counts[0]) * os.sysconf("SC_PAGE_SIZE"), size_bytes)


def open_beneath(folder: int, path: str, flags: int) -> int:
    """Open an existing file below a folder; no link and no `..` on the way leads out of it (RESOLVE_BENEATH).

    Kernels and seccomp filters without openat2(2) get a check of the resolved path instead.

    Raises:
        OSError: as openat2(2); EXDEV when the path leads out.
    """
    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    descriptor = _libc.syscall(ctypes.c_long(_OPENAT2), folder, os.fsencode(path), how, ctypes.c_size_t(24))
    if descriptor >= 0:
        return int(descriptor)
    number = ctypes.get_errno()
    if number in {errno.ENOSYS, errno.EPERM}:
        return _open_checked(folder, path, flags)
    raise OSError(number, os.strerror(number), path)


def _open_checked(folder: int, path: str, flags: int) -> int:
    root = os.path.realpath(f"/proc/self/fd/{folder}")
    resolved = os.path.realpath(f"{root}/{path}")
    if not resolved.startswith(f"{root.rstrip('/')}/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    return os.open(resolved, flags | os.O_CLOEXEC | os.O_NOFOLLOW)


def descriptor_of(process: int, number: int) -> int:
    """Duplicate a descriptor of another process (pidfd_getfd(2), Linux 5.6).

    Raises:
        OSError: it is gone, or may not be inspected.
    """
    of_process = os.pidfd_open(process)
    try:
        descriptor = _libc.syscall(ctypes.c_long(_PIDFD_GETFD), of_process, number, 0)
    finally:
        os.close(of_process)
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(descriptor)


def share_files(first: int, second: int) -> bool:
    """Whether two threads share one table of descriptors; False where the kernel does not say (kcmp(2))."""
    number = _KCMP.get(os.uname().machine)
    return number is not None and _libc.syscall(ctypes.c_long(number), first, second, _KCMP_FILES, 0, 0) == 0


def mount_namespace_beside(fd: int, *, is_before: bool) -> int | None:
    """Open the next mount namespace of the kernel, by age, that we may administer; None if there is none.

    Raises:
        OSError: the kernel does not list them.
    """
    request = _NS_MNT_GET_PREV if is_before else _NS_MNT_GET_NEXT
    about = ctypes.create_string_buffer(_MOUNT_NAMESPACE.pack(_MOUNT_NAMESPACE.size, 0, 0), _MOUNT_NAMESPACE.size)
    found = _libc.ioctl(fd, ctypes.c_ulong(request), about)
    if found >= 0:
        return int(found)
    number = ctypes.get_errno()
    if number == errno.ENOENT:
        return None
    raise OSError(number, os.strerror(number))


def enter_mount_namespace(fd: int) -> None:
    """Move the calling thread, and no other, to a mount namespace and its root directory (setns(2)).

    Raises:
        OSError: we may not.
    """
    if _libc.unshare(_CLONE_FS) or _libc.setns(fd, _CLONE_NEWNS):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the one with this number ends (PR_SET_PDEATHSIG of prctl(2))."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before the call.
        os._exit(128 + signal.SIGKILL)


def return_freed_memory() -> None:
    """Have the C library return freed blocks of 256 KiB and more at once (mallopt(3)); does nothing without glibc.

    By default that limit rises with the largest block that was ever freed, and each thread has an arena of its own:
    arrays that come and go leave gaps below what stays, which are not returned until malloc_trim(3).
    """
    set_option = getattr(_libc, "mallopt", None)
    if set_option is not None:
        for option, value in _HEAP_OPTIONS.items():
            set_option(option, value)


def trim_heap() -> None:
    """Return memory cached by the C library, which takes some milliseconds; does nothing without glibc."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Find malloc_trim(3) of glibc."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
