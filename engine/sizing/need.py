"""What is needed of storage: a throughput, and limits of latency, such as `300k IOPS, p99<2ms`."""

from __future__ import annotations

import re

from msgspec import Struct

from engine.errors import UsageError
from engine.sweep.limit import Limit
from engine.text import safe_text, short_text

_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*"
_IOPS = re.compile(_NUMBER + r"([kmg]?)\s*iops", re.ASCII | re.IGNORECASE)
_BYTES = re.compile(_NUMBER + r"([kmgKMG]?)(i?)B/s", re.ASCII)
"""The B is large: Gb/s are bits."""
_PREFIXES = ("", "k", "M", "G")
_FORM = "write it like '300k IOPS, p99<2ms' or '2 GB/s, mean<5ms'"


class Need(Struct, frozen=True):
    """A throughput that is to be reached within limits."""

    iops: float | None = None
    bytes_per_s: float | None = None
    limits: tuple[Limit, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Need:
        """Read `300k IOPS, p99<2ms`.

        Raises:
            UsageError: it is no need, has no throughput, or says something twice.
        """
        iops, amounts, limits = list[float](), list[float](), list[Limit]()
        for part in map(str.strip, text.split(",")):
            if match := _IOPS.fullmatch(part):
                iops.append(float(match[1]) * 1000 ** _power(match[2]))
            elif match := _BYTES.fullmatch(part):
                amounts.append(float(match[1]) * (1024 if match[3] else 1000) ** _power(match[2]))
            elif "<" in part:
                limits.append(Limit.parse(part))
            else:
                raise UsageError(f"{safe_text(short_text(part, 80))!r} is neither a throughput nor a limit: {_FORM}")
        if not iops and not amounts:
            raise UsageError(f"{safe_text(short_text(text, 80))!r} names no throughput: {_FORM}")
        if len(iops) > 1 or len(amounts) > 1 or len({limit.metric for limit in limits}) < len(limits):
            raise UsageError(f"{safe_text(short_text(text, 80))!r} says something twice: give each once")
        if min((*iops, *amounts)) < 1:
            raise UsageError(f"{safe_text(short_text(text, 80))!r}: a throughput is at least 1 per second")
        return cls(next(iter(iops), None), next(iter(amounts), None), tuple(limits))

    @property
    def text(self) -> str:
        """As it is typed."""
        parts = [] if self.iops is None else ["{}{} IOPS".format(*_scaled(self.iops, 1000))]
        parts += [] if self.bytes_per_s is None else [_bytes_text(self.bytes_per_s)]
        return ", ".join((*parts, *(limit.text for limit in self.limits)))

    @property
    def limits_text(self) -> str:
        """Its limits, as they are typed; empty without any."""
        return " and ".join(limit.text for limit in self.limits)

    def iops_of(self, bytes_per_io: float) -> float:
        """Return the I/Os per second that are needed, of I/Os of this mean size."""
        of_bytes = 0.0 if self.bytes_per_s is None else self.bytes_per_s / bytes_per_io
        return max(self.iops or 0.0, of_bytes)


def _power(prefix: str) -> int:
    return ("", "K", "M", "G").index(prefix.upper())


def _bytes_text(bytes_per_s: float) -> str:
    for step, letter in ((1000, ""), (1024, "i")):
        number, prefix = _scaled(bytes_per_s, step)
        if prefix:
            return f"{number} {prefix}{letter}B/s"
    return f"{number} B/s"


def _scaled(value: float, step: int) -> tuple[str, str]:
    """Write a number with the largest prefix that leaves it whole."""
    for power in (3, 2, 1):
        unit = step**power
        if value >= unit and value % unit == 0:
            return f"{value / unit:.0f}", _PREFIXES[power]
    return f"{value:.15g}", ""
