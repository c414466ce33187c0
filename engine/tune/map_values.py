"""Values of maps of the device mapper: read from tables and status, set by exchanging a table or by a message."""

from __future__ import annotations

import time
from contextlib import suppress

from msgspec import Struct

from engine.errors import LunscopeError
from engine.hostfs.dm_control import INACTIVE_PRESENT, SUSPENDED, MapAnswer, Number
from engine.replacing import replace
from engine.text import whole_number
from engine.tune.legal import Legal
from engine.tune.map_ioctls import Maps
from engine.tune.multipath_table import MultipathTable, checked_text, parse_table, plain_choices, unused_parts
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target

_OTHERS_S = 0.5
"""Longer than a table that multipathd has loaded waits until it becomes the active one."""
_POLL_S = 0.02
_FAIL = "Fail"


def map_number(tree: KernelTree, target: Target) -> Number | None:
    """Device number of a map; None for other devices."""
    if not target.name.startswith("dm-"):
        return None
    major, _, minor = (tree.read(f"{target.folder}/dev") or "").partition(":")
    numbers = whole_number(major), whole_number(minor)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


class PathSelector:
    """The path selectors of a multipath map, changed by a table that differs in nothing else."""

    def read(self, tree: KernelTree, target: Target) -> str | None:
        """Return them as one value; None where the target is no multipath map, or cannot be read."""
        answer = _answer(tree, target, "multipath", table=True)
        if answer is None:
            return None
        table = parse_table(answer.parameters)
        return "unknown" if table is None else table.selectors

    def write(self, tree: KernelTree, target: Target, value: str) -> None:
        """Exchange the table for one with other selectors.

        Raises:
            LunscopeError: it cannot be done without losing I/O, or the kernel refuses; the map is as before.
        """
        number, answer = map_number(tree, target), _answer(tree, target, "multipath", table=True)
        refusal = self.refusal(tree, target)
        if number is None or answer is None or refusal:
            raise LunscopeError(f"{target.name}: {refusal or 'it is gone'}")
        table = parse_table(answer.parameters)
        assert table is not None, "refused above"
        _exchange(tree.maps, number, answer, table.with_selectors(value))

    def refusal(self, tree: KernelTree, target: Target) -> str:
        """Say why they cannot be changed now; empty if they can."""
        answer = _answer(tree, target, "multipath", table=True)
        if answer is None:
            return _why_unreadable(tree, target)
        return tree.maps.refusal() or _busy(answer) or _loses_io(parse_table(answer.parameters))

    def tidy(self, tree: KernelTree, target: Target) -> None:
        """Drop a table that was loaded by a change whose process was killed before it became the active one.

        That of somebody else is left: it becomes the active one soon, or differs in more than the selectors.
        """
        deadline_s = time.monotonic() + _OTHERS_S
        while (answer := _answer(tree, target, "multipath", table=True)) and answer.flags & INACTIVE_PRESENT:
            if time.monotonic() > deadline_s:
                self._drop(tree, target, answer)
                return
            time.sleep(_POLL_S)

    def _drop(self, tree: KernelTree, target: Target, active: MapAnswer) -> None:
        loaded = _answer(tree, target, "multipath", table=True, inactive=True)
        tables = [parse_table(one.parameters) if one is not None else None for one in (active, loaded)]
        number, kept = map_number(tree, target), [_kept(table) for table in tables]
        if number is not None and None not in kept and kept[0] == kept[1]:
            tree.maps.clear(number)

    def legal(self, tree: KernelTree, target: Target) -> Legal:
        """Each known selector, with arguments that it takes, or a value of several groups for the groups of the map."""
        answer = _answer(tree, target, "multipath", table=True)
        table = parse_table(answer.parameters) if answer is not None else None
        return Legal(plain_choices(), check=lambda value: "" if table is None else checked_text(table, value))


def _answer(tree: KernelTree, target: Target, kind: str, *, table: bool, inactive: bool = False) -> MapAnswer | None:
    """Read a map of one target of a type."""
    number = map_number(tree, target)
    answer = None if number is None else tree.maps.query(number, table=table, inactive=inactive)
    return answer if answer is not None and answer.targets == 1 and answer.kind == kind else None


def _why_unreadable(tree: KernelTree, target: Target) -> str:
    """Say why the table of a map is not known; empty for a device that has none."""
    return tree.maps.refusal() if map_number(tree, target) is not None else ""


