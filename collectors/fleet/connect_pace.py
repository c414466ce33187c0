"""How many connections are begun at once: additive increase, halved on refusal, as TCP paces a link.

An sshd drops connections at random from 10 unauthenticated ones on (MaxStartups 10:30:100, sshd_config(5)); all hosts
behind one gateway share that of the gateway.
"""

from __future__ import annotations

from collections import deque

FIRST = 8
MOST = 64
"""Largest window of a gateway, and of all of them: each connection takes CPU time here, too."""
AT_ONCE = 8
"""Connections begun before other work is done."""
RETRIES = 12
"""Attempts after which a host counts as refused."""
_DROPPED = ("kex_exchange_identification", "ssh_exchange_identification", "Connection closed by", "Connection reset by")


def was_dropped(words: str) -> bool:
    """Whether ssh says that an overloaded sshd dropped the connection, so that another attempt may succeed."""
    return any(each in words for each in _DROPPED)


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

    def begin(self, now_s: float, most: int) -> list[str]:
        """Return the hosts to connect to now, at most so many."""
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
