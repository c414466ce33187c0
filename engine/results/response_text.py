"""Shares of I/Os within the requested response times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.results.latency_shares import share_between
from engine.results.measured import Measured

_A_LINE = 4


def response_lines(measured: Measured, limits_s: Sequence[float]) -> Iterator[str]:
    """Yield lines such as "within 5 ms 99.21 %  10 ms 100.00 %", none without limits or I/Os."""
    shares = [(limit_s, share_between(measured, -1, limit_s * 1e9)) for limit_s in limits_s]
    shown = [f"{1000 * limit_s:g} ms {share:.2f} %" for limit_s, share in shares if share is not None]
    for start in range(0, len(shown), _A_LINE):
        yield "within " + "  ".join(shown[start : start + _A_LINE])
