"""Text of node sets, checked and counted before ClusterShell reads it: it runs commands for groups, and has no limit.

The text may come from a job file, which is somebody else's. ClusterShell puts names of groups into commands for the
shell (groups.conf(5)) and makes every host of a range, however many they are, so both are decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from engine.errors import UsageError
from engine.text import safe_text, short_text

MOST_HOSTS = 10_000
"""Most hosts of a node set, and of each part of it."""
_MOST_WORK = 10 * MOST_HOSTS
"""Most hosts that the parts name together: what they cost before set operations make fewer of them."""
_OPERATORS = ",!&^"
"""Union, difference, intersection, symmetric difference: from left to right, as in nodeset(1)."""
_MOST_DIGITS = 18
_MOST_SHOWN = 60
_MOST_RANGES = 1_000
_MOST_CHARACTERS = 255
"""Longest name of a host (RFC 1035)."""
_NAME = re.compile(r"(?:[a-z0-9_][a-z0-9_.+-]*@)?[a-z0-9_:][a-z0-9_.:-]*", re.ASCII | re.IGNORECASE)
_OF_NAMES = re.compile(r"[a-z0-9_.:@+-]*", re.ASCII | re.IGNORECASE)
_GROUP = re.compile(r"@(?:[a-z0-9_][a-z0-9_.-]*:)?(?:\*|[a-z0-9_][a-z0-9_.-]*)", re.ASCII | re.IGNORECASE)
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*(?:/\s*([0-9]+))?)?\s*", re.ASCII)


class NodeSetError(UsageError):
    """Text that is no node set; the message says why, without the text."""


class NodeTerm(Struct, frozen=True):
    """A part of a node set, and what is done with it."""

    operator: str
    text: str

    @property
    def is_group(self) -> bool:
        """Whether it names groups, as in `@rack4`."""
        return self.text.startswith("@")

    @property
    def has_wildcard(self) -> bool:
        """Whether it stands for all known hosts that it matches."""
        return "*" in self.text or "?" in self.text


def terms(text: str, *, groups: bool) -> tuple[NodeTerm, ...]:
    """Split a node set into its parts, each checked to be names of hosts only, or of groups where `groups` allows it.

    Raises:
        NodeSetError: it is none, names a group where none may be named, or too many hosts.
    """
    found: list[NodeTerm] = []
    work = 0
    for operator, part in _split(text):
        term = NodeTerm(operator, part)
        if (term.is_group or term.has_wildcard) and not groups:
            raise NodeSetError("a job file names hosts, no groups and no wildcards")
        work += _count(part[1:] if term.is_group else part)
        _require_name(term)
        found.append(term)
        if work > _MOST_WORK:
            raise NodeSetError(f"its parts name more than {_MOST_WORK:,} hosts")
    return tuple(found)


def is_host(name: str) -> bool:
    """Whether a host may be called so: `db3`, `user@db3`, an address; nothing that ssh or a shell takes for more."""
    return _NAME.fullmatch(name) is not None


def is_group(name: str) -> bool:
    """Whether a group may be called so, with its @: only such names reach the commands of groups.conf."""
    return _GROUP.fullmatch(name) is not None


def _split(text: str) -> Iterable[tuple[str, str]]:
    """Cut at the operators outside of brackets."""
    operator, begin, is_open = ",", 0, False
    for at, char in enumerate(text):
        if char in "[]":
            if is_open == (char == "["):
                raise NodeSetError("a bracket within brackets" if is_open else "a closing bracket that closes nothing")
            is_open = not is_open
        elif char in _OPERATORS and not is_open:
            yield operator, _operand(text[begin:at], char)
            operator, begin = char, at + 1
    if is_open:
        raise NodeSetError("missing bracket")
    yield operator, _operand(text[begin:], operator)


def _operand(text: str, operator: str) -> str:
    if not text.strip():
        raise NodeSetError(f"missing name beside {operator!r}")
    return text.strip()


def _require_name(term: NodeTerm) -> None:
    """Refuse what is no name once every bracket is a number."""
    name = _BRACKET.sub("0", term.text)
    plain = re.sub(r"[*?]", "0", name) if term.has_wildcard and not term.is_group else name
    if len(plain) > _MOST_CHARACTERS:
        raise NodeSetError(f"a name of more than {_MOST_CHARACTERS} characters")
    if is_group(name) if term.is_group else is_host(plain):
        return
    if plain.startswith("-"):
        raise NodeSetError(f"{_shown(term.text)}: a name of a host does not begin with -")
    kind = "group" if term.is_group else "host"
    wrong = _OF_NAMES.sub("", plain)[:1]
    raise NodeSetError(f"{_shown(term.text)} is no name of a {kind}{f': it has {wrong!r}' if wrong else ''}")


def _count(text: str) -> int:
    """Count the hosts of one part, at least as many as it names: its brackets are a product."""
    count, outer_of_first = 1, True
    pieces = _BRACKET.split(text)
    for before, ranges in zip(pieces[:-1:2], pieces[1::2], strict=True):
        # Digits right after a bracket belong to it, those right before one to the next: n[1-2]5 is n15, n25.
        rest = before if outer_of_first else before.lstrip("0123456789")
        outer = rest[len(rest.rstrip("0123456789")) :]
        count *= _count_ranges(ranges, outer)
        outer_of_first = False
        if count > MOST_HOSTS:
            raise NodeSetError(f"more than {MOST_HOSTS:,} hosts")
    return count


def _count_ranges(ranges: str, outer: str) -> int:
    """Count what `1-9,12,20-30/2` names after the digits `outer`, which are put before both bounds of a range."""
    parts = ranges.split(",")
    if len(outer) > _MOST_DIGITS:
        raise NodeSetError(f"more than {_MOST_DIGITS} digits before a bracket")
    if len(parts) > _MOST_RANGES:
        raise NodeSetError(f"more than {_MOST_RANGES:,} ranges in a bracket")
    bounds = [_bounds(part) for part in parts]
    inner = sum((high - low) // step + 1 for low, high, step, _ in bounds)
    if not outer or inner > MOST_HOSTS:
        return inner
    has_steps = any(step > 1 for *_, step, _ in bounds)
    return max(inner, sum(_after_digits(outer, *run) for run in _runs(bounds, joined=has_steps)))


def _bounds(part: str) -> tuple[int, int, int, int]:
    """Read one range: first, last, step, and to how many digits its numbers are padded."""
    match = _RANGE.fullmatch(part)
    if match is None or any(number and len(number) > _MOST_DIGITS for number in match.groups()):
        raise NodeSetError(f"{_shown(part)} is no range" if part.strip() else "empty range")
    first, last, step = match[1], match[2] or match[1], int(match[3] or 1)
    if int(first) > int(last) or step < 1:
        raise NodeSetError(f"invalid values in range {_shown(part)}")
    return int(first), int(last), step, len(first) if first.startswith("0") else 1


def _runs(bounds: list[tuple[int, int, int, int]], *, joined: bool) -> list[tuple[int, int, int, int]]:
    """Join ranges that touch, all of them if `joined`: first, last, smallest and largest number of digits."""
    runs: list[tuple[int, int, int, int]] = []
    for low, high, _, digits in sorted(bounds):
        if runs and (joined or low <= runs[-1][1] + 1):
            first, last, fewest, most = runs[-1]
            runs[-1] = first, max(last, high), min(fewest, digits), max(most, digits)
        else:
            runs.append((low, high, digits, digits))
    return runs


def _after_digits(outer: str, low: int, high: int, fewest: int, most: int) -> int:
    return int(f"{outer}{high:0{most}}") - int(f"{outer}{low:0{fewest}}") + 1


def _shown(text: str) -> str:
    return repr(short_text(safe_text(text), _MOST_SHOWN))
