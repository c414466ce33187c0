"""The options that say what to drive, and the job they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from engine.errors import LunscopeError, UsageError
from engine.job.distribution import Distribution
from engine.job.distribution_text import parse_distribution
from engine.job.policy_text import POLICY_NAMES, parse_policy
from engine.job.read_write import READ_WRITE, access_and_mix
from engine.job.sizes import parse_blocks, parse_duration, parse_size
from engine.job.spec import Access, Arrival, Backend, BlockShare, JobSpec, Mode, PathPolicy, Permissions, TargetSpec
from engine.job.target_text import node_name, parse_lun, prefer
from engine.text import safe_text
from tui.options.numbers import DECIMAL, WHOLE

_Command = TypeVar("_Command", bound=Callable[..., Any])


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


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options as given; None was not given and leaves what the job file says."""

    target: tuple[str, ...] = ()
    lun: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    bs: tuple[BlockShare, ...] | None = None
    write_bs: tuple[BlockShare, ...] | None = None
    distribution: Distribution | None = None
    write_distribution: Distribution | None = None
    streams: int | None = None
    rw: str | None = None
    read_pct: float | None = None
    qd: int | None = None
    stripe_width: int | None = None
    stripe_unit: int | None = None
    mirror: int | None = None
    policy: PathPolicy | None = None
    qd_total: bool | None = None
    threads: int | None = None
    rate: float | None = None
    mode: str | None = None
    fsync_every: int | None = None
    runtime: float | None = None
    give_up: float | None = None
    size: int | None = None
    seed: int | None = None
    arrival: str | None = None
    poll: bool | None = None
    verify: bool | None = None
    engine: str | None = None


_OPTIONS = (
    click.option(
        "--target",
        "-t",
        multiple=True,
        metavar="PATH",
        help="Device or file; repeat for a stripe. None: a scratch file.",
    ),
    click.option(
        "--lun",
        multiple=True,
        metavar="NODE[=WEIGHT],...",
        help="Device nodes of one LUN, driven over all of them by --policy: sda,sdb=3; repeat for more LUNs.",
    ),
    click.option("--prefer", multiple=True, metavar="NODE", help="The path of --policy preferred-path. [the first]"),
    click.option(
        "--bs",
        callback=_parsed(parse_blocks),
        metavar="SIZE[:PCT,...]",
        help="Block size, or a mix: 4k:60,16k:40. [4k]",
    ),
    click.option(
        "--write-bs", callback=_parsed(parse_blocks), metavar="SIZE[:PCT,...]", help="Block sizes of writes. [as --bs]"
    ),
    click.option(
        "--distribution",
        callback=_parsed(parse_distribution),
        metavar="NAME[:...]",
        help="Where random I/Os go: uniform, permutation (every block once), zipf:1.1, pareto:0.2, normal:10[:50], "
        "hot:90/10, locality:50,30,20 (equal slices), zones:60/10,40/90. [uniform]",
    ),
    click.option(
        "--write-distribution",
        callback=_parsed(parse_distribution),
        metavar="NAME[:...]",
        help="Where random writes go. [as --distribution]",
    ),
    click.option("--streams", type=WHOLE, metavar="N", help="Sequential streams on each target, in turns. [1]"),
    click.option("--rw", type=click.Choice(list(READ_WRITE)), help="Order and direction. [randread]"),
    click.option("--read-pct", type=DECIMAL, metavar="PCT", help="Share of reads, 0 to 100."),
    click.option("--qd", type=WHOLE, metavar="N", help="Outstanding I/Os kept on each target. [1]"),
    click.option(
        "--stripe-width", type=WHOLE, metavar="N", help="Over how many targets the load is spread. [all given]"
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
        "--policy",
        callback=_parsed(parse_policy),
        metavar="NAME",
        help=f"Which path, or copy, an I/O takes: {', '.join(POLICY_NAMES)}. [round-robin]",
    ),
    click.option("--qd-total", is_flag=True, default=None, help="--qd is that of all targets together, shared out."),
    click.option("--threads", type=WHOLE, metavar="N", help="Worker threads of the engine. [1]"),
    click.option("--rate", type=DECIMAL, metavar="IOPS", help="At most so many I/Os per second over all targets."),
    click.option(
        "--arrival",
        type=click.Choice([arrival.value for arrival in Arrival]),
        help="When I/Os are issued: as others come back, or at --rate whatever comes back. [closed]",
    ),
    click.option(
        "--poll/--no-poll", default=None, help="Stay awake for completions: lowest latency, a processor per thread."
    ),
    click.option(
        "--verify/--no-verify",
        default=None,
        help="Mark every write, check reads and, at the end, all that was written; exit 1 if any of it is damaged.",
    ),
    click.option("--mode", type=click.Choice([mode.value for mode in Mode]), help="How targets are opened. [direct]"),
    click.option("--fsync-every", type=WHOLE, metavar="N", help="Flush a target after every N writes. [never]"),
    click.option(
        "--runtime",
        callback=_parsed(parse_duration),
        metavar="TIME",
        help="How long, as 30s or 5m. [10s without screen]",
    ),
    click.option(
        "--give-up",
        callback=_parsed(parse_duration),
        metavar="TIME",
        help="How long the end waits for I/Os that do not come back; a second signal ends it at once. [30s]",
    ),
    click.option(
        "--size", callback=_parsed(parse_size), metavar="SIZE", help="Bytes used of each target. [all; scratch: 256m]"
    ),
    click.option("--seed", type=WHOLE, metavar="N", help="Same seed, same offsets and data. [1]"),
    click.option("--engine", type=click.Choice([name.value for name in Backend]), help="Who does the I/O. [auto]"),
)

