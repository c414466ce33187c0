"""Descriptors that were sent through a unix socket and not yet received: no process has them (unix(7), SCM_RIGHTS).

The kernel counts them for each socket (`scm_fds`, proc_pid_fdinfo(5)). A look at the first message that has some, which
takes nothing out of the socket, gives duplicates of them.
"""

from __future__ import annotations

import array
import fcntl
import os
import re
import socket

from msgspec import Struct

from engine.hostfs.kernel_files import link_target, names_in, start_of
from engine.syscalls import Statx, descriptor_of, statx

_COUNT = re.compile(rb"^scm_fds:\s*([0-9]+)", re.MULTILINE)
_MESSAGE_BYTES = 1 << 18
_MOST_DESCRIPTORS = 253
"""SCM_MAX_FD of include/net/scm.h."""
_SO_PEEK_OFF = 42
"""include/uapi/asm-generic/socket.h, and on all architectures but sparc and parisc."""
_CLOSE_ON_EXEC = 0x40000000
"""MSG_CMSG_CLOEXEC of recvmsg(2)."""


class DescriptorsInFlight(Struct, frozen=True):
    """What is on its way to one process."""

    writable: tuple[Statx, ...] = ()
    unknown: int = 0
    """How many could not be looked at."""


def in_flight(process: str) -> DescriptorsInFlight:
    """Look for descriptors on their way to a process, given by its folder in /proc.

    Raises:
        PermissionError: it belongs to another user.
    """
    writable: list[Statx] = []
    unknown = 0
    for name in names_in(f"{process}/fd"):
        count = _count(process, name)
        if count:
            seen = _look(int(process.rpartition("/")[2]), int(name), writable)
            unknown += max(count - seen, 0)
    return DescriptorsInFlight(tuple(writable), unknown)


def _count(process: str, name: str) -> int:
    if not link_target(f"{process}/fd/{name}").startswith("socket:"):
        return 0
    match = _COUNT.search(start_of(f"{process}/fdinfo/{name}"))
    return int(match[1]) if match else 0


def _look(process: int, number: int, writable: list[Statx]) -> int:
    """Look at the first message with descriptors, and return how many it has."""
    try:
        with socket.socket(fileno=descriptor_of(process, number)) as channel:
            if channel.getsockopt(socket.SOL_SOCKET, _SO_PEEK_OFF) >= 0:
                # A look would change what its owner looks at next.
                return 0
            how = socket.MSG_PEEK | socket.MSG_DONTWAIT | _CLOSE_ON_EXEC
            room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
            _, messages, *_ = channel.recvmsg(_MESSAGE_BYTES, room, how)
    except OSError:
        return 0
    descriptors = array.array("i")
    for level, kind, data in messages:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    for descriptor in descriptors:
        try:
            if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                writable.append(statx(descriptor))
        finally:
            os.close(descriptor)
    return len(descriptors)
