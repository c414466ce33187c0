"""Parsers of the limits of a control group; lines in an unknown format are ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from collectors.model import MISSING
from collectors.tables.cgroup.schema import LIMITS
from engine.text import whole_number

Number = tuple[int, int]
"""Major and minor of a device."""
Limits = Mapping[Number, tuple[int, ...]]
"""Limits by device, in the order of LIMITS; MISSING where there is none."""

_MAX_KEYS = ("rbps", "wbps", "riops", "wiops")
_MISSING = int(MISSING)


def io_max(text: bytes) -> Limits:
    """Read `io.max`: "8:16 rbps=2097152 wbps=max riops=max wiops=120"."""
    limits = {}
    for line in text.decode("utf-8", "replace").splitlines():
        device, _, rest = line.partition(" ")
        number, found = _number(device), dict(_pairs(rest.split()))
        if number is not None:
            limits[number] = tuple(_count(found.get(key)) for key in _MAX_KEYS)
    return limits


def blkio_limits(texts: Iterable[bytes]) -> Limits:
    """Read the files `blkio.throttle.*_device` of cgroup v1 in the order of LIMITS: "8:16 2097152"."""
    limits: dict[Number, list[int]] = {}
    for column, text in enumerate(texts):
        for line in text.decode("utf-8", "replace").splitlines():
            device, _, limit = line.partition(" ")
            number = _number(device)
            if number is not None:
                limits.setdefault(number, [_MISSING] * len(LIMITS))[column] = _count(limit.strip())
    return {number: tuple(row) for number, row in limits.items()}


def _pairs(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((key, value) for key, _, value in (word.partition("=") for word in words))


def _number(text: str) -> Number | None:
    major, _, minor = text.partition(":")
    numbers = whole_number(major), whole_number(minor)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _count(text: str | None) -> int:
    count = None if text is None else whole_number(text)
    return count if count is not None and count < _MISSING else _MISSING
