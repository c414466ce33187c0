"""Access control of the helper: its data includes the names of other users' processes."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from engine.errors import UsageError

_CREDENTIALS = struct.Struct("iII")
"""struct ucred of unix(7): process, user and group id."""
_SO_PEERGROUPS = 59
"""asm-generic/socket.h, from Linux 4.13 on: the peer's supplementary groups, as 32-bit ids."""
_MOST_OPTION_BYTES = 1024
"""Largest buffer of Python's getsockopt."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a connection, with its credentials at connect time."""

    user: int
    groups: frozenset[int]

    @classmethod
    def of(cls, connection: socket.socket) -> Self:
        """Read the credentials from the kernel (SO_PEERCRED, SO_PEERGROUPS), never from a slow directory service.

        Of a process in more than 256 groups only the first group counts.

        Raises:
            OSError: the connection has no peer.
        """
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, group = _CREDENTIALS.unpack(raw)
        try:
            more = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_OPTION_BYTES)
        except OSError:
            more = b""
        return cls(user, frozenset({group, *struct.unpack(f"{len(more) // 4}I", more)}))


@dataclass(frozen=True, slots=True)
class Admission:
    """User ids and a group that may read; root always may."""

    users: frozenset[int]
    group: int | None = None

    @classmethod
    def of(cls, users: Collection[str], group: str | None) -> Admission:
        """Resolve names to ids; without any, the user who called sudo is admitted.

        Raises:
            UsageError: there is no such user or group.
        """
        try:
            ids = {pwd.getpwnam(user).pw_uid for user in users}
            gid = None if group is None else grp.getgrnam(group).gr_gid
        except KeyError as error:
            raise UsageError(f"{str(error).strip(chr(34))}: no such user or group") from None
        sudo = os.environ.get("SUDO_UID", "")
        if not ids and gid is None and sudo.isdecimal():
            ids = {int(sudo)}
        return cls(frozenset(ids), gid)

    def lets_in(self, peer: Peer) -> bool:
        """Whether a process may read."""
        return peer.user == 0 or peer.user in self.users or (self.group is not None and self.group in peer.groups)
