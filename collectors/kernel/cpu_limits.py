"""What limits the processor time of this process: quotas of its groups, the entitlement of a partition, interrupts.

Documentation/scheduler/sched-bwc.rst; /proc/ppc64/lparcfg (arch/powerpc/platforms/pseries/lparcfg.c).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from pathlib import Path

from msgspec import Struct

from collectors.kernel.identity import storable_name
from engine.hostfs.kernel_files import read_text
from engine.text import whole_number

_V1_FOLDERS = ("cpu,cpuacct", "cpu")
_ALL, _IDLE, _INTERRUPTS = slice(0, 8), slice(3, 5), slice(5, 7)
"""Fields of a processor in proc_stat(5): all but guest times, which are in others; idle, iowait; irq, softirq."""


class LimitKind(Enum):
    """What sets a limit."""

    GROUP = auto()
    """A control group with a quota."""
    PARTITION = auto()
    """A capped partition of a Power host."""
    INTERRUPTS = auto()
    """The processor that serves the most interrupts."""


class CpuLimit(Struct, frozen=True):
    """One limit, and how much it held back between two moments."""

    kind: LimitKind
    name: str
    """Path of the control group, name of the processor; empty for a partition."""
    cpus: float
    """Processors that it admits."""
    share_pct: float
    """Periods in which the group was stopped, as its quota was used up; what a partition used of its entitlement; time
    that the processor spent in interrupts."""
    busiest_pct: float = math.nan
    """How busy the busiest processor was; NaN where that is not known."""


class _Quota(Struct, frozen=True):
    """A control group with a quota, and what the kernel has counted of it."""

    cpus: float
    periods: int
    throttled: int


class _Partition(Struct, frozen=True):
    """A partition whose processors are capped."""

    cpus: float
    used_ticks: int
    """What its processors have used in ticks of the time base (PURR)."""
    ticks_per_s: int


class _Ticks(Struct, frozen=True):
    """How one processor spent its time."""

    busy: int
    interrupts: int
    total: int

    def less(self, earlier: _Ticks) -> _Ticks:
        return _Ticks(self.busy - earlier.busy, self.interrupts - earlier.interrupts, self.total - earlier.total)

    @property
    def busy_pct(self) -> float:
        return 100.0 * self.busy / self.total

    @property
    def interrupts_pct(self) -> float:
        return 100.0 * self.interrupts / self.total


class CpuLimits(Struct, frozen=True):
    """All limits of this process, as counted so far."""

    taken_ns: int
    quotas: Mapping[str, _Quota]
    partition: _Partition | None
    ticks: Mapping[str, _Ticks]
    """Of each processor."""

    @classmethod
    def now(cls, procfs: str = "/proc", sysfs: str = "/sys") -> CpuLimits:
        """Read them; what this kernel does not have is missing."""
        return cls(time.monotonic_ns(), dict(_quotas(procfs, sysfs)), _partition(procfs), dict(_processors(procfs)))

    def since(self, earlier: CpuLimits) -> tuple[CpuLimit, ...]:
        """Return what each limit held back since: of the group that did most, of the partition, of interrupts."""
        spent = {
            cpu: now.less(before)
            for cpu, now in self.ticks.items()
            if (before := earlier.ticks.get(cpu)) is not None and now.total > before.total
        }
        busiest = max((each.busy_pct for each in spent.values()), default=math.nan)
        found = max(self._throttled(earlier), key=lambda each: each[2], default=None)
        limits = [] if found is None else [CpuLimit(LimitKind.GROUP, *found, busiest)]
        limits += (CpuLimit(LimitKind.PARTITION, "", *each, busiest) for each in self._entitled(earlier))
        most = max(spent, key=lambda cpu: spent[cpu].interrupts_pct, default=None)
        if most is not None and len(spent) > 1:
            limits.append(CpuLimit(LimitKind.INTERRUPTS, most, 1.0, spent[most].interrupts_pct, busiest))
        return tuple(limits)

    def _throttled(self, earlier: CpuLimits) -> Iterator[tuple[str, float, float]]:
        for path, quota in self.quotas.items():
            before = earlier.quotas.get(path)
            if before is not None and quota.periods > before.periods:
                stopped = max(quota.throttled - before.throttled, 0)
                yield path, quota.cpus, min(100.0 * stopped / (quota.periods - before.periods), 100.0)

    def _entitled(self, earlier: CpuLimits) -> Iterator[tuple[float, float]]:
        now, before = self.partition, earlier.partition
        if now is not None and before is not None and now.used_ticks >= before.used_ticks:
            possible = (self.taken_ns - earlier.taken_ns) / 1e9 * now.ticks_per_s * now.cpus
            if possible > 0:
                yield now.cpus, min(100.0 * (now.used_ticks - before.used_ticks) / possible, 100.0)


def _quotas(procfs: str, sysfs: str) -> Iterator[tuple[str, _Quota]]:
    """Yield the groups of this process with a quota, by path: its own and those above."""
    base = Path(sysfs, "fs/cgroup")
    for line in (read_text(f"{procfs}/self/cgroup") or "").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        roots = [base / name for name in _V1_FOLDERS] if controllers else [base, base / "unified"]
        parts = [part for part in path.split("/") if part]
        for root in roots:
            for depth in range(len(parts), 0, -1):
                quota = _quota(root.joinpath(*parts[:depth]))
                if quota is not None:
                    yield storable_name("/" + "/".join(parts[:depth])), quota


def _quota(folder: Path) -> _Quota | None:
    """Read `cpu.max` ("20000 100000", "max 100000") of cgroup v2, or the two files of v1 (-1 is no quota)."""
    text = read_text(folder / "cpu.max")
    if text is None:
        text = " ".join(read_text(folder / f"cpu.cfs_{name}_us") or "none" for name in ("quota", "period"))
    words = text.split()
    quota_us, period_us = (whole_number(word) for word in (*words, "", "")[:2])
    counts = {
        name: count
        for name, _, value in (line.partition(" ") for line in (read_text(folder / "cpu.stat") or "").splitlines())
        if (count := whole_number(value)) is not None
    }
    if not quota_us or not period_us or "nr_periods" not in counts:
        return None
    return _Quota(quota_us / period_us, counts["nr_periods"], counts.get("nr_throttled", 0))


def _partition(procfs: str) -> _Partition | None:
    """Read the entitlement of a shared, capped partition, in hundredths of processors."""
    lines = (line.partition("=") for line in (read_text(f"{procfs}/ppc64/lparcfg") or "").splitlines())
    found = {name: count for name, _, value in lines if (count := whole_number(value)) is not None}
    entitled, used = found.get("partition_entitled_capacity"), found.get("purr")
    if not entitled or used is None or found.get("capped") != 1 or found.get("shared_processor_mode") != 1:
        return None
    for line in (read_text(f"{procfs}/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "timebase" and (ticks_per_s := whole_number(value.strip())):
            return _Partition(entitled / 100.0, used, ticks_per_s)
    return None


def _processors(procfs: str) -> Iterator[tuple[str, _Ticks]]:
    for line in (read_text(f"{procfs}/stat") or "").splitlines():
        name, *words = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks = [whole_number(word) or 0 for word in words[_ALL]]
            yield name, _Ticks(sum(ticks) - sum(ticks[_IDLE]), sum(ticks[_INTERRUPTS]), sum(ticks))
