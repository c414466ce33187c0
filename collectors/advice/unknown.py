"""What is said where no other limit is evident: that the devices are full, or why it is not known."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.advice.figures import DeviceFigures, RunFigures
from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind
from collectors.advice.load_rules import is_measured, waited_for_processor
from collectors.model import Tier
from engine.results.waiting import WAITED_SHARE

_FULL_PCT = 90.0
_ENGINE_IDLE = 0.5
"""Share of their time that the engine's threads use: they wait for the storage for most of it."""
_FURTHER = "see whether throughput still rises with the load (--vary qd=1..64)"


def full_devices(run: RunFigures) -> Finding | None:
    """Name the devices that are busy all the time where more load gives no more throughput; None without such.

    Either alone says little: a disk is busy with one I/O after another, and throughput may end elsewhere.
    """
    disks = run.top_disks
    used = {target.name for target in run.load.targets}
    disks = tuple(disk for disk in disks if not disk.targets or used.intersection(disk.targets)) or disks
    if waited_for_processor(run.load):
        return None
    if not disks:
        return _full_storage(run)
    if not is_measured(run.load) or not disks or not all(disk.value("busy_pct") >= _FULL_PCT for disk in disks):
        return None
    names = ", ".join(disk.name for disk in disks[:4]) + (", ..." if len(disks) > 4 else "")
    least = min(disk.value("busy_pct") for disk in disks)
    are = "is" if len(disks) == 1 else "are"
    return Finding(
        FindingKind.DEVICE,
        Confidence.LIKELY,
        f"more load gives no more throughput, and {names} {are} busy {least:.0f} % of the time: this is what the "
        "storage can do",
        tuple(_evidence(run)),
        tuple(disk.name for disk in disks),
    )


def _full_storage(run: RunFigures) -> Finding | None:
    """Name the targets whose storage has no counters here, as a network or user-space filesystem.

    What is left is the engine itself: its threads must be known to be neither busy nor waiting for a processor.
    """
    load = run.load
    is_idle = load.engine_share < _ENGINE_IDLE and load.waiting_share < WAITED_SHARE
    if not (is_measured(load) and load.direct and is_idle):
        return None
    names = tuple(target.name for target in load.targets)
    return Finding(
        FindingKind.DEVICE,
        Confidence.LIKELY,
        "more load gives no more throughput, and the engine's threads wait for the storage: this is what it can do; "
        "nothing below the targets is counted, so a network, a server or a limit in between is part of it",
        tuple(_evidence(run)),
        names,
    )


def unknown_limit(run: RunFigures | None, *, sampled: bool, further: str = _FURTHER) -> Finding:
    """Say why the limit is not known; `run` is None without a usable measurement.

    `further` says what would decide whether a busy disk is the limit, or why the loads of a sweep do not.
    """
    return Finding(
        FindingKind.UNKNOWN,
        Confidence.HINT,
        f"not known: {_reason(run, further, sampled=sampled)}",
        () if run is None else tuple(_evidence(run)),
    )


def _reason(run: RunFigures | None, further: str, *, sampled: bool) -> str:
    if run is None:
        return "no measurement was steady, precise and without failed I/Os"
    if not is_measured(run.load):
        return "too few I/Os, or too short"
    if not sampled:
        return "the devices below the targets were not sampled"
    disks = [disk for disk in run.disks if disk.tier("busy_pct")]
    if not disks:
        return "no disk below the targets has counters"
    busiest = max(disks, key=lambda disk: disk.value("busy_pct"))
    if busiest.value("busy_pct") >= _FULL_PCT:
        return (
            f"{busiest.name} is busy {busiest.value('busy_pct'):.0f} %, but that is so with one I/O after another as "
            f"well; {further}"
        )
    return "nothing that is measured is at its limit: no CPU, link, or queue, and no disk is busy all the time"


def _evidence(run: RunFigures) -> Iterator[Evidence]:
    load = run.load
    if load.engine_share >= 0:
        yield Evidence("engine threads busy", 100 * load.engine_share, "%")
    if load.waiting_share >= 0:
        yield Evidence("waited for a CPU", 100 * load.waiting_share, "%")
    if load.host_busy_pct >= 0:
        yield Evidence("host CPU", load.host_busy_pct, "%")
    known = sorted(run.disks, key=lambda disk: disk.value("busy_pct") if disk.tier("busy_pct") else -1.0)
    for disk in known[:-3:-1]:
        yield from _figures(disk)


def _figures(disk: DeviceFigures) -> Iterator[Evidence]:
    for name, field_id, unit in (("busy", "busy_pct", "%"), ("Q", "queue_ms", "ms"), ("S", "service_ms", "ms")):
        if disk.tier(field_id) is not Tier.NONE:
            yield Evidence(f"{disk.name} {name}", disk.value(field_id), unit, disk.source(field_id))
