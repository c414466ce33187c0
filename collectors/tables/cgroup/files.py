"""Parsers of the I/O files of a control group; lines in an unknown format are ignored."""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.model import MISSING
from collectors.tables.cgroup.schema import COSTS, COUNTS, LIMITS, VRATE
from engine._native import numbers_in
from engine.text import whole_number

Number = tuple[int, int]
"""Major and minor of a device."""
Limits = Mapping[Number, tuple[int, ...]]
"""By device, in the order of LIMITS; MISSING where there is none."""

_STAT_WORDS = (
    *(b"rbytes=", b"wbytes=", b"rios=", b"wios=", b"dbytes=", b"dios="),
    *(b"cost.usage=", b"cost.wait=", b"cost.indebt=", b"cost.indelay="),
)
_OTHER_WORDS = (b"use_delay=", b"delay_nsec=", b"depth=", b"avg_lat=", b"win=")
"""Keys that io.latency adds with blkcg_debug_stats."""
_MAX_KEYS = ("rbps", "wbps", "riops", "wiops")
_DIGITS = string.digits.encode()
_MISSING = int(MISSING)
WIDTH = len(COUNTS) + len(COSTS) + len((VRATE,))
"""Number of columns of the CGROUP table from the counter files, the first ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counters of one group: a row per device, the first WIDTH columns of the CGROUP table."""

    devices: tuple[Number, ...]
    values: NDArray[np.uint64]


NO_COUNTS = Counts((), np.empty((0, WIDTH), np.uint64))


def io_stat(text: bytes) -> Counts:
    """Read `io.stat`: "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6 cost.usage=7 ...", a line per device.

    A device without any number after it, as some kernels print it, has no row.
    """
    alike = _lines_alike(text)
    if alike is not None:
        return alike
    known = [_lines_alike(line) or _line(line) for line in text.splitlines(keepends=True)]
    if not known:
        return NO_COUNTS
    devices = tuple(device for counts in known for device in counts.devices)
    return Counts(devices, np.concatenate([counts.values for counts in known]))


def _lines_alike(text: bytes) -> Counts | None:
    """Parse lines with equal keys all at once: there may be hundreds of groups with dozens of devices each."""
    structure = text.translate(None, _DIGITS)
    lines, first = structure.count(b"\n"), structure.partition(b"\n")[0]
    columns = _columns_of(first) if structure == (first + b"\n") * lines else None
    if columns is None:
        return None
    numbers = numbers_in(text)
    if numbers.size != lines * columns.numbers:
        return None
    table = numbers.reshape(lines, columns.numbers)
    values = np.full((lines, WIDTH), MISSING, np.uint64)
    values[:, columns.to] = table[:, columns.at]
    if columns.vrate:
        values[:, -1] = 100 * table[:, columns.vrate] + table[:, columns.vrate + 1]
    return Counts(_devices_of(table[:, :2].tobytes()), values)


@functools.lru_cache(maxsize=1024)
def _devices_of(numbers: bytes) -> tuple[Number, ...]:
    """Return the same object for the same devices, most groups having those of others or of their previous reading."""
    return tuple((major, minor) for major, minor in np.frombuffer(numbers, np.uint64).reshape(-1, 2).tolist())


def _line(line: bytes) -> Counts:
    """Parse a line with keys of other kernels."""
    device, _, rest = line.decode("utf-8", "replace").partition(" ")
    number, found = _number(device), dict(_pairs(rest.split()))
    counts = [_count(found.get(word[:-1].decode())) for word in _STAT_WORDS]
    return _counts({} if number is None or min(counts) == _MISSING else {number: (*counts, _MISSING)})


@dataclass(frozen=True, slots=True)
class _Columns:
    """Mapping of the numbers of a line to columns."""

    numbers: int
    at: slice | list[int]
    to: slice | list[int]
    vrate: int
    """Position of a percentage, followed by its hundredths; 0 for none."""


