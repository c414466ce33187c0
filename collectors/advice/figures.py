"""The figures of one load that findings are drawn from: plain values, NaN where they are not known."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct, field

from collectors.kernel.cpu_users import CpuUser
from collectors.model import Tier

NAN = math.nan


class TargetFigures(Struct, frozen=True):
    """One target inside the stripe width, as the engine measured it."""

    name: str
    ios: int
    iops: float
    latency_ns: float
    """Mean."""
    waited_pct: float | None = None
    """Share of the latency of logical I/Os that is waiting for this target alone; None where no I/O spans targets."""

    @property
    def in_flight(self) -> float:
        """Mean outstanding I/Os (Little's law)."""
        return self.iops * self.latency_ns / 1e9


class LoadFigures(Struct, frozen=True):
    """One load over one measured part, as the engine measured it."""

    queue_depth: int
    """Depth of each target, or of all together with `one_queue`."""
    targets: tuple[TargetFigures, ...]
    duration_s: float
    ios: int
    iops: float
    latency_ns: float = NAN
    """Mean."""
    read_bytes_per_s: float = NAN
    write_bytes_per_s: float = NAN
    given_targets: int = 1
    """Targets of the job, inside the stripe width or not."""
    one_queue: bool = False
    closed: bool = True
    """Whether an I/O is issued when another completes."""
    pauses: bool = False
    """Whether threads think between I/Os."""
    rate_iops: float = NAN
    """The rate asked for; NaN without one."""
    direct: bool = True
    mode: str = "direct"
    threads: int = 1
    engine_share: float = NAN
    """Share of their time that the engine's threads used; NaN where that says nothing of their speed."""
    waiting_share: float = NAN
    """Share of that time that they were ready and waited for a processor (engine/results/waiting.py)."""
    host_busy_pct: float = NAN
    cpu_users: tuple[CpuUser, ...] = ()
    """Other processes that used most of the processors meanwhile."""

    @property
    def depth(self) -> int:
        """I/Os that the load may have outstanding in all."""
        return self.queue_depth if self.one_queue else self.queue_depth * max(len(self.targets), 1)

    @property
    def in_flight(self) -> float:
        """Mean outstanding I/Os (Little's law)."""
        return self.iops * self.latency_ns / 1e9


class DeviceFigures(Struct, frozen=True):
    """A disk, a path or a port below the targets, as the kernel counted it; I/Os of others are included."""

    name: str
    key: str = ""
    targets: tuple[str, ...] = ()
    """Names of the load's targets that are on it or reached through it."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Fields of `report` by id: iops, await_ms, queue_ms, service_ms, in_flight, ..."""
    tiers: Mapping[str, Tier] = field(default_factory=dict)
    """How each was obtained; those without an entry are kernel counters."""
    is_top: bool = False
    """A disk that a target is itself, or is stored on directly."""
    is_lowest: bool = False
    """A disk that is not built on others, as far as the kernel knows."""
    members: tuple[str, ...] = ()
    """Keys of the disks that a map, an array or a volume is built on."""
    lun: str = ""
    """Key of the disk that a path leads to."""
    is_usable: bool = True
    """Whether I/O may be sent down a path with full speed; True for others."""
    transport: str = ""
    """Transport of a port; empty for others."""
    link_bytes_per_s: float = NAN
    """Data rate of a port's link in one direction; NaN for others."""

    def value(self, name: str) -> float:
        """One figure; NaN where it is not known."""
        return self.figures.get(name, NAN)

    def tier(self, name: str) -> Tier:
        """How a figure was obtained; NONE where it is not known."""
        return Tier.NONE if math.isnan(self.value(name)) else self.tiers.get(name, Tier.KERNEL)

    def source(self, name: str) -> str:
        """Name of the tier, for evidence."""
        return self.tier(name).name.lower()


class RunFigures(Struct, frozen=True):
    """A load and what was below it at the same time."""

    load: LoadFigures
    disks: tuple[DeviceFigures, ...] = ()
    paths: tuple[DeviceFigures, ...] = ()
    """Paths of LUNs that have several."""
    ports: tuple[DeviceFigures, ...] = ()

    @property
    def top_disks(self) -> tuple[DeviceFigures, ...]:
        """The disks whose counters are nearest to the load."""
        return tuple(disk for disk in self.disks if disk.is_top)


class FiguresBelow(Struct, frozen=True):
    """What was below a load."""

    disks: tuple[DeviceFigures, ...] = ()
    paths: tuple[DeviceFigures, ...] = ()
    """Paths of LUNs that have several."""
    ports: tuple[DeviceFigures, ...] = ()

    def under(self, load: LoadFigures) -> RunFigures:
        """Put a load above it that ran at the same time."""
        return RunFigures(load, self.disks, self.paths, self.ports)
