"""Points that show what each factor does: the first value of every axis, and each other value alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine.sweep.axes import SweepAxis

_DISKS, _DEPTH = "stripe_width", "queue_depth"


def one_at_a_time(axes: Sequence[SweepAxis]) -> list[tuple[Any, ...]]:
    """List combinations of values: the first of all axes, those that differ from it in one, and striping.

    Striping is the same I/Os outstanding on more disks: more of them at a lower depth, where the depth can be divided.
    """
    first = tuple(axis.values[0] for axis in axes)
    found = [first, *_each_alone(axes, first)]
    striping = _striping(axes, first)
    return found if striping is None or striping in found else [*found, striping]


def _each_alone(axes: Sequence[SweepAxis], first: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for at, axis in enumerate(axes):
        for value in axis.values[1:]:
            yield (*first[:at], value, *first[at + 1 :])


def _striping(axes: Sequence[SweepAxis], first: tuple[Any, ...]) -> tuple[Any, ...] | None:
    positions = {axis.knob.id: at for at, axis in enumerate(axes)}
    if _DISKS not in positions or _DEPTH not in positions or len(axes[positions[_DISKS]].values) < 2:
        return None
    disks, more, depth = *axes[positions[_DISKS]].values[:2], first[positions[_DEPTH]]
    if depth * disks % more:
        return None
    values = list(first)
    values[positions[_DISKS]], values[positions[_DEPTH]] = more, depth * disks // more
    return tuple(values)
