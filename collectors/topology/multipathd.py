"""Facts only multipathd has: marginal paths, priorities, checkers, queueing without paths, failback. Read-only."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from engine._native import is_sysfs
from engine.text import safe_text, whole_number

SOCKETS = ("\0/org/kernel/linux/storage/multipathd", "/run/multipathd.socket")
"""Abstract since 0.4.8, in the filesystem beside it since 0.9.9 (multipath-tools, libmpathcmd/mpath_cmd.h)."""
ASK_S = 10.0
"""Interval of queries: an answer is work for the daemon, ..."""
SILENT_S = 60.0
"""... and the longer interval after it did not answer."""

_TIMEOUT_S = 2.0
_LENGTH = struct.Struct("@N")
_LONGEST = 8 << 20
_PATHS = 'show paths raw format "%d|%M|%p|%c|%T"'
"""Kernel name, marginal state, priority, checker and its result of each path; %M since 0.8.2 (libmultipath/print.c)."""
_MAPS = 'show maps raw format "%d|%F|%Q|%0|%1|%4"'
"""Kernel name, failback, queueing, path faults, switches of the group and timeouts of queueing of every map."""
_CONFIG = "show config local"
"""Settings with those of the storage that is there only."""
_CONFIG_EVERY = 6
"""Queries of paths and maps for each of the settings."""


class DaemonPath(NamedTuple):
    """Facts of one path from multipathd."""

    marginal: bool | None = None
    priority: int | None = None
    checker: str = ""
    checker_state: str = ""


UNKNOWN_PATH = DaemonPath()


class DaemonMap(NamedTuple):
    """Facts of one map from multipathd."""

    failback: str = ""
    queueing: str = ""
    path_faults: int | None = None
    group_switches: int | None = None
    queue_timeouts: int | None = None


UNKNOWN_MAP = DaemonMap()


class DaemonFacts(NamedTuple):
    """The answers to one round of queries."""

    paths: Mapping[str, DaemonPath]
    """Paths by kernel name, without those that the daemon does not know."""
    maps: Mapping[str, DaemonMap]
    """Maps by kernel name."""
    polling_interval_s: int | None = None
    """Shortest time between two checks of a path."""


NO_FACTS = DaemonFacts({}, {})


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
        self._facts = NO_FACTS
        self._rounds = 0
        self._asked = False
        self._asking: threading.Thread | None = None

    def facts(self) -> DaemonFacts:
        """Return the last answers; no facts if the daemon does not answer.

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
        return self._facts

    def _update(self) -> None:
        answer = self._ask(_PATHS)
        self._facts = NO_FACTS if answer is None else self._facts_after(parse_paths(answer))
        self._next_s = time.monotonic() + (SILENT_S if answer is None else self._ask_s)

    def _facts_after(self, paths: Mapping[str, DaemonPath]) -> DaemonFacts:
        """Complete an answer with those about maps and settings."""
        polling_interval_s, maps = self._facts.polling_interval_s, self._ask(_MAPS)
        if maps is not None and self._rounds % _CONFIG_EVERY == 0:
            polling_interval_s = parse_polling_interval(self._ask(_CONFIG) or "")
        self._rounds += 1
        return DaemonFacts(paths, parse_maps(maps or ""), polling_interval_s)

    def _ask(self, command: str) -> str | None:
        request = command.encode() + b"\0"
        for address in self._sockets:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                    end_s = time.monotonic() + _TIMEOUT_S
                    connection.settimeout(_TIMEOUT_S)
                    connection.connect(address)
                    connection.sendall(_LENGTH.pack(len(request)) + request)
                    (length,) = _LENGTH.unpack(_received(connection, _LENGTH.size, end_s))
                    return _received(connection, min(length, _LONGEST), end_s).decode("utf-8", "replace")
            except (OSError, EOFError):
                continue
        return None


def parse_paths(answer: str) -> dict[str, DaemonPath]:
    """Parse lines such as `sda|normal|50|tur|ready`; anything else (an error, an empty field) is ignored."""
    found = {}
    for line in answer.rstrip("\0").splitlines():
        name, *fields = (part.strip() for part in line.split("|"))
        marginal, priority, checker, state = (*fields, "", "", "", "")[:4]
        one = DaemonPath(
            {"marginal": True, "normal": False}.get(marginal), whole_number(priority), _known(checker), _known(state)
        )
        if one != UNKNOWN_PATH:
            found[name] = one
    return found


def parse_maps(answer: str) -> dict[str, DaemonMap]:
    """Parse lines such as `dm-0|immediate|5 chk|0|1|0`; anything else is ignored."""
    found = {}
    for line in answer.rstrip("\0").splitlines():
        name, *fields = (part.strip() for part in line.split("|"))
        if len(fields) == len(DaemonMap._fields):
            failback, queueing, *counts = fields
            found[name] = DaemonMap(
                _steady(failback, "pending"), _steady(queueing, "counting"), *map(whole_number, counts)
            )
    return found


_COUNTDOWN = re.compile(r"\d+ sec|\[.*")
"""What the daemon counts down: `12 sec` of queueing, or the bar `[XX........] 2/10` of a failback."""


def _steady(text: str, instead: str) -> str:
    """Replace a countdown by a word: it would be another fact at every query."""
    return instead if _COUNTDOWN.match(text) else safe_text(text)


def _known(text: str) -> str:
    return "" if text in {"undef", "[undef]", "-"} else safe_text(text)


_POLLING_INTERVAL = re.compile(r"^\s*polling_interval\s+\"?(\d{1,6})\"?\s*$", re.MULTILINE)


def parse_polling_interval(answer: str) -> int | None:
    """Find the interval in the settings; None if it is not in them."""
    match = _POLLING_INTERVAL.search(answer)
    return int(match[1]) if match else None


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
