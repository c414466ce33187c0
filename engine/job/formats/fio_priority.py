"""I/O priorities of a fio job: of all its I/Os, and of shares of them (fio(1), prio, cmdprio_percentage)."""

from __future__ import annotations

from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.fio_values import Units, by_direction, fraction
from engine.job.io_priority import IoPriority, PriorityClass, priority_problems
from engine.job.spec import BlockShare

NAMES = (
    *("prio", "prioclass", "priohint"),
    *("cmdprio", "cmdprio_class", "cmdprio_hint", "cmdprio_percentage", "cmdprio_bssplit"),
)
"""Options of this file."""
_CLASSES = {"1": PriorityClass.REALTIME, "2": PriorityClass.BEST_EFFORT, "3": PriorityClass.IDLE}
_DIRECTIONS = ("read", "write")
NOTE = "I/O priorities: latencies are not told apart by them, as fio does"


def take_priorities(given: Given, units: Units, blocks: tuple[tuple[BlockShare, ...], ...]) -> tuple[IoPriority, ...]:
    """Take them, those of shares before that of all.

    Raises:
        UsageError: a class, a level or a share is out of range, or shares are given in two ways.
    """
    percentage, split = given.take("cmdprio_percentage"), given.take("cmdprio_bssplit")
    classes, levels, hints = (given.take(name) for name in ("cmdprio_class", "cmdprio", "cmdprio_hint"))
    if percentage is not None and split is not None:
        raise split.error("with cmdprio_percentage as well it is not driven: give one of them")
    found: list[IoPriority] = []
    for number, direction in enumerate(_DIRECTIONS):
        kind = _class(classes, number)
        level, hint = (_number(option, number, units) for option in (levels, hints))
        high = IoPriority(kind, level, hint, direction=direction)
        if percentage is not None and (share := fraction(percentage, by_direction(percentage.text)[number] or "0")):
            found.append(_with(high, share, None))
        if split is not None:
            sizes = {share.block_bytes for share in blocks[number]}
            found += _by_size(split, by_direction(split.text)[number], units, high, sizes)
    found += _of_all(given, units)
    for problem in priority_problems(found):
        option = given.seen(*NAMES)
        assert option is not None
        raise option.error(problem)
    return tuple(found)


def _of_all(given: Given, units: Units) -> tuple[IoPriority, ...]:
    classes, levels, hints = given.take("prioclass"), given.take("prio"), given.take("priohint")
    if classes is None and levels is None and hints is None:
        return ()
    if classes is not None and classes.value == "0":
        return ()
    kind = PriorityClass.BEST_EFFORT if classes is None else _class(classes, 0)
    return (IoPriority(kind, _number(levels, 0, units), _number(hints, 0, units)),)


def _class(option: Option | None, number: int) -> PriorityClass:
    text = "1" if option is None else by_direction(option.text)[number] or "1"
    if option is not None and text not in _CLASSES:
        raise option.error(f"{text} is none of 1 (realtime), 2 (best effort), 3 (idle)")
    return _CLASSES[text]


def _number(option: Option | None, number: int, units: Units) -> int:
    text = "" if option is None else by_direction(option.text)[number]
    return units.integer(option, text) if option is not None and text else 0


def _with(priority: IoPriority, percent: float, block_bytes: int | None) -> IoPriority:
    return IoPriority(priority.kind, priority.level, priority.hint, percent, priority.direction, block_bytes)


def _by_size(option: Option, text: str, units: Units, high: IoPriority, sizes: set[int]) -> list[IoPriority]:
    """Read size/percent, or size/percent/class/level, or that with a hint; for sizes that the job has."""
    found = []
    for entry in text.split(":") if text else []:
        size, *rest = entry.split("/")
        if len(rest) not in (1, 3, 4):
            raise option.error(f"{entry[:40]!a}: write it like 64k/25, 64k/25/1/0 or 64k/25/2/0/1")
        block_bytes, share = units.integer(option, size), fraction(option, rest[0])
        if not share or block_bytes not in sizes:
            continue
        if len(rest) > 1:
            if rest[1] not in _CLASSES:
                raise option.error(f"class {rest[1][:9]!a} is none of 1 (realtime), 2 (best effort), 3 (idle)")
            level, hint = units.integer(option, rest[2]), units.integer(option, rest[3]) if len(rest) > 3 else 0
            high = IoPriority(_CLASSES[rest[1]], level, hint, direction=high.direction)
        found.append(_with(high, share, block_bytes))
    return found
