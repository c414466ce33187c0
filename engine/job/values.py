"""Values of a job file: what type each key takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.job.distribution import Distribution
from engine.job.distribution_text import parse_distribution
from engine.job.policy_text import parse_policy
from engine.job.read_write import READ_WRITE
from engine.job.sizes import parse_blocks, parse_duration, parse_size
from engine.job.spec import Arrival, Backend, BlockShare, Mode, PathPolicy, TargetSpec
from engine.job.target_text import parse_target


class WrongTypeError(Exception):
    """A value of another type than the key takes; the text says which it takes."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise WrongTypeError('text such as "name"')
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongTypeError("a whole number")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise WrongTypeError("a number")
    return _float(value)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise WrongTypeError("a number that any disk could reach") from None


def _size(value: object) -> int:
    if isinstance(value, str):
        return parse_size(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise WrongTypeError('a size such as "4k", or bytes')


def _blocks(value: object) -> tuple[BlockShare, ...]:
    return parse_blocks(value) if isinstance(value, str) else parse_blocks(str(_size(value)))


def _distribution(value: object) -> Distribution:
    if not isinstance(value, str):
        raise WrongTypeError('a distribution such as "zipf:1.1" or "locality:50,30,20"')
    return parse_distribution(value)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongTypeError("true or false")
    return value


def _duration(value: object) -> float:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _float(value)
    raise WrongTypeError('a duration such as "30s", or seconds')


def _targets(value: object) -> tuple[TargetSpec, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise WrongTypeError('a path, or a list of paths such as ["/dev/sdb", "lun:sdc,sdd", "scratch"]')
    return tuple(map(parse_target, names))


def _word(kind: type[Mode] | type[Backend] | type[Arrival]) -> Callable[[object], object]:
    def read(value: object) -> object:
        if not isinstance(value, str) or value not in list(kind):
            raise WrongTypeError("one of " + ", ".join(f'"{word}"' for word in kind))
        return kind(value)

    return read


def _policy(value: object) -> PathPolicy:
    if not isinstance(value, str):
        raise WrongTypeError('the name of a path policy such as "round-robin"')
    return parse_policy(value)


def _yes_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongTypeError("true or false")
    return value


def _rw(value: object) -> str:
    if not isinstance(value, str) or value not in READ_WRITE:
        raise WrongTypeError("one of " + ", ".join(f'"{word}"' for word in READ_WRITE))
    return value


READERS: dict[str, Callable[[object], Any]] = {
    "target": _targets,
    "name": _text,
    "rw": _rw,
    "read_pct": _number,
    "bs": _blocks,
    "write_bs": _blocks,
    "distribution": _distribution,
    "write_distribution": _distribution,
    "qd": _whole,
    "rate": _number,
    "stripe_width": _whole,
    "mirror": _whole,
    "policy": _policy,
    "qd_total": _yes_no,
    "streams": _whole,
    "stripe_unit": _size,
    "threads": _whole,
    "fsync_every": _whole,
    "mode": _word(Mode),
    "engine": _word(Backend),
    "size": _size,
    "runtime": _duration,
    "give_up": _duration,
    "seed": _whole,
    "arrival": _word(Arrival),
    "poll": _switch,
    "verify": _switch,
}
"""The reader of each key's value; raises WrongTypeError, or UsageError for text that cannot be read."""
