"""Values as they are: one row for each tunable and target, with its default and legal values."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from engine.errors import UsageError
from engine.tune.registry import TUNABLES, find_tunable
from engine.tune.scope import Host, TargetSelection
from engine.tune.tunable import Target, Tunable


class Value(Struct, frozen=True):
    """One tunable of one target."""

    tunable: Tunable
    target: Target
    value: str
    default: str
    """Empty where neither the kernel nor its documentation gives one."""
    legal: str
    """Empty where the kernel does not say."""
    refusal: str
    """Why it cannot be changed; empty if it can."""


def read_values(host: Host, selection: TargetSelection, tunables: Iterable[Tunable]) -> Iterator[Value]:
    """Read tunables of all targets that have them."""
    absent: set[str] = set()  # Folders; most devices have no iosched, for which there are many tunables.
    for tunable in tunables:
        for target in host.targets(tunable, selection):
            folder = tunable.path(target).rpartition("/")[0]
            value = None if folder in absent else tunable.present(host.tree, target)
            if value is not None:
                yield _value(host, tunable, target, value)
            elif folder not in absent and host.tree.inode(folder) is None:
                absent.add(folder)


def _value(host: Host, tunable: Tunable, target: Target, value: str) -> Value:
    return Value(
        tunable,
        target,
        value,
        tunable.default(host.tree, target),
        tunable.legal(host.tree, target).text,
        tunable.refusal(host.tree, target),
    )


def chosen_tunables(names: Sequence[str]) -> tuple[Tunable, ...]:
    """Find tunables by id or glob; all without any.

    Raises:
        UsageError: one names none.
    """
    if not names:
        return TUNABLES
    found: dict[str, Tunable] = {}
    for name in names:
        if any(character in name for character in "*?["):
            matching = [one for one in TUNABLES if fnmatch.fnmatchcase(one.id, name)]
            if not matching:
                raise UsageError(f"no tunable matches {name!r}: `lunscope tune list --names` lists them")
        else:
            matching = [find_tunable(name)]
        found.update((one.id, one) for one in matching)
    return tuple(found.values())


class AlikeValues(Struct, frozen=True):
    """Targets with the same value of a tunable, as one line of a list."""

    first: Value
    names: tuple[str, ...]


def alike(values: Iterable[Value]) -> list[AlikeValues]:
    """Group values that differ in nothing but their target."""
    groups: dict[tuple[str, str, str, str, str], tuple[Value, list[str]]] = {}
    for value in values:
        key = (value.tunable.id, value.value, value.default, value.legal, value.refusal)
        groups.setdefault(key, (value, []))[1].append(value.target.name)
    return [AlikeValues(first, tuple(names)) for first, names in groups.values()]
