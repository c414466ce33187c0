"""Lists of processors as the kernel writes them: `0-3,8` (cpuset(7), list format)."""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import UsageError
from engine.text import safe_text, short_text, whole_number

MOST_CPUS = 1 << 16


def cpus_of(text: str) -> tuple[int, ...]:
    """Read a list, ascending and each once; none of a text of another form."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.strip().partition("-")
        low = whole_number(first)
        high = whole_number(last) if dash else low
        if low is None or high is None or not low <= high < MOST_CPUS:
            return ()
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def parse_cpus(text: str) -> tuple[int, ...]:
    """Read what somebody typed.

    Raises:
        UsageError: it is no list.
    """
    cpus = cpus_of(text)
    if not cpus:
        raise UsageError(f"'{safe_text(short_text(text, 80))}' is no list of processors: write it as 0-3,8")
    return cpus


def format_cpus(cpus: Iterable[int]) -> str:
    """Write a list: `0-3,8`."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