def _busy(answer: MapAnswer) -> str:
    if answer.flags & SUSPENDED:
        return "suspended: resume it first"
    if answer.flags & INACTIVE_PRESENT:
        return "another table is loaded: multipathd is changing it, or `dmsetup clear` drops it"
    return ""


def _loses_io(table: MultipathTable | None) -> str:
    if table is None:
        return "its table has a form that cannot be written again without a difference"
    if "queue_mode" in table.features and "bio" in table.features and "queue_if_no_path" in table.features:
        # multipath_presuspend ends queueing of a bio-based map, whose waiting I/Os fail then.
        return "bio-based with queue_if_no_path: the kernel fails I/Os that wait for a path when the table is exchanged"
    return ""


def _kept(table: MultipathTable | None) -> object:
    """Return what tables have in common that differ in their selectors only."""
    if table is None:
        return None
    return table.features, table.handler, [[device for device, _ in group.paths] for group in table.groups]


def _exchange(maps: Maps, number: Number, active: MapAnswer, table: MultipathTable) -> None:
    """Load a table, compare what the kernel made of it, and make it the active one.

    Failed paths and disabled groups are marked again in the new table: it would go on trying them. Arguments of the
    hardware handler are not in the kernel's text; they stay with the devices that have the handler already.
    """
    status = maps.query(number, table=False)
    maps.load(number, replace(active, parameters=table.text))
    try:
        _compare(maps, number, active, table)
        maps.resume(number)
    except LunscopeError:
        with suppress(LunscopeError):
            maps.clear(number)
        raise
    for message in unused_parts("" if status is None else status.parameters).messages:
        with suppress(LunscopeError):  # A path that has come back meanwhile.
            maps.send(number, message)


def _compare(maps: Maps, number: Number, active: MapAnswer, table: MultipathTable) -> None:
    loaded = maps.query(number, table=True, inactive=True)
    now = maps.query(number, table=True)
    if loaded is None or loaded.parameters != table.text:
        raise LunscopeError(f"device mapper {number[0]}:{number[1]}: the kernel made another table of it; not used")
    if now is None or now.parameters != active.parameters or now.flags & SUSPENDED:
        raise LunscopeError(f"device mapper {number[0]}:{number[1]}: its table has just changed; try again")


class CacheArgument(Struct, frozen=True):
    """One argument of a dm-cache or of its policy, set by a message (cache_message of drivers/md/dm-cache-target.c)."""

    key: str

    def read(self, tree: KernelTree, target: Target) -> str | None:
        """Return it; None where the target is no cache, or its policy does not have it."""
        answer = _answer(tree, target, "cache", table=False)
        return None if answer is None else cache_arguments(answer.parameters).get(self.key)

    def write(self, tree: KernelTree, target: Target, value: str) -> None:
        """Send it.

        Raises:
            LunscopeError: the kernel refuses.
        """
        number = map_number(tree, target)
        if number is None:
            raise LunscopeError(f"{target.name}: it is gone")
        tree.maps.send(number, f"{self.key} {value}")

    def refusal(self, tree: KernelTree, target: Target) -> str:
        """Say why it cannot be changed now; empty if it can."""
        answer = _answer(tree, target, "cache", table=False)
        if answer is None:
            return _why_unreadable(tree, target)
        words = answer.parameters.split()
        if _FAIL in words[:1] or "ro" in words[-2:-1]:
            return "the cache is read-only or has failed: it takes no messages"
        return tree.maps.refusal()

    def tidy(self, tree: KernelTree, target: Target) -> None:
        """Do nothing: a message is complete or was not sent."""


def cache_arguments(status: str) -> dict[str, str]:
    """Read the core arguments and those of the policy from a status of dm-cache; empty for one of an unknown form.

    `md_block used cache_block used 7 counts #features f... #core a... policy #args a... rw|ro needs_check|-`:
    Documentation/admin-guide/device-mapper/cache.rst.
    """
    words = status.split()[11:]
    try:
        rest = words[1 + int(words[0]) :]
        core = rest[1 : 1 + int(rest[0])]
        policy = rest[len(core) + 2 :]
        own = policy[1 : 1 + int(policy[0])]
    except (ValueError, IndexError):
        return {}
    return {key: value for part in (core, own) for key, value in zip(part[::2], part[1::2], strict=False)}
