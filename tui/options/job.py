"""The options of a load, and the job they build."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.config import scratch_folder
from engine.errors import LunscopeError, UsageError
from engine.job.cpu_list import parse_cpus
from engine.job.fixed_settings import READ_WRITE, TAIL, access_and_mix
from engine.job.io_priority import parse_priorities
from engine.job.knobs import KNOBS_BY_KEY, Knob
from engine.job.knobs.kinds import Number, OneOf, WholeNumber
from engine.job.rate_floor import parse_rate_floor
from engine.job.sizes import parse_duration, parse_size
from engine.job.spec import Access, Arrival, Backend, JobSpec, Permissions, TargetSpec
from engine.job.target_text import node_name, parse_lun, prefer
from engine.job.toml_values import read_durations, read_jump
from engine.replacing import replace
from engine.text import safe_text, short_text, signed_number
from tui.options.numbers import DECIMAL, WHOLE

_Command = TypeVar("_Command", bound=Callable[..., Any])
_NAMES = frozenset({"target", "lun", "prefer", "rw"} | set(KNOBS_BY_KEY) | {setting.key for setting in TAIL})


def _parsed(
    parse: Callable[[str], object],
) -> Callable[[click.Context, click.Parameter, str | None], object]:
    """Make a callback that parses an option's value; click names the option in the error."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> object:
        try:
            return None if value is None else parse(value)
        except LunscopeError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return read


_ALONE = "-"
"""What --qd-total without a number is given as."""


def _total_depth(value: str) -> int | bool:
    """Read the number, True without one."""
    if value == _ALONE:
        return True
    number = signed_number(value)
    if number is None:
        raise UsageError(f"{safe_text(short_text(value, 80))!r} is not a whole number (JOB is given before it)")
    return number


