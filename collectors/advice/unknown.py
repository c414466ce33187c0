"""What is said of a load of which no other limit is evident: that its devices are full, or why it is not known."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.advice.figures import DeviceFigures, RunFigures
from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind
from collectors.advice.load_rules import is_measured
from collectors.model import Tier

_FULL_PCT = 90.0
_FURTHER = "see whether throughput still rises with the load (--vary qd=1..64)"


def full_devices(run: RunFigures) -> Finding | None:
    """Name the devices that are busy all the time where more load gives no more throughput; None without such.

    Either alone says little: a disk is busy with one I/O after another, and throughput may end elsewhere.
    """
    disks = run.top_disks
    used = {target.name for target in run.load.targets}
    disks = tuple(disk for disk in disks if not disk.targets or used.intersection(disk.targets)) or disks
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
    if load.host_busy_pct >= 0:
        yield Evidence("host CPU", load.host_busy_pct, "%")
    known = sorted(run.disks, key=lambda disk: disk.value("busy_pct") if disk.tier("busy_pct") else -1.0)
    for disk in known[:-3:-1]:
        yield from _figures(disk)


def _figures(disk: DeviceFigures) -> Iterator[Evidence]:
    for name, field_id, unit in (("busy", "busy_pct", "%"), ("Q", "queue_ms", "ms"), ("S", "service_ms", "ms")):
        if disk.tier(field_id) is not Tier.NONE:
            yield Evidence(f"{disk.name} {name}", disk.value(field_id), unit, disk.source(field_id))
