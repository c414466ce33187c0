"""From a name to an inode: open without side effects, identify, and open again what was identified."""

from __future__ import annotations

import difflib
import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from engine.errors import LunscopeError, UsageError
from engine.text import safe_text

_STRANGE_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a character device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}
_KERNEL_FILESYSTEMS = frozenset(
    (
        *("proc", "sysfs", "debugfs", "tracefs", "securityfs", "configfs", "cgroup", "cgroup2", "bpf", "pstore"),
        *("efivarfs", "devpts", "devtmpfs", "mqueue", "fusectl", "binfmt_misc", "nsfs", "rpc_pipefs", "nfsd"),
        *("selinuxfs", "smackfs", "sockfs", "pipefs"),
    )
)


_PROCESS_MEMORY = ("/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage")
"""Names that the kernel gives to files without one (mm/memfd.c, ipc/shm.c, mm/shmem.c, fs/hugetlbfs/inode.c)."""


StorageKey = tuple[bool, int, int]
"""Whether it is a device, and its number; else the device and inode of a file."""


def storage_key(status: os.stat_result) -> StorageKey:
    """Identify a device or file, whatever its names."""
    if stat.S_ISBLK(status.st_mode):
        return True, status.st_rdev, 0
    return False, status.st_dev, status.st_ino


class Found(Struct, frozen=True):
    """An inode found by name, held by an O_PATH descriptor that neither reads, writes nor wakes a device."""

    path: str
    fd: int
    status: os.stat_result

    @property
    def is_block(self) -> bool:
        """Whether it is a block device."""
        return stat.S_ISBLK(self.status.st_mode)

    def close(self) -> None:
        """Let go of the inode."""
        os.close(self.fd)


def _device_nodes(devices: Path) -> Iterator[str]:
    for folder in (devices, devices / "mapper", *sorted((devices / "disk").glob("by-*"))):
        try:
            yield from (str(entry) for entry in folder.iterdir() if entry.is_block_device())
        except OSError:
            continue


def no_such_target(path: str, devices: Path = Path("/dev")) -> UsageError:
    """Build the error for a name that leads nowhere, with the nearest device names."""
    shown = safe_text(path)
    if Path(path).is_symlink():
        return UsageError(f"{shown}: the link leads to {safe_text(str(Path(path).readlink()))}, which does not exist")
    nodes = {node: node for node in _device_nodes(devices)}
    if "/" not in path:
        nodes |= {node.rpartition("/")[2]: node for node in nodes.values()}
    near = dict.fromkeys(nodes[name] for name in difflib.get_close_matches(path, nodes, n=3, cutoff=0.75))
    nothing_near = (
        "lsblk lists the devices" if path.startswith("/dev/") else "give --size to have a new file made there"
    )
    hint = f"did you mean {' or '.join(map(safe_text, near))}?" if near else nothing_near
    return UsageError(f"{shown}: no such file or device: {hint}")


def no_right(path: str, action: str) -> UsageError:
    """Build the error for a missing permission: the owner and the fix."""
    shown = safe_text(path)
    try:
        status = Path(path).stat()
    except OSError:
        return UsageError(f"{shown}: no right to enter its folder: run as root")
    owner, group = _user_name(status.st_uid), _group_name(status.st_gid)
    mode = stat.S_IMODE(status.st_mode)
    needed = stat.S_IRGRP | (stat.S_IWGRP if action == "write" else 0)
    join = f" or join the group {group}" if mode & needed == needed and status.st_gid != 0 else ""
    return UsageError(
        f"{shown}: no right to {action} it: it belongs to {owner}:{group} with mode {mode:04o}: run as root{join}"
    )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def find(path: str) -> Found | None:
    """Hold the inode a name leads to, through any links; None if there is none.

    Raises:
        UsageError: the name cannot be one.
        LunscopeError: a folder on the way may not be entered.
    """
    if not path:
        raise UsageError("--target: an empty name: give a device or a file")
    try:
        fd = os.open(path, os.O_PATH)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise no_right(path, "read") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{safe_text(path)}: {reason}") from None
    return Found(path, fd, os.fstat(fd))


def refuse_strange_kinds(found: Found, filesystems: dict[int, str]) -> None:
    """Accept block devices and regular files on real filesystems only.

    Raises:
        UsageError: naming what it is instead.
    """
    shown = safe_text(found.path)
    strange = _STRANGE_KINDS.get(stat.S_IFMT(found.status.st_mode))
    if strange:
        raise UsageError(f"{shown}: {strange}, not storage: give a block device or a regular file")
    if _is_process_memory(found, filesystems):
        raise UsageError(f"{shown}: memory of a process (memfd, shared memory), not storage: give a file with a name")
    filesystem = filesystems.get(found.status.st_dev)
    if not found.is_block and filesystem in _KERNEL_FILESYSTEMS:
        raise UsageError(f"{shown}: a file of the kernel ({filesystem}), not storage: give a block device or a file")


def _is_process_memory(found: Found, filesystems: dict[int, str]) -> bool:
    """Whether a file without a name is on the kernel's own instance of tmpfs or hugetlbfs, which is mounted nowhere.

    Only /proc/PID/fd and /proc/PID/map_files lead there (memfd_create(2), shmat(2), mmap(2) of shared memory).
    """
    if found.is_block or found.status.st_nlink or found.status.st_dev in filesystems:
        return False
    return str(Path(f"/proc/self/fd/{found.fd}").readlink()).startswith(_PROCESS_MEMORY)


READ_ONLY = "it is read-only"
_OPEN_ERRORS = {
    errno.EINVAL: "its filesystem refuses direct I/O: use --mode buffered",
    errno.ENXIO: "no device answers behind this node",
    errno.ENODEV: "no device answers behind this node",
    errno.ENOMEDIUM: "no medium in the drive",
    errno.EROFS: READ_ONLY,
    errno.EMFILE: "too many open files: raise ulimit -n, or use fewer targets",
    errno.ETXTBSY: "it is in use as a running program or as swap",
}


_GIVEN_WRONGLY = frozenset((errno.EINVAL, errno.EROFS, errno.ETXTBSY, errno.EPERM))
"""Another target or option is needed; anything else is a failure of the device or host."""


_NOT_PERMITTED = {
    True: "not permitted: the rules of this container or a security policy keep the device from us",
    False: "not permitted: it is immutable or append-only (lsattr shows i or a)",
}


def reopen(found: Found, flags: int) -> int:
    """Open the very inode that was found, even if its name now leads elsewhere.

    Raises:
        BlockingIOError: EBUSY, another owner has claimed the device.
        LunscopeError: anything else, in words.
    """
    try:
        return os.open(f"/proc/self/fd/{found.fd}", flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise BlockingIOError(error.errno, error.strerror) from None
        writing = flags & os.O_ACCMODE != os.O_RDONLY
        if error.errno == errno.EACCES:
            raise no_right(found.path, "write" if writing else "read") from None
        reason = _OPEN_ERRORS.get(error.errno or 0, error.strerror)
        if error.errno == errno.EPERM:
            reason = _NOT_PERMITTED[found.is_block]
        usage = error.errno in _GIVEN_WRONGLY
        raise (UsageError if usage else LunscopeError)(f"{safe_text(found.path)}: {reason}") from None