@functools.lru_cache(maxsize=64)
def _columns_of(structure: bytes) -> _Columns | None:
    """Map a line, given without its digits, to columns; None if it is not one of `io.stat`."""
    device, *words = structure.split(b" ")
    count, at, to, vrate = 2, [], [], 0
    for word in words:
        if word in _STAT_WORDS:
            at.append(count)
            to.append(_STAT_WORDS.index(word))
        elif word == b"cost.vrate=.":
            vrate = count
        elif word and word not in _OTHER_WORDS:
            return None
        count += {b"": 0, b"cost.vrate=.": 2}.get(word, 1)
    return _Columns(count, _sliced(at), _sliced(to), vrate) if device == b":" and at else None


def _sliced(positions: list[int]) -> slice | list[int]:
    """Return positions without gaps as a slice, which numpy copies faster."""
    whole = positions == list(range(positions[0], positions[0] + len(positions))) if positions else False
    return slice(positions[0], positions[0] + len(positions)) if whole else positions


def blkio(service_bytes: bytes, serviced: bytes) -> Counts:
    """Read `blkio.throttle.io_service_bytes*` and `io_serviced*` of cgroup v1: "8:16 Read 4096", a line per kind."""
    amounts, counts = _blocks_alike(service_bytes), _blocks_alike(serviced)
    if amounts is None or counts is None or amounts[0] != counts[0]:
        return _any_blkio(service_bytes, serviced)
    values = np.full((len(amounts[0]), WIDTH), MISSING, np.uint64)
    values[:, _BYTES], values[:, _IOS] = amounts[1], counts[1]
    return Counts(amounts[0], values)


_KINDS = {"Read": 0, "Write": 1, "Discard": 2}
_BYTES, _IOS = [0, 1, 4], [2, 3, 5]
"""Columns of reads, writes and discards."""
_BLOCK = b"".join(b": %s \n" % kind for kind in (b"Read", b"Write", b"Sync", b"Async", b"Discard", b"Total"))
_KIND_ROWS = [0, 1, 4]


def _blocks_alike(text: bytes) -> tuple[tuple[Number, ...], NDArray[np.uint64]] | None:
    """Parse the lines of current kernels all at once: devices, and a column per kind; None for other formats."""
    body = text.rpartition(b"Total ")[0]
    structure = body.translate(None, _DIGITS)
    devices = len(structure) // len(_BLOCK)
    if structure != _BLOCK * devices:
        return None
    numbers = numbers_in(body)
    if numbers.size != 18 * devices:
        return None
    table = numbers.reshape(devices, 6, 3)
    return _devices_of(table[:, 0, :2].tobytes()), table[:, _KIND_ROWS, 2]


def _any_blkio(service_bytes: bytes, serviced: bytes) -> Counts:
    rows: dict[Number, list[int]] = {}
    for text, columns in ((service_bytes, _BYTES), (serviced, _IOS)):
        for line in text.decode("utf-8", "replace").splitlines():
            words = line.split()
            number = _number(words[0]) if len(words) == 3 else None
            if number is not None and words[1] in _KINDS:
                row = rows.setdefault(number, [_MISSING] * WIDTH)
                row[columns[_KINDS[words[1]]]] = _count(words[2])
    return _counts(rows)


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


def pressure(text: bytes) -> tuple[int, int]:
    """Read `io.pressure`: microseconds in which some and all tasks waited, MISSING if not reported.

    "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", likewise "full" (Documentation/accounting/psi.rst).
    """
    totals = dict.fromkeys((b"some", b"full"), _MISSING)
    for line in text.splitlines():
        share, _, total = line[:4], *line.rpartition(b"total=")[1:]
        if share in totals:
            totals[share] = _count(total.decode("ascii", "replace"))
    return totals[b"some"], totals[b"full"]


def _counts(rows: Mapping[Number, Iterable[int]]) -> Counts:
    values = np.array([list(row) for row in rows.values()], np.uint64).reshape(-1, WIDTH)
    return Counts(tuple(rows), values)


def _pairs(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((key, value) for key, _, value in (word.partition("=") for word in words))


def _number(text: str) -> Number | None:
    major, _, minor = text.partition(":")
    numbers = whole_number(major), whole_number(minor)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _count(text: str | None) -> int:
    count = None if text is None else whole_number(text)
    return count if count is not None and count < _MISSING else _MISSING
