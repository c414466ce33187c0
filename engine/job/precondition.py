"""Workload-independent preconditioning of the SNIA SSS PTS: all that a load uses is written twice, in sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.errors import RefusedError, UsageError
from engine.job.knobs import Knobs
from engine.job.sizes import BlockShare, human_size
from engine.job.spec import Access, JobSpec, Permissions
from engine.text import safe_text

PASSES = 2
BLOCK_BYTES = 128 * 1024
_QUEUE_DEPTH = 32
_EXAMPLES = ((500e6, "500 MB/s"), (2e9, "2 GB/s"))
"""Sequential writes of SATA and of NVMe: how fast a device is, nobody knows before it is written."""


def precondition_job(job: JobSpec, permissions: Permissions) -> JobSpec:
    """Make the load that preconditions the targets of another; the guard checks it as any load that writes.

    Raises:
        UsageError: there is nothing to precondition: a scratch file is made anew for each load.
        RefusedError: writing to one of the targets was not allowed.
    """
    if any(target.path is None for target in job.targets):
        raise UsageError("--precondition: a scratch file is made and filled for each load: name a --target")
    for path in (path for target in job.targets for path in target.nodes):
        if path not in permissions.allow_write:
            shown = safe_text(path)
            raise RefusedError(
                f"{shown}: --precondition overwrites it {PASSES} times: allow it with --allow-write {shown}"
            )
    knobs = Knobs(
        queue_depth=_QUEUE_DEPTH,
        stripe_width=len(job.targets),
        blocks=(BlockShare(BLOCK_BYTES),),
        read_pct=0.0,
    )
    return JobSpec(
        targets=job.targets,
        knobs=knobs,
        access=Access.SEQUENTIAL,
        stripe_unit_bytes=BLOCK_BYTES,
        size_bytes=job.size_bytes,
        offset_bytes=job.offset_bytes,
        loops=PASSES,
        give_up_s=job.give_up_s,
        seed=job.seed,
        name="preconditioning",
    )


def precondition_words(job: JobSpec, names: Sequence[str], used_bytes: Sequence[int]) -> Iterator[str]:
    """Say what will be written where, and how long that takes: targets are written beside each other."""
    for name, size_bytes in zip(names, used_bytes, strict=True):
        part = " (the part of it that --size and --offset choose)" if job.size_bytes or job.offset_bytes else ""
        total = human_size(PASSES * size_bytes)
        yield f"preconditioning: writes {PASSES} x {human_size(size_bytes)} = {total} to {name}{part}, 128k in sequence"
    longest = PASSES * max(used_bytes)
    times = ", ".join(f"{_time(longest / rate)} at {words}" for rate, words in _EXAMPLES)
    yield f"preconditioning: takes {times} each; a signal ends it, and nothing is measured then"


def left_s(total_bytes: Sequence[int], written_bytes: Sequence[int], elapsed_s: float) -> float | None:
    """Estimate the time left at the mean rate of each target; None before each has written anything."""
    if not elapsed_s > 0 or not all(written_bytes):
        return None
    pairs = zip(total_bytes, written_bytes, strict=True)
    return max(max(total - written, 0) * elapsed_s / written for total, written in pairs)


def progress_words(total_bytes: Sequence[int], written_bytes: Sequence[int], elapsed_s: float) -> str:
    """As in "preconditioning: 34 %, 512 MiB/s, 12 min left"."""
    written, left = sum(written_bytes), left_s(total_bytes, written_bytes, elapsed_s)
    if left is None:
        return "preconditioning: 0 %"
    rate = human_size(round(written / elapsed_s))
    return f"preconditioning: {100 * min(written / sum(total_bytes), 1):.0f} %, {rate}/s, {_time(left)} left"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
