"""How many connections are begun at once: additive increase, halved on refusal, as TCP paces a link.

An sshd drops connections at random from 10 unauthenticated ones on (MaxStartups 10:30:100, sshd_config(5)); all hosts
behind one gateway share that of the gateway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

FIRST = 8
MOST = 64
"""Largest window of a gateway, and of all of them: each connection takes CPU time here, too."""
AT_ONCE = 8
"""Connections begun before other work is done."""
RETRIES = 12
"""Attempts after which a host counts as refused."""
_DROPPED = ("kex_exchange_identification", "ssh_exchange_identification", "Connection closed by", "Connection reset by")
_FINAL = (
    "Connection refused",
    "Connection timed out",
    "Could not resolve hostname",
    "Host key verification failed",
    "Network is unreachable",
    "No route to host",
    "Permission denied",
    "Too many authentication failures",
    "open failed",
)


def was_dropped(words: Sequence[str]) -> bool:
    """Whether ssh says that an overloaded sshd dropped the connection, so that another attempt may succeed."""
    return any(map(is_of_any_end, words)) and not final_words(words)


def final_words(words: Sequence[str]) -> str:
    """Return the line in which ssh says why no other attempt can succeed; empty if there is none.

    After a gateway's, ssh says what it says of a dropped connection, too.
    """
    return next((line for line in words if not is_of_any_end(line) and any(each in line for each in _FINAL)), "")


def is_of_any_end(line: str) -> bool:
    """Whether ssh says this of every connection that ended early, whatever the cause."""
    return any(each in line for each in _DROPPED)


class ConnectPace:
    """The hosts behind one gateway that wait for their connection, and how many may be under way."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self._waiting = deque(hosts)
        self._retry_s: dict[str, float] = {}
        self._window = float(FIRST)
        self._under_way: set[str] = set()

    @property
    def window(self) -> int:
        """How many may be under way now."""
        return int(self._window)

    @property
    def under_way(self) -> int:
        """How many are."""
        return len(self._under_way)

    def add(self, host: str) -> None:
        """Have another host wait."""
        self._waiting.append(host)

    def give_up(self) -> list[str]:
        """Return the hosts that wait, which from now on wait elsewhere."""
        waiting = [*self._waiting, *self._retry_s]
        self._waiting.clear()
        self._retry_s.clear()
        return waiting

    def begin(self, now_s: float, most: int) -> list[str]:
        """Return the hosts to connect to now, up to a number."""
        due = [host for host, at_s in self._retry_s.items() if at_s <= now_s]
        for host in due:
            del self._retry_s[host]
            self._waiting.append(host)
        begun: list[str] = []
        while self._waiting and len(self._under_way) < self.window and len(begun) < most:
            begun.append(self._waiting.popleft())
            self._under_way.add(begun[-1])
        return begun

    def connected(self, host: str) -> None:
        """Note that a host answers: one more for each full window of answers."""
        if host in self._under_way:
            self._under_way.discard(host)
            self._window = min(self._window + 1.0 / max(self._window, 1.0), MOST)

    def dropped(self, host: str, retry_s: float) -> None:
        """Note that an sshd dropped a connection; try again at a time."""
        if host in self._under_way:
            self._under_way.discard(host)
            self._window = max(self._window / 2, 1.0)
        self._retry_s[host] = retry_s

    def failed(self, host: str) -> None:
        """Note that a connection failed for another reason."""
        self._under_way.discard(host)
