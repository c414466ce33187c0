"""The gateways of a fleet: through which of them each host is reached, and which have failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from collectors.fleet.connect_pace import final_words, is_of_any_end

MOST_LOSSES = 3
"""Connections lost in a row, without words that say whose fault it is, after which a gateway counts as failed."""
_REFUSED_BY_GATEWAY = "administratively prohibited"
"""What ssh says where the gateway forwards nothing (AllowTcpForwarding of sshd_config(5))."""


def words_of_gateway(words: Sequence[str]) -> str:
    """Return the line in which ssh says why it did not get beyond the gateway; empty if there is none.

    Only then it says, too, that the connection through which it would have reached the host was closed: what the host
    itself refuses is said alone, and of a host that the gateway does not reach `open failed`.
    """
    line = final_words(words)
    is_of_host = "open failed" in line and _REFUSED_BY_GATEWAY not in line
    return line if any(map(is_of_any_end, words)) and not is_of_host else ""


class Gateways:
    """Moves hosts from a gateway that fails to another; used by the thread of the links only."""

    def __init__(self, of_host: Mapping[str, str], every: Sequence[str] = ()) -> None:
        self.of_host = dict(of_host)
        """The gateway by host as it is now; hosts without one are reached as ssh itself does."""
        self._every = tuple(dict.fromkeys((*every, *of_host.values())))
        self._tried: dict[str, set[str]] = {}
        self._losses: Counter[str] = Counter()
        self._failed: set[str] = set()

    def reached(self, host: str) -> None:
        """Note that a host answers."""
        gateway = self.of_host.get(host)
        if gateway is not None:
            self._losses[gateway] = 0

    def has_failed(self, gateway: str) -> bool:
        """Whether no other host should be reached through it."""
        return gateway in self._failed

    def lost(self, host: str, words: Sequence[str], *, was_connected: bool) -> str | None:
        """Note that a connection ended or was not made; return the gateway to try next, None where that is no help.

        Args:
            host: whose connection.
            words: what ssh said.
            was_connected: whether its agent had answered.
        """
        gateway = self.of_host.get(host)
        if gateway is None:
            return None
        if words_of_gateway(words):
            self._failed.add(gateway)
        elif not was_connected and (line := final_words(words)) and ("timed out" not in line or "open failed" in line):
            return None
        else:
            self._losses[gateway] += 1
            if self._losses[gateway] >= MOST_LOSSES:
                self._failed.add(gateway)
        return self.move(host)

    def move(self, host: str) -> str | None:
        """Give a host the gateway with the fewest hosts of those that it was not reached through; None without any."""
        tried = self._tried.setdefault(host, set())
        tried.add(self.of_host[host])
        used = Counter(self.of_host.values())
        living = [each for each in self._every if each not in self._failed and each not in tried]
        chosen = min(living, key=lambda each: used[each], default=None)
        if chosen is not None:
            self.of_host[host] = chosen
        return chosen
