"""How much of its time the engine waited for a processor rather than for the storage."""

from __future__ import annotations

from engine.job.choices import Backend
from engine.results.result import EpochResult

WAITED_SHARE = 0.10
"""From this share on, waits for a processor are a limit of the load: by so much it may be slower than the storage."""


def waiting_share(epoch: EpochResult, backend: str) -> float | None:
    """Share of the time in which the engine's threads were ready and waited for a processor; None if it is not known.

    Of io_uring each thread serves many I/Os: the share is of the time of its threads, and the most of the throughput
    that was lost to it. Other engines have a thread for each I/O: the share is of the time that I/Os were outstanding.
    """
    cpu, seconds = epoch.cpu, epoch.duration_s
    if cpu is None or cpu.engine_waited_ns is None or not seconds:
        return None
    total = epoch.split.total
    threads = epoch.knobs.threads if backend == Backend.URING else total.ios * (total.mean_ns or 0.0) / 1e9 / seconds
    return min(cpu.engine_waited_ns / 1e9 / seconds / threads, 1.0) if threads else None
