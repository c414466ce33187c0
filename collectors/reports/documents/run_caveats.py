"""What to know before believing a run, and what went wrong in it, in words, from its document."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar

from msgspec import Struct

from collectors.reports.documents.json_values import Values, number, part, parts, text_of, texts
from engine.backend.outstanding import Outstanding, Stall
from engine.errors import error_words
from engine.job.sizes import human_size
from engine.results.layout_result import PathOutcome
from engine.study.decoded import Count, Figure, decoded
from engine.verify.damage import damage_verdict

_MOST = 16
"""Lines of one kind; JSON has all."""
_Read = TypeVar("_Read")


def caveats_of(run: Values) -> Iterator[str]:
    """Yield a line for each."""
    for badge in parts(run, "badges"):
        about = texts(badge, "targets")
        more = f" and {len(about) - _MOST} more" if len(about) > _MOST else ""
        named = f"{', '.join(about[:_MOST])}{more}: " if about else ""
        yield f"{text_of(badge.get('label'))}: {named}{text_of(badge.get('text'))}"
    yield from texts(run, "notices")
    for target in parts(part(run, "verify"), "targets"):
        yield f"verify {text_of(target.get('name'))}: {_verified(target)}"
        yield from _most(
            f"damage: {text_of(target.get('name'))}: {text_of(each.get('text'))}" for each in parts(target, "damage")
        )
    yield from _most(each.text for each in _read(run, "paths", _Path))
    if run.get("failure"):
        yield f"failed: {text_of(run.get('failure'))}"
    yield from _most(each.text for each in _read(run, "errors", _Error))
    yield from _most(each.text for each in _read(run, "stalls", _Stall))
    yield from (each.text for each in _read(run, "outstanding", _Outstanding))


def _most(lines: Iterator[str]) -> Iterator[str]:
    found = list(lines)
    yield from found[:_MOST]
    if len(found) > _MOST:
        yield f"and {len(found) - _MOST:,} more"


def _read(run: Values, key: str, kind: type[_Read]) -> Iterator[_Read]:
    """Read a list; what is damaged in it is left out."""
    return (each for found in parts(run, key) if (each := decoded(kind, found)) is not None)


class _Error(Struct, frozen=True):
    target: str
    direction: str
    errno: int
    ios: Count
    first_offset: Count

    @property
    def text(self) -> str:
        what = f"{self.ios:,} {self.direction}{'' if self.ios == 1 else 's'} failed: {error_words(self.errno)}"
        return f"error: {self.target}: {what}, first at offset {self.first_offset}"


class _Path(Struct, frozen=True):
    target: str
    path: str
    failed_at: datetime
    failed_s: Figure
    ios_retried: Count
    returned_at: datetime | None = None
    returned_s: Figure | None = None

    @property
    def text(self) -> str:
        return PathOutcome(
            self.target,
            self.path,
            _ns(self.failed_at),
            self.failed_s,
            self.ios_retried,
            None if self.returned_at is None else _ns(self.returned_at),
            self.returned_s,
        ).text


def _ns(time: datetime) -> int:
    return round(time.timestamp() * 1e3) * 1_000_000


class _Waits(Struct, frozen=True):
    target: str
    call: str
    ios: Count

    @property
    def own_call(self) -> str:
        return "" if self.call == "io" else self.call


class _Stall(_Waits, frozen=True):
    since_s: float
    lasted_s: Figure
    returned: bool
    at_end: bool

    @property
    def text(self) -> str:
        stall = Stall(self.target, self.ios, 0, round(1e9 * self.lasted_s), self.returned, call=self.own_call)
        return f"stall: from {max(self.since_s, 0):.1f} s on {stall.text}{', past the end' if self.at_end else ''}"


class _Outstanding(_Waits, frozen=True):
    oldest_s: Figure

    @property
    def text(self) -> str:
        what = Outstanding(self.target, self.ios, 0, self.own_call).what
        waited = f"given up after {self.oldest_s:.1f} s"
        return f"outstanding: {what} never came back: {waited}; in no figure above; the kernel still holds them"


def _verified(target: Values) -> str:
    """Say what a verified load compared on one target."""
    reads, damaged = part(target, "reads"), number(target, "damaged_ranges")
    if not (number(target, "written_bytes") > 0 or number(reads, "damaged_ranges") > 0):
        return "this load wrote nothing, so there was nothing to compare with: give --rw randrw, or use lunscope verify"
    read = f"{_size(reads, 'checked_bytes')} of reads compared"
    if number(reads, "raced_bytes") > 0:
        read += f", {_size(reads, 'raced_bytes')} met a write and were not"
    last = part(target, "final_pass")
    at_end = "the final pass was not made"
    if last:
        total = {"bytes": number(last, "good_bytes") + number(last, "damaged_bytes")}
        at_end = f"{_size(total, 'bytes')} read back at the end"
    verdict = damage_verdict(int(damaged)) if damaged >= 0 else "-"
    return f"{_size(target, 'written_bytes')} written, {read}; {at_end}; {verdict}"


def _size(values: Values, key: str) -> str:
    size = number(values, key)
    return human_size(int(size)) if 0 <= size < 1 << 62 else "-"
