"""Which engine does the I/O: the best that works here, and why that one."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from engine._native import FlowShare, LoadEngine, LoadPath, LoadTarget
from engine.backend.protocol import LoadBackend, LoadSettings
from engine.errors import LunscopeError, UsageError, too_many_open
from engine.guard import OpenTarget
from engine.job.io_priority import kernel_rules
from engine.job.knobs import engine_refusal
from engine.job.spec import MAX_QUEUE_DEPTH, MAX_THREADS, Access, Backend, JobSpec, Knobs, TargetSpec
from engine.job.validate import aio_refusal
from engine.running.cpus import started_on

_QUEUE_DEPTH_ROOM = 1024
"""Rings are sized once: this lets the operator turn the queue depth up."""
_ASKED_FOR = "asked for"
_BLOCKING = "reads of it block, and threads do them 3 to 15 times faster than a ring"
_AIO_NOTICE = "the aio engine is the readable reference: expect 0.02 to 0.25 of the IOPS of the others, and its latency"


class BackendChoice(Struct, frozen=True):
    """A backend and the reason for it."""

    backend: Backend
    why: str


def choose(job: JobSpec, *, uring_refusal: str, blocking: str) -> BackendChoice:
    """Choose the engine that the job names, or the best that works; `blocking` names a target whose reads block.

    Raises:
        LunscopeError: the job names io_uring and the kernel refuses it.
    """
    if job.backend is Backend.URING and uring_refusal:
        raise LunscopeError(f"the uring engine cannot run here: {uring_refusal}; --engine threads needs no io_uring")
    if job.backend is not Backend.AUTO:
        return BackendChoice(job.backend, _ASKED_FOR)
    if uring_refusal:
        return BackendChoice(Backend.THREADS, f"no io_uring: {uring_refusal}")
    if blocking and job.knobs.queue_depth * job.knobs.stripe_width <= MAX_THREADS:
        return BackendChoice(Backend.THREADS, f"{blocking}: {_BLOCKING}; QD is the number of threads per target")
    return BackendChoice(Backend.URING, "the fastest, and it works here")


def blocking_target(knobs: Knobs, targets: Sequence[OpenTarget]) -> str:
    """Name the first target in use that cannot be read without blocking; empty if there is none, or nothing is read."""
    if knobs.read_pct == 0:
        return ""
    return next((target.name for target in targets[: knobs.stripe_width] if target.facts.reads_block), "")


def build(
    choice: BackendChoice,
    job: JobSpec,
    targets: Sequence[OpenTarget],
    journals: Sequence[int | None] | None = None,
    flow: FlowShare | None = None,
) -> tuple[BackendChoice, LoadBackend]:
    """Make the engine; where AUTO took io_uring and the kernel refuses the rings after all, threads do it.

    `journals` are those of a verified job, by their descriptors; `flow` is its part of the I/Os of several.

    Raises:
        LunscopeError: the kernel refuses what the engine needs.
        UsageError: a knob is out of range for the targets.
    """
    try:
        with started_on(job.cpus):
            return choice, _make(choice.backend, job, targets, journals, flow)
    except ValueError as error:
        raise UsageError(engine_refusal(str(error))) from error
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise too_many_open(f"the {choice.backend} engine cannot start") from error
        if job.backend is Backend.AUTO and choice.backend is Backend.URING:
            threads = BackendChoice(Backend.THREADS, f"io_uring was refused: {error}")
            return build(threads, job, targets, journals, flow)
        raise LunscopeError(f"the {choice.backend} engine cannot start: {error}") from error


def deepest(job: JobSpec) -> int:
    """How deep a load that starts with these knobs can be turned: the engine allocates for it at its start."""
    return min(max(2 * job.knobs.queue_depth, _QUEUE_DEPTH_ROOM), MAX_QUEUE_DEPTH)


_NATIVE: Mapping[Backend, Literal["uring", "threads"]] = {Backend.URING: "uring", Backend.THREADS: "threads"}
"""Names in the native core of the backends that it has."""


def _make(
    backend: Backend,
    job: JobSpec,
    targets: Sequence[OpenTarget],
    journals: Sequence[int | None] | None,
    flow: FlowShare | None,
) -> LoadBackend:
    sequential = job.access is Access.SEQUENTIAL
    max_queue_depth = deepest(job)
    if backend is Backend.AIO:
        if flow is not None:
            raise UsageError(aio_refusal("a flow of several loads"))
        from engine.aio import AioEngine, AioTarget  # noqa: PLC0415 (imports asyncio and aiofiles, which others do not need)

        return AioEngine(
            [AioTarget(t.fd, t.name, t.size_bytes, t.direct_align_bytes, t.writable) for t in targets],
            job.knobs,
            sequential=sequential,
            stripe_unit_bytes=job.stripe_unit_bytes,
            seed=job.seed,
            max_queue_depth=max_queue_depth,
            runtime_s=job.runtime_s,
        )
    return LoadEngine(
        [_native_target(spec, target) for spec, target in zip(job.targets, targets, strict=True)],
        job.knobs,
        LoadSettings(
            backend=_NATIVE[backend],
            sequential=sequential,
            streams=job.streams,
            stream_step_bytes=job.stream_step_bytes,
            jump_bytes=job.jump_bytes,
            separate=job.separate,
            offset_bytes=job.offset_bytes,
            align_bytes=job.align_bytes,
            io_bytes=job.io_bytes,
            loops=job.loops,
            ramp_s=job.ramp_s,
            think_s=job.think_s,
            think_every=job.think_every,
            priorities=kernel_rules(job.priorities),
            stripe_unit_bytes=job.stripe_unit_bytes,
            copies=job.copies,
            total_queue_depth=job.total_queue_depth,
            seed=job.seed,
            max_queue_depth=max_queue_depth,
            runtime_s=job.runtime_s,
            arrival=job.arrival.value,
            poll=job.poll,
            journals=journals,
            flow=flow,
        ),
    )


def _native_target(spec: TargetSpec, target: OpenTarget) -> LoadTarget:
    nodes = zip(spec.paths, target.nodes, strict=True) if spec.paths else ()
    paths = [
        LoadPath(
            node.fd,
            path.path,
            weight=path.weight,
            preferred=path.preferred,
            cell=node.cell,
            outstanding=node.outstanding,
        )
        for path, node in nodes
    ]
    return LoadTarget(
        target.fd, target.name, target.size_bytes, target.direct_align_bytes, writable=target.writable, paths=paths
    )


def notices_of(choice: BackendChoice, knobs: Knobs, targets: Sequence[OpenTarget]) -> tuple[str, ...]:
    """Say what a reader must know about this engine, these knobs and these targets, one line each."""
    by_text: dict[str, list[str]] = {}
    for target in targets[: knobs.stripe_width]:
        for text in (*target.notices, *_depth_notice(knobs, target)):
            by_text.setdefault(text, []).append(target.name)
    return (
        *_engine_notice(choice, knobs),
        *_blocking_notice(choice, knobs, targets),
        *(f"{_those(names)}: {text}" for text, names in by_text.items()),
    )


def _engine_notice(choice: BackendChoice, knobs: Knobs) -> Iterator[str]:
    if choice.backend is Backend.AIO:
        yield _AIO_NOTICE
    if choice.backend is Backend.THREADS and choice.why != _ASKED_FOR:
        yield f"threads engine: {choice.why}"
    if choice.backend is not Backend.URING and knobs.threads > 1:
        yield (
            f"threads {knobs.threads} is for the uring engine: the {choice.backend} engine takes a thread for every "
            "outstanding I/O, so queue depth says how many"
        )


def _blocking_notice(choice: BackendChoice, knobs: Knobs, targets: Sequence[OpenTarget]) -> tuple[str, ...]:
    """Say that another engine would be faster, after a turn of the mode, or where it was requested or is too deep."""
    blocking = blocking_target(knobs, targets) if choice.backend is Backend.URING else ""
    return (f"{blocking}: {_BLOCKING}: try --engine threads",) if blocking else ()


def _depth_notice(knobs: Knobs, target: OpenTarget) -> tuple[str, ...]:
    if target.nr_requests is None or knobs.queue_depth <= target.nr_requests:
        return ()
    return (
        f"queue depth {knobs.queue_depth} is above nr_requests {target.nr_requests}: the rest waits before the queue",
    )


def _those(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
