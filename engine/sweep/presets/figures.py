"""Figures of a point that the tables of several presets have."""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.job.choices import Mode
from engine.job.sizes import format_blocks
from engine.sweep.hosts_knob import FleetKnobs
from engine.sweep.presets.table import PresetPoint, StudyColumn, StudyFigure


def direction(point: PresetPoint) -> str:
    """Name the direction of all I/Os, or the share of reads."""
    return {100.0: "read", 0.0: "write"}.get(point.knobs.read_pct, f"{point.knobs.read_pct:g} % read")


def hosts_of(point: PresetPoint) -> int:
    """Return the number of hosts that drove it."""
    return point.knobs.hosts if isinstance(point.knobs, FleetKnobs) else 1


def block_bytes(point: PresetPoint) -> int | None:
    """Block size of all I/Os; None for a mix of sizes."""
    sizes = set(point.knobs.block_sizes)
    return sizes.pop() if len(sizes) == 1 else None


def expected_mb_per_s(point: PresetPoint) -> float | None:
    """IOPS x block size, which is to agree with the counted bytes per second."""
    size = block_bytes(point)
    return None if size is None else _completed(point.trial.iops * size / 1e6, point)


def _average_peak_ms(point: PresetPoint) -> float | None:
    peak_ns = point.trial.average_peak_ns
    return None if peak_ns is None else peak_ns / 1e6


def _completed(value: float, point: PresetPoint) -> float | None:
    """Return a figure of the I/Os; None where none completed, as with a thousand threads on a slow disk."""
    return value if point.trial.ios else None


def _spread_pct(point: PresetPoint) -> float | None:
    # 1 and more: too few I/Os for an interval.
    return _completed(100 * point.trial.half_width, point) if point.trial.half_width < 1 else None


def _cache_hit_pct(point: PresetPoint) -> float | None:
    """Hit rate of the cache over the targets while the point was measured; None without one, or without lookups."""
    cache = (point.trial.devices or {}).get("cache")
    share = cache.get("hit_pct") if isinstance(cache, Mapping) else None
    return float(share) if isinstance(share, int | float) and math.isfinite(share) else None


def _memory_pct(point: PresetPoint) -> float | None:
    """Share of the bytes of a cached load that its disks did not move meanwhile; None where that is not known.

    Disks also move the bytes of others: the share is at least this.
    """
    way = {0.0: "write", 100.0: "read"}.get(point.knobs.read_pct)
    disks = (point.trial.devices or {}).get("disks")
    if point.knobs.mode is Mode.DIRECT or way is None or not point.trial.bytes_per_s or not isinstance(disks, list):
        return None
    moved = [disk.get(f"{way}_bytes_per_s") for disk in disks if isinstance(disk, Mapping) and disk.get("top") is True]
    known = [each for each in moved if isinstance(each, int | float) and math.isfinite(each)]
    if not moved or len(known) < len(moved):
        return None
    return max(100 * (1 - sum(known) / point.trial.bytes_per_s), 0.0)


def _controllers(point: PresetPoint) -> float | None:
    """Return the controllers that were asked for, else count HBA ports with I/O below the targets; None without any."""
    ports = (point.trial.devices or {}).get("hbas")
    given = point.setting("controllers")
    if given is not None or not isinstance(ports, list):
        return given
    rates = (port.get("iops") for port in ports if isinstance(port, Mapping))
    return float(sum(isinstance(rate, int | float) and rate > 0 for rate in rates)) or None


def _connections(point: PresetPoint) -> float | None:
    count = (point.trial.devices or {}).get("connections")
    return float(count) if isinstance(count, int) else None


def _note(point: PresetPoint) -> str:
    if not point.trial.ios:
        return "no I/O completed: give a longer --runtime"
    return "" if point.trial.is_settled else point.trial.trend.value


BLOCK = StudyFigure(StudyColumn("block", "block"), lambda point: format_blocks(point.knobs.blocks))
DISKS = StudyFigure(StudyColumn("disks", "disks"), lambda point: float(point.knobs.stripe_width))
CONNECTIONS = StudyFigure(StudyColumn("connections", "connections"), _connections)
"""Connections to NFS servers that carried the load; the studies call them flows."""
CONTROLLERS = StudyFigure(StudyColumn("controllers", "controllers"), _controllers)
"""HBA ports that carried the load."""
HOSTS = StudyFigure(StudyColumn("hosts", "hosts"), lambda point: float(hosts_of(point)))
FLOWS = StudyFigure(
    StudyColumn("flows", "hosts x disks"), lambda point: float(hosts_of(point) * point.knobs.stripe_width)
)
DEPTH = StudyFigure(StudyColumn("queue_depth", "QD"), lambda point: float(point.knobs.queue_depth))
THREADS = StudyFigure(StudyColumn("threads", "threads"), lambda point: float(point.knobs.queue_depth))
"""Threads of the engine `threads`, where each has one I/O outstanding."""
DIRECTION = StudyFigure(StudyColumn("direction", "direction"), direction)
MODE = StudyFigure(StudyColumn("mode", ""), lambda point: point.knobs.mode.value)
READ_PCT = StudyFigure(StudyColumn("read_pct", "read %"), lambda point: point.knobs.read_pct)
IOPS = StudyFigure(StudyColumn("iops", "IOPS"), lambda point: _completed(point.trial.iops, point))
MB_PER_S = StudyFigure(
    StudyColumn("megabytes_per_s", "MB/s", 1), lambda point: _completed(point.trial.bytes_per_s / 1e6, point)
)
MIB_PER_S = StudyFigure(
    StudyColumn("mebibytes_per_s", "MiB/s", 1), lambda point: _completed(point.trial.bytes_per_s / (1 << 20), point)
)
CHECK = StudyFigure(StudyColumn("iops_x_block_megabytes_per_s", "IOPS x block MB/s", 1), expected_mb_per_s)
SPREAD = StudyFigure(StudyColumn("iops_half_width_pct", "+-%"), _spread_pct)
MEAN_MS = StudyFigure(
    StudyColumn("mean_ms", "mean ms", 3), lambda point: _completed(point.trial.latency_ns / 1e6, point)
)
PEAK_MS = StudyFigure(StudyColumn("average_peak_ms", "avg peak ms", 2), _average_peak_ms)
CPU_PER_GB = StudyFigure(
    StudyColumn("host_cpu_s_per_gb", "host CPU s/GB", 2), lambda point: point.trial.host_cpu_s_per_gb
)
NOTE = StudyFigure(StudyColumn("note", ""), _note)

MEMORY = StudyFigure(StudyColumn("memory_pct", "memory %"), _memory_pct)
"""Least share of a cached mode that came from the page cache and not from the disks."""
CACHE_HIT = StudyFigure(StudyColumn("cache_hit_pct", "cache hit %", 1), _cache_hit_pct)
"""Hit rate of caches that the host knows: bcache, dm-cache, dm-writecache, ARC."""
DETAIL = (IOPS, SPREAD, MB_PER_S, CHECK, MEAN_MS, PEAK_MS, CPU_PER_GB, NOTE)
"""What is shown of every point."""
