"""I/O priorities of shares of the I/Os, as --io-priority names them: idle, 20%:realtime/0, read:64k:25%:best-effort/2.

The kernel's numbers are those of ioprio_set(2); since Linux 6.5 a hint can be added (include/uapi/linux/ioprio.h).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from engine.errors import UsageError
from engine.job.sizes import adds_up, format_number, format_size, parse_size
from engine.text import decimal_number

MOST_ENTRIES = 64
_CLASS_SHIFT, _HINT_SHIFT = 13, 3
_MOST_LEVEL, _MOST_HINT = 7, 1023
_ALL = 1 << 32
_DIRECTIONS = ("read", "write")
_PRIORITY = re.compile(r"([a-z-]+)(?:/([0-9]{1,2})(?:/([0-9]{1,4}))?)?", re.ASCII)


class PriorityClass(StrEnum):
    """Classes of ioprio_set(2); realtime needs CAP_SYS_NICE."""

    REALTIME = "realtime"
    BEST_EFFORT = "best-effort"
    IDLE = "idle"

    @property
    def number(self) -> int:
        """The kernel's number of it."""
        return list(PriorityClass).index(self) + 1


class IoPriority(Struct, frozen=True):
    """The priority of some of the I/Os."""

    kind: PriorityClass
    level: int = 0
    """0, the highest, to 7."""
    hint: int = 0
    """Hint for the device, such as a limit of time; 0: none."""
    percent: float | None = None
    """Share of the I/Os of its direction and size; None: all that no entry before it has."""
    direction: str = ""
    """read or write; empty: both."""
    block_bytes: int | None = None
    """Only I/Os of this size; None: of all."""

    @property
    def text(self) -> str:
        """As it is typed."""
        parts = [self.direction] if self.direction else []
        parts += [] if self.block_bytes is None else [format_size(self.block_bytes)]
        parts += [] if self.percent is None else [f"{format_number(self.percent)}%"]
        hint = f"/{self.hint}" if self.hint else ""
        level = f"/{self.level}" if self.level or hint else ""
        return ":".join([*parts, f"{self.kind}{level}{hint}"])


def parse_priorities(text: str) -> tuple[IoPriority, ...]:
    """Read entries, separated by commas.

    Raises:
        UsageError: one of them is none.
    """
    return tuple(_entry(part.strip().lower()) for part in text.split(","))


def format_priorities(priorities: Sequence[IoPriority]) -> str:
    """Write entries so that `parse_priorities` reads the same."""
    return ",".join(priority.text for priority in priorities)


def _entry(text: str) -> IoPriority:
    *parts, last = text.split(":")
    match = _PRIORITY.fullmatch(last)
    if match is None or match[1] not in list(PriorityClass):
        raise UsageError(f"{last[:40]!r} is no priority: write it like realtime/0, best-effort/4 or idle")
    direction = parts.pop(0) if parts and parts[0] in _DIRECTIONS else ""
    percent = None
    if parts and parts[-1].endswith("%"):
        percent = decimal_number(parts.pop().removesuffix("%"))
        if percent is None:
            raise UsageError(f"{text[:40]!r} has a share that is no number: write it like 20%:realtime/0")
    block_bytes = parse_size(parts.pop()) if parts else None
    if parts:
        raise UsageError(f"{text[:40]!r}: write it like read:64k:25%:best-effort/2, of which only the last is needed")
    level, hint = int(match[2] or 0), int(match[3] or 0)
    return IoPriority(PriorityClass(match[1]), level, hint, percent, direction, block_bytes)


def priority_problems(priorities: Sequence[IoPriority]) -> Iterator[str]:
    """List what is wrong with them."""
    if len(priorities) > MOST_ENTRIES:
        yield f"{len(priorities)} entries: at most {MOST_ENTRIES}"
    for each in priorities:
        if not 0 <= each.level <= _MOST_LEVEL or not 0 <= each.hint <= _MOST_HINT:
            yield f"{each.text}: levels are 0 to {_MOST_LEVEL}, hints 0 to {_MOST_HINT}"
        if each.percent is not None and not 0 <= each.percent <= 100:
            yield f"{format_number(each.percent)} % is out of range: 0 to 100"
        if each.block_bytes is not None and each.block_bytes < 1:
            yield f"{each.text}: a size is 1 byte or more"
    for total in _shares(priorities).values():
        if total > 100 and not adds_up([total]):
            yield f"the shares of one size and direction add up to {format_number(total)} %: at most 100"


def _shares(priorities: Sequence[IoPriority]) -> dict[tuple[str, int | None], float]:
    found: dict[tuple[str, int | None], float] = defaultdict(float)
    for each in priorities:
        for direction in _directions(each):
            found[direction, each.block_bytes] += each.percent or 0.0
    return found


def _directions(priority: IoPriority) -> tuple[str, ...]:
    return (priority.direction,) if priority.direction else _DIRECTIONS


def kernel_rules(priorities: Sequence[IoPriority]) -> list[tuple[bool, int, int, int]]:
    """Make the rules of the engine; the first that fits gives the priority.

    Each: whether it is of reads, the size or 0, below which of 2^32 draws it holds, and the kernel's number.
    """
    added: dict[tuple[str, int | None], float] = defaultdict(float)
    rules = []
    for each in priorities:
        value = each.kind.number << _CLASS_SHIFT | each.hint << _HINT_SHIFT | each.level
        for direction in _directions(each):
            key = direction, each.block_bytes
            added[key] += 100.0 if each.percent is None else each.percent
            below = min(round(added[key] / 100 * _ALL), _ALL)
            rules.append((direction == "read", each.block_bytes or 0, below, value))
    return rules
