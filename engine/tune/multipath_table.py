"""The table of a multipath map as the kernel writes it, and its path selectors as one value.

`#features f... #handler h... #groups first { selector #args a... #paths #path_args { device a... } }`:
multipath_status of drivers/md/dm-mpath.c, Documentation/admin-guide/device-mapper/dm-service-time.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from engine.errors import LunscopeError, UsageError
from engine.replacing import replace
from engine.text import safe_text, short_text, whole_number

Words = tuple[str, ...]

_SELECTORS: dict[str, tuple[Words, Words]] = {
    "service-time": ((), ("1", "1")),
    "queue-length": ((), ("1",)),
    "round-robin": ((), ("1",)),
    "historical-service-time": (("972", "0"), ("0",)),
}
"""Default arguments of each selector, and of each of its paths, as the kernel writes them (drivers/md/dm-ps-*.c)."""
_LEGAL_ARGUMENTS = {"historical-service-time": re.compile(r"([0-9]{1,3}|10[01][0-9]|102[0-3]) [0-9]{1,9}")}
"""Base weight below 1024 (HST_FIXED_1) and threshold multiplier; the other selectors have no arguments."""
_BETWEEN_PATHS = re.compile(r",\s+")
"""Masks of CPUs have commas, too (io-affinity)."""
_GROUP = re.compile(r"([^{};,]+?)\s*\{([^{};]*)\}")


class PathGroup(Struct, frozen=True):
    """One priority group."""

    selector: str
    arguments: Words
    paths: tuple[tuple[str, Words], ...]
    """Device numbers (`8:16`) with the arguments of each path."""

    @property
    def devices(self) -> frozenset[str]:
        """Its paths, whatever their order."""
        return frozenset(device for device, _ in self.paths)

    @property
    def is_plain(self) -> bool:
        """Whether its paths have the default arguments of a known selector."""
        known = _SELECTORS.get(self.selector)
        return known is not None and all(arguments == known[1] for _, arguments in self.paths)

    @property
    def choice(self) -> str:
        """Selector with its arguments, as in multipath.conf(5): `service-time 0`."""
        return " ".join((self.selector, str(len(self.arguments)), *self.arguments))

    @property
    def words(self) -> Words:
        """Its part of the table."""
        each = (word for device, arguments in self.paths for word in (device, *arguments))
        width = len(self.paths[0][1]) if self.paths else 0
        return *self.choice.split(), str(len(self.paths)), str(width), *each


class MultipathTable(Struct, frozen=True):
    """One table: what is before the groups stays as it is."""

    features: Words
    handler: Words
    first: str
    """Number of the group that is used first."""
    groups: tuple[PathGroup, ...]

    @property
    def text(self) -> str:
        """As the kernel writes it, with a space after each word."""
        head = (str(len(self.features)), *self.features, str(len(self.handler)), *self.handler)
        words = (*head, str(len(self.groups)), self.first, *(word for group in self.groups for word in group.words))
        return "".join(f"{word} " for word in words)

    @property
    def selectors(self) -> str:
        """The selectors as one value: `service-time 0`, or that of each group with its paths where they differ."""
        choices = {group.choice for group in self.groups}
        if len(choices) == 1 and all(group.is_plain for group in self.groups):
            return choices.pop()
        return "; ".join(_group_text(group) for group in self.groups)

    def with_selectors(self, value: str) -> MultipathTable:
        """Return the table with other selectors, and nothing else changed.

        Raises:
            UsageError: the value is none, or is for other path groups.
        """
        if "{" not in value:
            return replace(self, groups=tuple(_plain(value, group) for group in self.groups))
        given = _groups_of(value)
        if [group.devices for group in given] != [group.devices for group in self.groups]:
            raise UsageError(f"'{_shown(value)}' is for other path groups than those of the map")
        pairs = zip(self.groups, given, strict=True)
        return replace(self, groups=tuple(_with_arguments_of(own, other) for own, other in pairs))


def parse_table(text: str) -> MultipathTable | None:
    """Read a table; None if writing it again would not give the same text."""
    words = iter(text.split())
    try:
        features, handler = _counted(words), _counted(words)
        count, first = int(next(words)), next(words)
        table = MultipathTable(features, handler, first, tuple(_read_group(words) for _ in range(count)))
    except (ValueError, StopIteration, RuntimeError):  # A generator makes a RuntimeError of StopIteration.
        return None
    return table if table.text == text else None


def canonical_selectors(value: str) -> str:
    """Return a value as the kernel's answer will read: a name alone gets its arguments.

    Values of several groups are compared as they are written, but for spaces.
    """
    if "{" in value:
        try:
            return "; ".join(_group_text(group) for group in _groups_of(value))
        except UsageError:
            return value
    name, *arguments = value.split()
    known = _SELECTORS.get(name)
    if known is None:
        return value
    count = whole_number(arguments[0]) if arguments else 0
    if count is None or len(arguments) != count + bool(arguments):
        return value
    given = arguments[1:]
    full = (*given, *known[0][len(given) :])
    return " ".join((name, str(len(full)), *full))


def plain_choices() -> Words:
    """List each selector with its default arguments."""
    return tuple(canonical_selectors(name) for name in _SELECTORS)


class UnusedParts(Struct, frozen=True):
    """What a map does not use now."""

    failed: Words
    """Paths, as device numbers."""
    disabled: tuple[int, ...]
    """Groups, from 1."""

    @property
    def messages(self) -> Words:
        """What makes the same parts of a new table unused (multipath_message of drivers/md/dm-mpath.c)."""
        paths, groups = (f"fail_path {one}" for one in self.failed), (f"disable_group {one}" for one in self.disabled)
        return *paths, *groups


def unused_parts(status: str) -> UnusedParts:
    """Read failed paths and disabled groups from a status; none from one of an unknown form.

    `#features f... #handler h... #groups current { state #args a... #paths #path_args { device A|F n a... } }`
    """
    groups = _groups_of_status(status) or []
    failed = (device for _, paths in groups for device, is_used in paths.items() if not is_used)
    disabled = (number for number, (is_disabled, _) in enumerate(groups, 1) if is_disabled)
    return UnusedParts(tuple(failed), tuple(disabled))


def path_states(status: str) -> dict[str, bool] | None:
    """Read from a status whether each path is used, by device number; None of an unknown form.

    Those of a disabled group are not: the map takes them only where no other group has a path.
    """
    groups = _groups_of_status(status)
    if groups is None:
        return None
    return {device: is_used and not is_off for is_off, paths in groups for device, is_used in paths.items()}


def _groups_of_status(status: str) -> list[tuple[bool, dict[str, bool]]] | None:
    """Read whether each group is disabled, and which of its paths have not failed; None of an unknown form."""
    words, groups = iter(status.split()), list[tuple[bool, dict[str, bool]]]()
    try:
        _counted(words), _counted(words)
        count, _ = int(next(words)), next(words)
        for _ in range(count):
            is_disabled = next(words) == "D"
            _counted(words)
            paths, width, known = int(next(words)), int(next(words)), dict[str, bool]()
            for _ in range(paths):
                device, state, *_ = (next(words) for _ in range(3 + width))
                known[device] = state == "A"
            groups.append((is_disabled, known))
    except (ValueError, StopIteration, RuntimeError):
        return None
    return groups


def _counted(words: Iterator[str]) -> Words:
    return tuple([next(words) for _ in range(int(next(words)))])


def _read_group(words: Iterator[str]) -> PathGroup:
    selector, arguments = next(words), _counted(words)
    count, width = int(next(words)), int(next(words))
    paths = [(next(words), tuple([next(words) for _ in range(width)])) for _ in range(count)]
    return PathGroup(selector, arguments, tuple(paths))


def _plain(value: str, group: PathGroup) -> PathGroup:
    """Return a group with one of the known selectors and the default arguments of its paths."""
    name, *counted = canonical_selectors(value).split() or [""]
    arguments = counted[1:]
    known = _SELECTORS.get(name)
    if known is None or not _takes(name, tuple(arguments)):
        raise UsageError(f"'{_shown(value)}' is no path selector with its arguments: {'|'.join(plain_choices())}")
    return PathGroup(name, tuple(arguments), tuple((device, known[1]) for device, _ in group.paths))


def _takes(name: str, arguments: Words) -> bool:
    pattern = _LEGAL_ARGUMENTS.get(name)
    return bool(pattern.fullmatch(" ".join(arguments))) if pattern is not None else not arguments


def _with_arguments_of(own: PathGroup, other: PathGroup) -> PathGroup:
    arguments = dict(other.paths)
    paths = tuple((device, arguments[device]) for device, _ in own.paths)
    return PathGroup(other.selector, other.arguments, paths)


def _group_text(group: PathGroup) -> str:
    paths = ", ".join(" ".join((device, *arguments)) for device, arguments in group.paths)
    return f"{group.choice} {{{paths}}}"


def _groups_of(value: str) -> list[PathGroup]:
    """Read `service-time 0 {8:0 1 5, 8:16 1 1}; round-robin 0 {8:32 1}`.

    Raises:
        UsageError: it is not.
    """
    groups = []
    for text in value.split(";"):
        match = _GROUP.fullmatch(text.strip())
        paths = [tuple(path.split()) for path in _BETWEEN_PATHS.split(match[2])] if match else []
        name, *counted = match[1].split() if match else [""]
        if not all(paths) or len({len(path) for path in paths}) != 1 or counted[:1] != [str(len(counted) - 1)]:
            raise UsageError(f"'{_shown(value)}': write each group as SELECTOR COUNT ARGS {{DEVICE ARGS, ...}}")
        groups.append(PathGroup(name, tuple(counted[1:]), tuple((path[0], path[1:]) for path in paths)))
    return groups


def _shown(text: str) -> str:
    return safe_text(short_text(text, 80))


def checked_text(table: MultipathTable, value: str) -> str:
    """Say why a value is not legal for the selectors of a table; empty if it is."""
    try:
        shown = table.with_selectors(value).selectors
    except LunscopeError as error:
        return str(error)
    return "" if shown == value else f"write it as '{_shown(shown)}'"
