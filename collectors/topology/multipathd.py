"""What multipathd says that neither sysfs nor the device mapper does: which paths it calls marginal. Only ever asks."""

from __future__ import annotations

import os
import socket
import struct
import time

SOCKETS = ("\0/org/kernel/linux/storage/multipathd", "/run/multipathd.socket")
"""Abstract since 0.4.8, in the filesystem beside it since 0.9.9 (multipath-tools, libmpathcmd/mpath_cmd.h)."""
ASK_S = 10.0
"""The daemon does the work of an answer, so it is asked seldom, ..."""
SILENT_S = 60.0
"""... and still more seldom after it did not answer."""

_TIMEOUT_S = 2.0
_LENGTH = struct.Struct("@N")
_LONGEST = 8 << 20
_COMMAND = b'show paths raw format "%d|%M"\0'
"""Kernel name and marginal state of every path; %M since 0.8.2 (libmultipath/print.c)."""


def same_kernel(sysfs: str) -> bool:
    """Whether a sysfs is that of the kernel this process runs on, so that its daemons and ioctls speak of it."""
    try:
        here, there = os.stat("/sys"), os.stat(sysfs)  # noqa: PTH116 identity only
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


class MultipathDaemon:
    """Asks multipathd now and then; between two answers the last one stands."""

    def __init__(self, sockets: tuple[str, ...] = SOCKETS, ask_s: float = ASK_S) -> None:
        self._sockets = sockets
        self._ask_s = ask_s
        self._next_s = 0.0
        self._marginal: dict[str, bool] = {}

    def marginal(self) -> dict[str, bool]:
        """Whether paths are marginal, by kernel name; those the daemon does not know are left out."""
        if time.monotonic() >= self._next_s:
            answer = self._ask()
            self._marginal = {} if answer is None else parse_paths(answer)
            self._next_s = time.monotonic() + (SILENT_S if answer is None else self._ask_s)
        return self._marginal

    def _ask(self) -> str | None:
        for address in self._sockets:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                    connection.settimeout(_TIMEOUT_S)
                    connection.connect(address)
                    connection.sendall(_LENGTH.pack(len(_COMMAND)) + _COMMAND)
                    (length,) = _LENGTH.unpack(_received(connection, _LENGTH.size))
                    return _received(connection, min(length, _LONGEST)).decode("utf-8", "replace")
            except (OSError, EOFError):
                continue
        return None


def parse_paths(answer: str) -> dict[str, bool]:
    """Read lines such as `sda|normal`; anything else (an error, an older daemon's empty field) is passed over."""
    found = {}
    for line in answer.rstrip("\0").splitlines():
        name, bar, state = line.partition("|")
        if bar and state.strip() in {"marginal", "normal"}:
            found[name.strip()] = state.strip() == "marginal"
    return found


def _received(connection: socket.socket, length: int) -> bytes:
    """Receive so many bytes.

    Raises:
        EOFError: the other side closed before.
        OSError: it did not answer in time.
    """
    parts, left = [], length
    while left:
        part = connection.recv(min(left, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