class LoadOptions:
    """The options by name; None was not given and keeps the value of the job file."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 (each option has a type of its own)
        unknown = given.keys() - _NAMES
        if unknown:
            raise TypeError(f"unknown options of a load: {', '.join(sorted(unknown))}")
        self._given = given

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as above
        return self._given.get(name)


def _knob_option(knob: Knob) -> Callable[[_Command], _Command]:
    name, help_text = f"--{knob.option}", knob.help
    match knob.kind:
        case WholeNumber():
            return click.option(name, type=WHOLE, metavar=knob.metavar, help=help_text)
        case Number():
            return click.option(name, type=DECIMAL, metavar=knob.metavar, help=help_text)
        case OneOf(words, named=None):
            choice = click.Choice([word.value for word in words])
            return click.option(name, type=choice, callback=_parsed(words), help=help_text)
        case kind:
            return click.option(name, callback=_parsed(kind.parse), metavar=knob.metavar, help=help_text)


_OPTIONS = (
    click.option(
        "--target",
        "-t",
        multiple=True,
        metavar="PATH",
        help="Device or file; repeat for a stripe. [a scratch file]",
    ),
    click.option(
        "--lun",
        multiple=True,
        metavar="NODE[=WEIGHT],...",
        help="Paths (device nodes) of one LUN, used according to --policy: sda,sdb=3; repeat for more LUNs.",
    ),
    click.option("--prefer", multiple=True, metavar="NODE", help="The path of --policy preferred-path. [the first]"),
    click.option("--rw", type=click.Choice(list(READ_WRITE)), help="Order and direction. [randread]"),
    *(_knob_option(knob) for knob in KNOBS_BY_KEY.values()),
    click.option("--streams", type=WHOLE, metavar="N", help="Sequential streams on each target, in turns. [1]"),
    click.option(
        "--stream-step",
        callback=_parsed(parse_size),
        metavar="SIZE",
        help="From the start of one stream to the next, which may overlap. [a slice each]",
    ),
    click.option(
        "--jump",
        callback=_parsed(read_jump),
        metavar="SIZE",
        help="Leave out so much after each block in sequence; -8k with 4k blocks reads backwards. [0]",
    ),
    click.option(
        "--stripe-unit", callback=_parsed(parse_size), metavar="SIZE", help="Bytes on one target before the next. [64k]"
    ),
    click.option(
        "--mirror",
        type=WHOLE,
        metavar="N",
        help="Copies: writes go to N neighbouring targets, reads to one by --policy.",
    ),
    click.option(
        "--qd-total",
        is_flag=False,
        flag_value=_ALONE,
        callback=_parsed(_total_depth),
        metavar="[N]",
        help="--qd is the total of all targets, or N is; below their number it is one queue over all of them.",
    ),
    click.option(
        "--arrival",
        type=click.Choice([arrival.value for arrival in Arrival]),
        help="When I/Os are issued: as others complete (closed), or at --rate regardless (open). [closed]",
    ),
    click.option("--poll/--no-poll", default=None, help="Poll for completions: lowest latency, one CPU per thread."),
    click.option(
        "--verify/--no-verify",
        default=None,
        help="Mark every write, check reads and, at the end, all that was written; exit 1 if any of it is damaged.",
    ),
    click.option(
        "--runtime",
        callback=_parsed(parse_duration),
        metavar="TIME",
        help="Duration, as 30s or 5m. [10s without screen]",
    ),
    click.option(
        "--until-steady/--no-until-steady",
        default=None,
        help="End once the load is steady by the SNIA rule over 5 rounds; exit 1 if it is not within --runtime. "
        "[25 rounds]",
    ),
    click.option(
        "--steady-round",
        callback=_parsed(parse_duration),
        metavar="TIME",
        help="Length of a round of that rule. [1m]",
    ),
    click.option(
        "--give-up",
        callback=_parsed(parse_duration),
        metavar="TIME",
        help="How long the end waits for outstanding I/Os; a second signal ends it at once. [30s]",
    ),
    click.option(
        "--size", callback=_parsed(parse_size), metavar="SIZE", help="Bytes used of each target. [all; scratch: 256m]"
    ),
    click.option(
        "--separate/--no-separate",
        default=None,
        help="Reads and writes in sequence each have a position of their own. [one for both]",
    ),
    click.option("--offset", callback=_parsed(parse_size), metavar="SIZE", help="Begin here on each target. [0]"),
    click.option(
        "--align",
        callback=_parsed(parse_size),
        metavar="SIZE",
        help="Random offsets are multiples of this. [each of its own block]",
    ),
    click.option(
        "--io-size", callback=_parsed(parse_size), metavar="SIZE", help="End after so many bytes on each target."
    ),
    click.option("--loops", type=WHOLE, metavar="N", help="End after N times --io-size, or all that is used."),
    click.option(
        "--ramp",
        callback=_parsed(parse_duration),
        metavar="TIME",
        help="Part of the runtime, and of the time after a turn, that is not measured. [0s]",
    ),
    click.option(
        "--think",
        callback=_parsed(parse_duration),
        metavar="TIME",
        help="Pause of each thread between I/Os; needs one I/O per thread. [0s]",
    ),
    click.option("--think-every", type=WHOLE, metavar="N", help="I/Os between two pauses of --think. [1]"),
    click.option(
        "--response-limits",
        callback=_parsed(read_durations),
        metavar="TIME,...",
        help="Report the share of the I/Os within each, as 5ms,10ms. [none]",
    ),
    click.option(
        "--response-edges",
        callback=_parsed(read_durations),
        metavar="TIME,...",
        help="Report a histogram of response times with these edges. [none]",
    ),
    click.option(
        "--io-priority",
        callback=_parsed(parse_priorities),
        metavar="[SHARE:]CLASS[/LEVEL],...",
        help="I/O priority (ionice), of a share as read:64k:20%:realtime/0. [that of the process]",
    ),
    click.option(
        "--cpus",
        callback=_parsed(parse_cpus),
        metavar="LIST",
        help="Processors of the threads that do I/O, as 0-3,8. [all]",
    ),
    click.option(
        "--rate-min",
        callback=_parsed(parse_rate_floor),
        metavar="RATE[:TIME]",
        help="Fail when fewer I/Os (500iops) or bytes (10m) per second complete over TIME, 1s. [never]",
    ),
    click.option("--seed", type=WHOLE, metavar="N", help="Same seed, same offsets and data. [1]"),
    click.option("--engine", type=click.Choice([name.value for name in Backend]), help="I/O engine. [auto]"),
)

_PERMISSION_OPTIONS = (
    click.option(
        "--allow-write",
        multiple=True,
        metavar="PATH",
        help="Allow writing to exactly this target, if it is blank or made by the load; repeat for more.",
    ),
    click.option(
        "--destroy-data",
        is_flag=True,
        help="With --allow-write: also to an existing file, and to a device whose samples are not all zero.",
    ),
)


def load_options(command: _Command) -> _Command:
    """Add the options of LoadOptions to a command, which gets them as keyword arguments."""
    return _decorated(command, _OPTIONS)


def permission_options(command: _Command) -> _Command:
    """Add --allow-write and --destroy-data."""
    return _decorated(command, _PERMISSION_OPTIONS)


def _decorated(command: _Command, options: tuple[Callable[[_Command], _Command], ...]) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command


precondition_option = click.option(
    "--precondition",
    is_flag=True,
    help="First write to all that is used of the targets twice, 128k in sequence (SNIA); needs --allow-write.",
)


def make_permissions(
    allow_write: tuple[str, ...], *, destroy_data: bool, typed: Iterable[str] | None, scratch_dir: Path | None
) -> Permissions:
    """Build the permissions of a load on this host.

    Args:
        allow_write: names of --allow-write.
        destroy_data: --destroy-data.
        typed: names of --target.
        scratch_dir: --scratch-dir. Called before the job file may choose another folder.
    """
    folder = scratch_dir or scratch_folder()
    permissions = Permissions(frozenset(allow_write), destroy_data, typed=frozenset(typed or ()), make_in=folder)
    if not allow_write:
        return permissions
    from engine.guard.given import bound  # noqa: PLC0415 (slow to import, and for loads that write only)

    return bound(permissions)


def job_with(job: JobSpec, options: LoadOptions) -> JobSpec:
    """Merge options over a job; the result is not validated.

    Raises:
        UsageError: --rw and --read-pct contradict each other, or --qd and --qd-total.
    """
    access, read_pct = _mix(job, options)
    targets = _targets(options)
    total = options["qd_total"]
    given = {each: options[each.key] for each in TAIL if each.key != "qd_total" and options[each.key] is not None}
    settings = {each.field: each.read(value) for each, value in given.items()}
    settings |= {"targets": targets} if targets else {}
    settings |= {} if total is None else {"total_queue_depth": True}
    knobs = {knob.id: options[key] for key, knob in KNOBS_BY_KEY.items()}
    if not isinstance(total, bool | None):
        if options["qd"] is not None:
            raise UsageError(f"--qd-total: {total} and --qd {options['qd']}: give one of them")
        knobs |= {"queue_depth": total}
    knobs |= {"read_pct": read_pct, "stripe_width": _width(options, targets)}
    return replace(job, access=access, knobs=replace(job.knobs, **_given(knobs)), **settings)


def _width(options: LoadOptions, targets: tuple[TargetSpec, ...]) -> int | None:
    """Choose the given width, else all targets, or all copies of a scratch file; None keeps the job's."""
    width, copies = options["stripe_width"], options["mirror"]
    if width is not None:
        return int(width)
    return len(targets) or (copies if copies is not None and copies > 1 else None)


def _targets(options: LoadOptions) -> tuple[TargetSpec, ...]:
    luns = tuple(map(parse_lun, options["lun"] or ()))
    preferred = frozenset(map(node_name, options["prefer"] or ()))
    unknown = preferred.difference(*(target.nodes for target in luns))
    if unknown:
        raise UsageError(f"--prefer: {safe_text(min(unknown))} is not a path of any --lun")
    return (*(TargetSpec(path) for path in options["target"] or ()), *(prefer(target, preferred) for target in luns))


def _mix(job: JobSpec, options: LoadOptions) -> tuple[Access, float]:
    rw, read_pct = options["rw"], options["read_pct"]
    if rw is not None:
        return access_and_mix(rw, read_pct)
    return job.access, job.knobs.read_pct if read_pct is None else read_pct


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def with_scratch_targets(job: JobSpec, at_least: int) -> JobSpec:
    """Add scratch files to a job without named targets: as many as its stripe width, and at least `at_least`."""
    if any(target.path is not None for target in job.targets):
        return job
    count = max(at_least, job.knobs.stripe_width, len(job.targets))
    return replace(job, targets=(TargetSpec(),) * count)
