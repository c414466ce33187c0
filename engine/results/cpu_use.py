"""CPU time that measured I/Os cost, of the engine and of the whole host."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

GB = 1e9
"""Bytes, as sold; sizes that people type count in 1024."""


class CpuUse(Struct, frozen=True):
    """CPU time over the measured part of one epoch or several."""

    engine_ns: int
    """CPU time of the engine's threads and of the kernel's helpers behind their rings."""
    host_busy_ns: int
    """Busy time of all processors, for any process, as the kernel counted; iowait is not busy."""
    host_ns: int
    """Time of all processors, idle or not."""
    engine_waited_ns: int | None = None
    """How long the engine's threads, added up, were ready and waited for a processor; None where it is not known."""

    @property
    def host_is_least(self) -> bool:
        """Whether the host used more than was counted.

        Kernels that count by the tick miss what begins and ends between two (kernel/sched/cputime.c); the engine's
        threads are timed.
        """
        return self.host_busy_ns < self.engine_ns

    @property
    def host_used_ns(self) -> int:
        """What the host used, or at least used: never less than the engine did."""
        return max(self.host_busy_ns, self.engine_ns)

    @property
    def host_busy_pct(self) -> float | None:
        """Share of the host's processors that was busy, or at least was."""
        return 100 * self.host_used_ns / self.host_ns if self.host_ns else None


def per_io_us(cpu_ns: int, ios: int) -> float | None:
    """CPU microseconds per I/O."""
    return cpu_ns / ios / 1e3 if ios else None


def per_gb_s(cpu_ns: int, moved_bytes: int) -> float | None:
    """CPU seconds per 10^9 bytes."""
    return cpu_ns / 1e9 / (moved_bytes / GB) if moved_bytes else None


def add_up(uses: Iterable[CpuUse | None]) -> CpuUse | None:
    """Add up epochs; None if none of them was measured."""
    known = [use for use in uses if use is not None]
    if not known:
        return None
    return CpuUse(
        sum(use.engine_ns for use in known),
        sum(use.host_busy_ns for use in known),
        sum(use.host_ns for use in known),
        _sum(use.engine_waited_ns for use in known),
    )


def _sum(times_ns: Iterable[int | None]) -> int | None:
    total = 0
    for time_ns in times_ns:
        if time_ns is None:
            return None
        total += time_ns
    return total
