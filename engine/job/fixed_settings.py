"""What is fixed for a run, by the keys of a job file, and the words of --rw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from engine.errors import UsageError
from engine.job.cpu_list import format_cpus, parse_cpus
from engine.job.io_priority import format_priorities, parse_priorities
from engine.job.rate_floor import RateFloor, parse_rate_floor
from engine.job.sizes import format_duration, format_size
from engine.job.spec import DEFAULT_GIVE_UP_S, DEFAULT_STEADY_ROUND_S, Access, Arrival, Backend, JobSpec, TargetSpec
from engine.job.target_text import format_target, parse_target
from engine.job.toml_values import (
    WrongTypeError,
    not_one_of,
    quoted,
    read_duration,
    read_durations,
    read_jump,
    read_size,
    read_switch,
    read_text,
    read_whole,
    word_reader,
)

READ_WRITE: dict[str, tuple[Access, float]] = {
    "read": (Access.SEQUENTIAL, 100.0),
    "write": (Access.SEQUENTIAL, 0.0),
    "rw": (Access.SEQUENTIAL, 50.0),
    "randread": (Access.RANDOM, 100.0),
    "randwrite": (Access.RANDOM, 0.0),
    "randrw": (Access.RANDOM, 50.0),
}
"""Words of --rw: the order of offsets, and the share of reads that goes with it."""

_MIXES = ("rw", "randrw")


def access_and_mix(rw: str | None, read_pct: float | None) -> tuple[Access, float]:
    """Make order and share of reads of --rw and --read-pct; without both it is random reads.

    Raises:
        UsageError: the word is unknown, or it says read or write and the share says otherwise.
    """
    if rw is None:
        return Access.RANDOM, 100.0 if read_pct is None else read_pct
    if rw not in READ_WRITE:
        raise UsageError(f"--rw: {rw!r} is none of {', '.join(READ_WRITE)}")
    access, share = READ_WRITE[rw]
    if read_pct is None or read_pct == share:
        return access, share
    if rw not in _MIXES:
        mix = "rw" if access is Access.SEQUENTIAL else "randrw"
        raise UsageError(f"--rw {rw} is {share:g} % reads, --read-pct says {read_pct:g}: use --rw {mix} with it")
    return access, read_pct


def rw_word(access: Access, read_pct: float) -> str:
    """Return the value of --rw for an order and a share of reads; the mixed ones need the share as well."""
    exact = [word for word, pair in READ_WRITE.items() if pair == (access, read_pct) and word not in _MIXES]
    return exact[0] if exact else "rw" if access is Access.SEQUENTIAL else "randrw"


class Setting(Struct, frozen=True):
    """One setting of a job."""

    key: str
    read: Callable[[object], Any]
    """Raises WrongTypeError, or UsageError for text that cannot be read."""
    write: Callable[[JobSpec], str | None]
    """The value in TOML; None leaves the line out."""
    field: str = ""
    """Field of JobSpec; empty where it is more than one."""


def _targets(value: object) -> tuple[TargetSpec, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise WrongTypeError('a path, or a list of paths such as ["/dev/sdb", "lun:sdc,sdd", "scratch"]')
    return tuple(map(parse_target, names))


def _rw(value: object) -> str:
    if not isinstance(value, str) or value not in READ_WRITE:
        raise not_one_of(READ_WRITE)
    return value


def _target_list(job: JobSpec) -> str:
    return "[" + ", ".join(quoted(format_target(spec)) for spec in job.targets) + "]"


def _size_text(size_bytes: int | None) -> str | None:
    return None if size_bytes is None else quoted(format_size(size_bytes))


def _jump_text(jump_bytes: int) -> str:
    return quoted(("-" if jump_bytes < 0 else "") + format_size(abs(jump_bytes)))


def _duration_text(duration_s: float | None) -> str | None:
    return None if duration_s is None else quoted(format_duration(duration_s))


def _durations_text(durations_s: tuple[float, ...]) -> str | None:
    return quoted(",".join(map(format_duration, durations_s))) if durations_s else None


def _switch_text(*, on: bool) -> str:
    return "true" if on else "false"


HEAD = (
    Setting("target", _targets, _target_list, "targets"),
    Setting("name", read_text, lambda job: quoted(job.name), "name"),
    Setting("rw", _rw, lambda job: quoted(rw_word(job.access, job.knobs.read_pct))),
)
"""Written above the knobs."""
TAIL = (
    Setting("qd_total", read_switch, lambda job: "true" if job.total_queue_depth else None, "total_queue_depth"),
    Setting("mirror", read_whole, lambda job: None if job.copies == 1 else str(job.copies), "copies"),
    Setting("streams", read_whole, lambda job: str(job.streams), "streams"),
    Setting("stream_step", read_size, lambda job: _size_text(job.stream_step_bytes), "stream_step_bytes"),
    Setting("jump", read_jump, lambda job: _jump_text(job.jump_bytes) if job.jump_bytes else None, "jump_bytes"),
    Setting("separate", read_switch, lambda job: "true" if job.separate else None, "separate"),
    Setting("stripe_unit", read_size, lambda job: _size_text(job.stripe_unit_bytes), "stripe_unit_bytes"),
    Setting("engine", word_reader(Backend), lambda job: quoted(job.backend), "backend"),
    Setting("size", read_size, lambda job: _size_text(job.size_bytes), "size_bytes"),
    Setting(
        "offset", read_size, lambda job: _size_text(job.offset_bytes) if job.offset_bytes else None, "offset_bytes"
    ),
    Setting("align", read_size, lambda job: _size_text(job.align_bytes), "align_bytes"),
    Setting("io_size", read_size, lambda job: _size_text(job.io_bytes), "io_bytes"),
    Setting("loops", read_whole, lambda job: None if job.loops is None else str(job.loops), "loops"),
    Setting("runtime", read_duration, lambda job: _duration_text(job.runtime_s), "runtime_s"),
    Setting("ramp", read_duration, lambda job: _duration_text(job.ramp_s) if job.ramp_s else None, "ramp_s"),
    Setting("think", read_duration, lambda job: _duration_text(job.think_s) if job.think_s else None, "think_s"),
    Setting(
        "think_every",
        read_whole,
        lambda job: None if job.think_every == 1 else str(job.think_every),
        "think_every",
    ),
    Setting("response_limits", read_durations, lambda job: _durations_text(job.response_limits_s), "response_limits_s"),
    Setting("response_edges", read_durations, lambda job: _durations_text(job.response_edges_s), "response_edges_s"),
    Setting(
        "io_priority",
        lambda value: value if isinstance(value, tuple) else parse_priorities(read_text(value)),
        lambda job: quoted(format_priorities(job.priorities)) if job.priorities else None,
        "priorities",
    ),
    Setting(
        "cpus",
        lambda value: value if isinstance(value, tuple) else parse_cpus(read_text(value)),
        lambda job: quoted(format_cpus(job.cpus)) if job.cpus else None,
        "cpus",
    ),
    Setting(
        "rate_min",
        lambda value: value if isinstance(value, RateFloor) else parse_rate_floor(read_text(value)),
        lambda job: None if job.rate_min is None else quoted(job.rate_min.text),
        "rate_min",
    ),
    Setting(
        "give_up",
        read_duration,
        lambda job: None if job.give_up_s == DEFAULT_GIVE_UP_S else _duration_text(job.give_up_s),
        "give_up_s",
    ),
    Setting("until_steady", read_switch, lambda job: "true" if job.until_steady else None, "until_steady"),
    Setting(
        "steady_round",
        read_duration,
        lambda job: None if job.steady_round_s == DEFAULT_STEADY_ROUND_S else _duration_text(job.steady_round_s),
        "steady_round_s",
    ),
    Setting("seed", read_whole, lambda job: str(job.seed), "seed"),
    Setting("arrival", word_reader(Arrival), lambda job: quoted(job.arrival), "arrival"),
    Setting("poll", read_switch, lambda job: _switch_text(on=job.poll), "poll"),
    Setting("verify", read_switch, lambda job: "true" if job.verify else None, "verify"),
)
"""Written below the knobs."""
