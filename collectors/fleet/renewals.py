"""When leases are renewed: each host at a time of its own, as clocks are known from how fast it answers."""

from __future__ import annotations

from collections.abc import Collection

_SHARE = 0.95
"""Of the interval: samples come on whole seconds, and no host is asked just then each time."""


class Renewals:
    """Spreads the renewals over the interval: answers that come at once wait for each other, and seem to be late."""

    def __init__(self, hosts: Collection[str], renew_s: float) -> None:
        self._hosts = tuple(hosts)
        self._apart_s = renew_s * _SHARE / max(1, len(hosts))
        self._begun_s: float | None = None
        self._renewed = 0
        """Renewals up to now, of which those that were too late were left out."""

    def due(self, now_s: float) -> list[str]:
        """Return the hosts to renew now, each once however long ago the last call was."""
        if self._begun_s is None:
            self._begun_s = now_s
        hosts, first = self._hosts, self._renewed
        self._renewed = int((now_s - self._begun_s) / self._apart_s) + 1
        return [hosts[number % len(hosts)] for number in range(max(first, self._renewed - len(hosts)), self._renewed)]
