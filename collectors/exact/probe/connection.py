"""Helper side of one reader: whether it is admitted, and its connection, on which the helper never blocks."""

from __future__ import annotations

import grp
import math
import os
import pwd
import socket
import struct
import time
from collections.abc import Collection
from typing import Self

from msgspec import Struct

from collectors.exact.probe.message import MOST_REQUEST_BYTES, Incoming, Message, encode
from engine.errors import UsageError

_CREDENTIALS = struct.Struct("iII")
"""struct ucred of unix(7): process, user and group id."""
_SO_PEERGROUPS = 59
"""asm-generic/socket.h, from Linux 4.13 on: the peer's supplementary groups, as 32-bit ids."""
_MOST_OPTION_BYTES = 1024
"""Largest buffer of Python's getsockopt."""


class Peer(Struct, frozen=True):
    """The process at the other end of a connection, with its credentials at connect time."""

    user: int
    groups: frozenset[int]

    @classmethod
    def of(cls, connection: socket.socket) -> Self:
        """Read the credentials from the kernel (SO_PEERCRED, SO_PEERGROUPS), never from a slow directory service.

        A process in more than 256 groups counts with the first one only.

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


class Admission(Struct, frozen=True):
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


REQUEST_S = 2.0
"""Timeout of a complete request, from its first byte on."""
ANSWER_S = 5.0
"""Timeout for the reader to receive an answer, from when it was ready."""

_PART_BYTES = 1 << 16


class Connection:
    """A non-blocking socket with its incoming request or outgoing answer.

    Only one of them is in progress: no request is read while an answer is unsent, so a reader that does not read delays
    only itself.
    """

    def __init__(self, connection: socket.socket, user: int) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.user = user
        self._incoming = Incoming(MOST_REQUEST_BYTES, 0)
        self._unsent = memoryview(b"")
        self._due_s = math.inf

    @property
    def has_unsent(self) -> bool:
        """Whether part of an answer is unsent."""
        return bool(self._unsent)

    @property
    def held_bytes(self) -> int:
        """Memory of an unfinished request or answer."""
        return self._incoming.held_bytes + len(self._unsent)

    @property
    def due_s(self) -> float:
        """Deadline of the request or answer in progress (CLOCK_MONOTONIC); infinite if there is none."""
        return self._due_s

    @property
    def delay(self) -> str:
        """Why a reader that missed its deadline is disconnected."""
        return "it did not take its answer" if self._unsent else "it did not finish its request"

    def receive(self) -> Message | None:
        """Read available bytes of a request; return it when complete.

        Raises:
            MessageError: the bytes are not a message, or the connection ended.
            OSError: the connection failed.
        """
        begun = self._incoming.begun
        try:
            message = self._incoming.add(self.socket.recv(min(self._incoming.wanted, _PART_BYTES)))
        except BlockingIOError:
            return None
        if message is not None:
            self._due_s = math.inf
        elif not begun:
            self._due_s = time.monotonic() + REQUEST_S
        return message

    def send(self, message: Message) -> None:
        """Send as much of a message as the socket takes; `flush` sends the rest.

        Raises:
            OSError: the connection failed.
        """
        self._unsent = memoryview(encode(message))
        self._due_s = time.monotonic() + ANSWER_S
        self.flush()

    def flush(self) -> None:
        """Send more of the rest.

        Raises:
            OSError: the connection failed.
        """
        try:
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent[:_PART_BYTES]) :]
        except BlockingIOError:
            return
        # The answer's memory is freed with its last view.
        self._unsent, self._due_s = memoryview(b""), math.inf

    def close(self) -> None:
        """Close the socket; may be called twice."""
        self.socket.close()
