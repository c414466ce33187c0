"""How much of its time the engine waited for a processor rather than for the storage."""

from __future__ import annotations

from engine.job.choices import Backend
from engine.results.result import EpochResult

WAITED_SHARE = 0.10
"""Share from which waits for a processor limit the load, which may be slower than the storage by as much."""


def waiting_share(epoch: EpochResult, backend: str, *, one_queue: bool = False) -> float | None:
    """Share of the time in which the engine's threads were ready and waited for a processor; None if it is not known.

    With io_uring each thread serves many I/Os: the share is of the time of its threads, and the most of the throughput
    that was lost to it. Other engines have a thread for each I/O: the share is of the time that I/Os were outstanding.
    With a rate in a closed loop they also wait to wake up for the next I/O, while none is outstanding: the share is of
    the whole time then. With `one_queue` the depth is that of all targets together.
    """
    cpu, seconds = epoch.cpu, epoch.duration_s
    if cpu is None or cpu.engine_waited_ns is None or not seconds:
        return None
    threads = epoch.knobs.threads if backend == Backend.URING else _threads_of(epoch, seconds, one_queue=one_queue)
    return min(cpu.engine_waited_ns / 1e9 / seconds / threads, 1.0) if threads else None


def _threads_of(epoch: EpochResult, seconds: float, *, one_queue: bool) -> float:
    total = epoch.split.total
    if epoch.knobs.rate_iops is not None and total.service is None:
        return epoch.knobs.queue_depth * (1 if one_queue else len(epoch.targets))
    return total.ios * (total.mean_ns or 0.0) / 1e9 / seconds
