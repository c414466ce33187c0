"""Who may read what the helper traces: the names of other people's processes are among it."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
from collections.abc import Collection
from dataclasses import dataclass

from engine.errors import UsageError

_CREDENTIALS = struct.Struct("iII")
"""struct ucred of unix(7): process, user and group id."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Users by id, and a group whose members are let in; root always is."""

    users: frozenset[int]
    group: int | None = None

    @classmethod
    def of(cls, users: Collection[str], group: str | None) -> Admission:
        """Look names up; where none are given the user who called sudo is let in.

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

    def lets_in(self, connection: socket.socket) -> bool:
        """Whether the process at the other end may read, by what the kernel says of it (SO_PEERCRED)."""
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, group = _CREDENTIALS.unpack(raw)
        return user == 0 or user in self.users or (self.group is not None and self.group in _groups(user, group))


def _groups(user: int, group: int) -> set[int]:
    try:
        return {group, *os.getgrouplist(pwd.getpwuid(user).pw_name, group)}
    except KeyError:
        return {group}
