"""Facts only multipathd has: marginal paths and priorities. Read-only."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from engine._native import is_sysfs

SOCKETS = ("\0/org/kernel/linux/storage/multipathd", "/run/multipathd.socket")
"""Abstract since 0.4.8, in the filesystem beside it since 0.9.9 (multipath-tools, libmpathcmd/mpath_cmd.h)."""
ASK_S = 10.0
"""Interval of queries: an answer is work for the daemon, ..."""
SILENT_S = 60.0
"""... and the longer interval after it did not answer."""

_TIMEOUT_S = 2.0
_LENGTH = struct.Struct("@N")
_LONGEST = 8 << 20
_COMMAND = b'show paths raw format "%d|%M|%p"\0'
"""Kernel name, marginal state and priority of every path; %M since 0.8.2 (libmultipath/print.c)."""


class DaemonPath(NamedTuple):
    """Facts of one path from multipathd."""

    marginal: bool | None = None
    priority: int | None = None


UNKNOWN_PATH = DaemonPath()


def same_kernel(sysfs: str) -> bool:
    """Whether a sysfs is that of the running kernel, so that daemons and ioctls refer to the same devices.

    Every mount of sysfs is, including those of containers, which have their own device numbers.
    """
    return is_sysfs(sysfs)


class MultipathDaemon:
    """Queries multipathd periodically; between two answers the last one is used."""

    def __init__(self, sockets: tuple[str, ...] = SOCKETS, ask_s: float = ASK_S) -> None:
        self._sockets = sockets
        self._ask_s = ask_s
        self._next_s = 0.0
        self._paths: Mapping[str, DaemonPath] = {}
        self._asked = False
        self._asking: threading.Thread | None = None

    def paths(self) -> Mapping[str, DaemonPath]:
        """Return the last answer by kernel name, without paths unknown to the daemon.

        Only the first call waits for the daemon: when many paths fail, it is slow while ticks must not be.
        """
        is_asking = self._asking is not None and self._asking.is_alive()
        if time.monotonic() >= self._next_s and not is_asking:
            if not self._asked:
                self._asked = True
                self._update()
            else:
                self._asking = threading.Thread(target=self._update, name="lunscope-multipathd", daemon=True)
                self._asking.start()
        return self._paths

    def _update(self) -> None:
        answer = self._ask()
        self._paths = {} if answer is None else parse_paths(answer)
        self._next_s = time.monotonic() + (SILENT_S if answer is None else self._ask_s)

    def _ask(self) -> str | None:
        for address in self._sockets:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                    end_s = time.monotonic() + _TIMEOUT_S
                    connection.settimeout(_TIMEOUT_S)
                    connection.connect(address)
                    connection.sendall(_LENGTH.pack(len(_COMMAND)) + _COMMAND)
                    (length,) = _LENGTH.unpack(_received(connection, _LENGTH.size, end_s))
                    return _received(connection, min(length, _LONGEST), end_s).decode("utf-8", "replace")
            except (OSError, EOFError):
                continue
        return None


def parse_paths(answer: str) -> dict[str, DaemonPath]:
    """Parse lines such as `sda|normal|50`; anything else (an error, an older daemon's empty field) is ignored."""
    found = {}
    for line in answer.rstrip("\0").splitlines():
        name, *fields = (part.strip() for part in line.split("|"))
        marginal, priority = (*fields, "", "")[:2]
        one = DaemonPath(
            {"marginal": True, "normal": False}.get(marginal), int(priority) if priority.isdecimal() else None
        )
        if one != UNKNOWN_PATH:
            found[name] = one
    return found


def _received(connection: socket.socket, length: int, end_s: float) -> bytes:
    """Receive this many bytes until a deadline of CLOCK_MONOTONIC, however slowly they arrive.

    Any process may listen at the abstract address on a host without multipathd.

    Raises:
        EOFError: the peer closed the connection before.
        OSError: it did not answer in time.
    """
    parts, left = [], length
    while left:
        connection.settimeout(max(0.001, end_s - time.monotonic()))
        part = connection.recv(min(left, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