_PERMISSION_OPTIONS = (
    click.option(
        "--allow-write", multiple=True, metavar="PATH", help="Allow writing to exactly this target; repeat for more."
    ),
    click.option(
        "--destroy-data", is_flag=True, help="With --allow-write: even where data, a filesystem or a label is."
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


def make_permissions(allow_write: tuple[str, ...], *, destroy_data: bool) -> Permissions:
    """Gather what the operator allowed."""
    return Permissions(frozenset(allow_write), destroy_data)


def job_with(job: JobSpec, options: LoadOptions) -> JobSpec:
    """Merge options over a job; what it makes is not validated either.

    Raises:
        UsageError: --rw and --read-pct contradict each other.
    """
    access, read_pct = _mix(job, options)
    targets = _targets(options)
    given = {
        "targets": targets or None,
        "copies": options.mirror,
        "total_queue_depth": options.qd_total,
        "backend": None if options.engine is None else Backend(options.engine),
        "streams": options.streams,
        "stripe_unit_bytes": options.stripe_unit,
        "size_bytes": options.size,
        "runtime_s": options.runtime,
        "give_up_s": options.give_up,
        "seed": options.seed,
        "arrival": None if options.arrival is None else Arrival(options.arrival),
        "poll": options.poll,
        "verify": options.verify,
    }
    knobs = {
        "queue_depth": options.qd,
        "stripe_width": _width(options, targets),
        "blocks": options.bs,
        "write_blocks": options.write_bs,
        "distribution": options.distribution,
        "write_distribution": options.write_distribution,
        "mode": None if options.mode is None else Mode(options.mode),
        "threads": options.threads,
        "fsync_every": options.fsync_every,
        "rate_iops": options.rate,
        "policy": options.policy,
    }
    return replace(job, access=access, knobs=replace(job.knobs, read_pct=read_pct, **_given(knobs)), **_given(given))


def _width(options: LoadOptions, targets: tuple[TargetSpec, ...]) -> int | None:
    """Take the width that was given, else all targets, or all copies of a scratch file; None leaves the job's."""
    if options.stripe_width is not None:
        return options.stripe_width
    return len(targets) or (options.mirror if options.mirror is not None and options.mirror > 1 else None)


def _targets(options: LoadOptions) -> tuple[TargetSpec, ...]:
    luns = tuple(map(parse_lun, options.lun))
    preferred = frozenset(map(node_name, options.prefer))
    unknown = preferred.difference(*(target.nodes for target in luns))
    if unknown:
        raise UsageError(f"--prefer: {safe_text(min(unknown))} is no path of any --lun")
    return (*(TargetSpec(path) for path in options.target), *(prefer(target, preferred) for target in luns))


def _mix(job: JobSpec, options: LoadOptions) -> tuple[Access, float]:
    if options.rw is not None:
        return access_and_mix(options.rw, options.read_pct)
    return job.access, job.knobs.read_pct if options.read_pct is None else options.read_pct


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def with_scratch_targets(job: JobSpec, at_least: int) -> JobSpec:
    """Give a job without any named target as many scratch files as its stripe is wide, and at least so many."""
    if any(target.path is not None for target in job.targets):
        return job
    count = max(at_least, job.knobs.stripe_width, len(job.targets))
    return replace(job, targets=(TargetSpec(),) * count)
