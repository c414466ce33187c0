"""Is a job within what the engine can do? Errors name the option as it is typed and the range it allows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.errors import UsageError
from engine.job.distribution import Permutation, Uniform
from engine.job.distribution_text import format_distribution
from engine.job.io_priority import priority_problems
from engine.job.knobs import knob_problems
from engine.job.limits import SECTOR_BYTES, Problem
from engine.job.rate_floor import LEAST_CYCLE_S
from engine.job.sizes import format_number, format_size
from engine.job.spec import (
    MAX_ARRIVALS_PER_S,
    MAX_PATHS,
    MAX_STREAMS,
    MAX_TARGETS,
    MAX_THREADS,
    MAX_WEIGHT,
    Access,
    Arrival,
    Backend,
    JobSpec,
    Knobs,
    PathPolicy,
    TargetSpec,
)


def _permutation_problems(knobs: Knobs) -> Iterator[Problem]:
    whole = Permutation()
    if knobs.write_distribution is not None and (knobs.distribution == whole) != (knobs.write_distribution == whole):
        yield Problem("write-distribution", "permutation is for reads and writes together: leave this one out")
    if knobs.distribution == whole and len(knobs.block_sizes) > 1:
        yield Problem("distribution", "permutation needs one block size for all I/Os, not a mix")


def order_problems(job: JobSpec) -> Iterator[Problem]:
    """List contradictions in the order of offsets."""
    yield from _permutation_problems(job.knobs)
    if not 1 <= job.streams <= MAX_STREAMS:
        yield Problem("streams", f"{job.streams} is out of range: 1 to {MAX_STREAMS}")
    if job.access is Access.RANDOM and job.streams > 1:
        yield Problem("streams", f"{job.streams} need sequential order: use --rw read, write or rw")
    own = (("distribution", job.knobs.distribution), ("write-distribution", job.knobs.write_distribution))
    for option, distribution in own:
        if job.access is Access.SEQUENTIAL and not isinstance(distribution, Uniform | None):
            text = f"{format_distribution(distribution)} needs random order: use --rw randread, randwrite or randrw"
            yield Problem(option, text)


MIN_STRIPE_UNIT_BYTES = 4096
MAX_SEED = 2**63 - 1
MAX_LOOPS = 10**9
MIN_STEADY_ROUND_S = 1.0
MAX_RESPONSE_TIMES = 256


def _outside(value: float, low: float, high: float) -> bool:
    """Whether a value is out of range or no number at all."""
    return not low <= value <= high


def setting_problems(job: JobSpec) -> Iterator[Problem]:
    """List what is wrong with single fixed settings."""
    if _outside(len(job.targets), 1, MAX_TARGETS):
        yield Problem("target", f"{len(job.targets)} targets: give 1 to {MAX_TARGETS}")
    unit = job.stripe_unit_bytes
    if unit < MIN_STRIPE_UNIT_BYTES or unit % SECTOR_BYTES:
        yield Problem("stripe-unit", f"{format_size(unit)} is out of range: multiples of 512 from 4k")
    if _outside(job.copies, 1, MAX_TARGETS):
        yield Problem("mirror", f"{job.copies} is out of range: 1 to {MAX_TARGETS} copies")
    for target in job.targets:
        yield from _path_problems(target)
    if _outside(job.seed, 0, MAX_SEED):
        yield Problem("seed", f"{job.seed} is out of range: 0 to {MAX_SEED}")
    if job.size_bytes is not None and job.size_bytes <= 0:
        yield Problem("size", f"{job.size_bytes} is out of range: at least one block")
    if job.runtime_s is not None and not 0 < job.runtime_s < math.inf:
        yield Problem("runtime", f"{format_number(job.runtime_s)} is out of range: longer than 0s")
    if not MIN_STEADY_ROUND_S <= job.steady_round_s < math.inf:
        least = format_number(MIN_STEADY_ROUND_S)
        yield Problem("steady-round", f"{format_number(job.steady_round_s)} is out of range: {least}s or longer")
    yield from _response_problems(job)
    if not 0 <= job.give_up_s < math.inf:
        yield Problem("give-up", f"{format_number(job.give_up_s)} is out of range: 0s or longer")


def _response_problems(job: JobSpec) -> Iterator[Problem]:
    for option, times_s in (("response-limits", job.response_limits_s), ("response-edges", job.response_edges_s)):
        if len(times_s) > MAX_RESPONSE_TIMES:
            yield Problem(option, f"{len(times_s)} times: give up to {MAX_RESPONSE_TIMES}")
        for time_s in times_s:
            if not 0 <= time_s < math.inf:
                yield Problem(option, f"{format_number(time_s)} is out of range: 0s or longer")


def _path_problems(target: TargetSpec) -> Iterator[Problem]:
    if len(target.paths) > MAX_PATHS:
        yield Problem("lun", f"{len(target.paths)} paths: give up to {MAX_PATHS}")
    if len(set(target.nodes)) < len(target.paths):
        yield Problem("lun", f"{', '.join(target.nodes)}: give each path once")
    for path in target.paths:
        if _outside(path.weight, 0, MAX_WEIGHT):
            yield Problem("lun", f"{path.path}: weight {path.weight} is out of range: 0 to {MAX_WEIGHT}")


def _layout_problems(job: JobSpec) -> Iterator[Problem]:
    width, depth, policy = job.knobs.stripe_width, job.knobs.queue_depth, job.knobs.policy
    if job.copies > 1 and width % job.copies:
        yield Problem(
            "stripe-width",
            f"{width} is no multiple of the {job.copies} copies of --mirror: use {job.copies} per column",
        )
    if job.total_queue_depth and depth < width and job.arrival is not Arrival.CLOSED:
        text = f"{depth} in all (--qd-total) over {width} targets is one queue, which takes no --arrival {job.arrival}"
        yield Problem("qd", f"{text}: give at least {width}")
    if policy is PathPolicy.WEIGHTED_ROUND_ROBIN:
        for target in job.targets:
            if target.paths and not any(path.weight for path in target.paths):
                yield Problem("policy", f"{policy} excludes paths of weight 0, and {target.path} has no other")


def joint_problems(job: JobSpec) -> Iterator[Problem]:
    """List contradictions between options that are each in range."""
    yield from order_problems(job)
    width, count = job.knobs.stripe_width, len(job.targets)
    if width > count:
        targets = "1 target" if count == 1 else f"{count} targets"
        yield Problem("stripe-width", f"{width} is more than the job has targets: 1 to {count} with {targets}")
    yield from _layout_problems(job)
    depth = job.knobs.queue_depth
    if job.backend is Backend.THREADS and depth > MAX_THREADS:
        yield Problem("qd", f"{depth} is out of range: 1 to {MAX_THREADS} with --engine threads (one thread per I/O)")
    yield from _arrival_problems(job)
    if job.poll and job.backend in (Backend.THREADS, Backend.AIO):
        yield Problem("poll", f"the {job.backend} engine sleeps in the kernel: polling needs --engine uring")
    if job.backend is Backend.AIO and job.knobs.fsync_every is not None:
        yield Problem("fsync-every", "the aio engine issues no fsync: it needs --engine uring or threads")
    yield from _verify_problems(job)
    yield from _extent_problems(job)
    yield from _time_problems(job)
    if job.size_bytes is not None:
        unit = math.lcm(*job.knobs.block_sizes)
        if job.size_bytes % unit:
            lower = job.size_bytes - job.size_bytes % unit
            yield Problem(
                "size",
                f"{format_size(job.size_bytes)} is not a multiple of the block ({format_size(unit)}): "
                f"use {format_size(lower or unit)}",
            )


def _verify_problems(job: JobSpec) -> Iterator[Problem]:
    if not job.verify:
        return
    if job.backend is Backend.AIO:
        yield Problem("verify", "the aio engine marks no writes: verification needs --engine uring or threads")
    for block in (*job.knobs.blocks, *job.knobs.drawn_write_blocks):
        if block.block_bytes % SECTOR_BYTES:
            yield Problem("verify", f"it marks every 512 bytes, and {block.block_bytes} is not a multiple of that")


def _arrival_problems(job: JobSpec) -> Iterator[Problem]:
    if job.arrival is Arrival.CLOSED:
        return
    rate_iops = job.knobs.rate_iops
    if rate_iops is not None and rate_iops > MAX_ARRIVALS_PER_S:
        yield Problem("rate", f"{rate_iops:g} is out of range: up to {MAX_ARRIVALS_PER_S} with --arrival {job.arrival}")
    if rate_iops is None:
        yield Problem("rate", f"--arrival {job.arrival} needs one: how many I/Os arrive per second")
    if job.backend is Backend.AIO:
        yield Problem(
            "arrival", f"the aio engine runs closed loops only: {job.arrival} needs --engine uring or threads"
        )


def _extent_problems(job: JobSpec) -> Iterator[Problem]:
    """List what is wrong with where I/Os go and after how many bytes the load ends."""
    if job.offset_bytes < 0:
        yield Problem("offset", f"{job.offset_bytes} is out of range: 0 or more")
    if job.io_bytes is not None and job.io_bytes < 1:
        yield Problem("io-size", f"{job.io_bytes} is out of range: at least one block")
    if job.loops is not None and not 1 <= job.loops <= MAX_LOOPS:
        yield Problem("loops", f"{job.loops} is out of range: 1 to {MAX_LOOPS}")
    if job.ends_by_bytes and job.copies > 1:
        yield Problem(
            "io-size", "it and --loops count the bytes of each target, of which a mirror reads one: leave them out"
        )
    unit = math.lcm(*job.knobs.block_sizes)
    if job.access is Access.SEQUENTIAL:
        if job.align_bytes is not None:
            yield Problem("align", "is for random order: use --rw randread, randwrite or randrw")
        for option, step in (("stream-step", job.stream_step_bytes or 0), ("jump", job.jump_bytes)):
            if step % unit:
                yield Problem(option, f"{step} is not a multiple of the block ({format_size(unit)})")
        if job.jump_bytes and len(job.knobs.block_sizes) > 1:
            yield Problem("jump", "needs one block size for all I/Os, not a mix")
        return
    needs_sequence = {
        "stream-step": job.stream_step_bytes is not None,
        "jump": job.jump_bytes != 0,
        "separate": job.separate,
    }
    for option, is_given in needs_sequence.items():
        if is_given:
            yield Problem(option, "needs sequential order: use --rw read, write or rw")
    yield from _align_problems(job)


def _align_problems(job: JobSpec) -> Iterator[Problem]:
    if job.align_bytes is None:
        return
    if job.align_bytes < 1:
        yield Problem("align", f"{job.align_bytes} is out of range: 1 or more")
    if isinstance(job.knobs.distribution, Permutation):
        yield Problem("align", "blocks of a permutation do not overlap: use another --distribution")
    if job.verify:
        yield Problem("verify", "it checks blocks that do not overlap: leave --align out")


def _time_problems(job: JobSpec) -> Iterator[Problem]:
    """List what is wrong with the ramp and the pauses."""
    if not 0 <= job.ramp_s < math.inf:
        yield Problem("ramp", f"{format_number(job.ramp_s)} is out of range: 0s or longer")
    elif job.runtime_s is not None and job.ramp_s >= job.runtime_s:
        runtime = format_number(job.runtime_s)
        yield Problem("ramp", f"nothing of the runtime of {runtime}s is left to measure: give less")
    if not 0 <= job.think_s < math.inf:
        yield Problem("think", f"{format_number(job.think_s)} is out of range: 0s or longer")
    if not 1 <= job.think_every <= MAX_LOOPS:
        yield Problem("think-every", f"{job.think_every} is out of range: 1 to {MAX_LOOPS}")
    yield from _floor_problems(job)
    yield from (Problem("io-priority", text) for text in priority_problems(job.priorities))
    outstanding = job.knobs.queue_depth * (1 if job.total_queue_depth else job.knobs.stripe_width)
    if job.think_s and job.backend is not Backend.THREADS and outstanding > job.knobs.threads:
        yield Problem("think", f"pauses are between the I/Os of a thread, and {outstanding} need as many --threads")


def _floor_problems(job: JobSpec) -> Iterator[Problem]:
    floor, rate = job.rate_min, job.knobs.rate_iops
    if floor is None:
        return
    if not 0 < floor.per_s < math.inf:
        yield Problem("rate-min", f"{format_number(floor.per_s)} is out of range: above 0")
    if not LEAST_CYCLE_S <= floor.cycle_s < math.inf:
        yield Problem("rate-min", f"{format_number(floor.cycle_s)}s is out of range: {LEAST_CYCLE_S:g}s or longer")
    if rate is not None and not floor.in_bytes and floor.per_s > rate:
        yield Problem("rate-min", f"{format_number(floor.per_s)} is above the --rate of {format_number(rate)}")


def aio_refusal(what: str) -> str:
    """Say that the aio engine does not drive something, with the fix."""
    return f"the aio engine does not drive {what}: use --engine uring or threads"


def _not_for_aio(job: JobSpec) -> Iterator[str]:
    """List what the aio engine does not implement: it must not drive another load than requested."""
    wanted = {
        "several paths to one LUN (--lun)": any(target.paths for target in job.targets),
        "a mirror (--mirror)": job.copies > 1,
        "one queue depth for all targets (--qd-total)": job.total_queue_depth,
        "several sequential streams (--streams)": job.streams > 1,
        "a jump between blocks (--jump)": job.jump_bytes != 0,
        "sequences of reads and of writes (--separate)": job.separate,
        "a part of a target that begins later (--offset)": job.offset_bytes != 0,
        "an alignment of its own (--align)": job.align_bytes is not None,
        "an end by bytes (--io-size, --loops)": job.ends_by_bytes,
        "a time that is not measured (--ramp)": job.ramp_s > 0,
        "pauses (--think)": job.think_s > 0,
        "I/O priorities (--io-priority)": bool(job.priorities),
        "processors of its own (--cpus)": bool(job.cpus),
    }
    return (what for what, is_wanted in wanted.items() if is_wanted)


def validate(job: JobSpec) -> None:
    """Check a whole job, without touching its targets.

    Raises:
        UsageError: the first problem, with the option's name.
    """
    for problems in (knob_problems(job.knobs), setting_problems(job), joint_problems(job)):
        for problem in problems:
            raise UsageError(str(problem))
    for what in _not_for_aio(job) if job.backend is Backend.AIO else ():
        raise UsageError(aio_refusal(what))
