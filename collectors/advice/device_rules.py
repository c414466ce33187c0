"""Findings from the figures of disks, paths and ports below a load."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from collectors.advice.figures import DeviceFigures, RunFigures
from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind
from collectors.model import Tier

_LEAST_IOPS = 20.0
"""A device with fewer I/Os per second has no findings."""
_QUEUE_SHARE = 0.5
"""Share of await: from here on an I/O waits longer for the driver than it is served."""
_LEAST_QUEUED = 2.0
"""Outstanding I/Os: with fewer there is hardly anything to wait for."""
_LEAST_QUEUE_MS = 0.1
"""Queue times below are those of dispatching, and below the resolution of sampling (20 us + 20 % of await)."""
_AT_LIMIT_PCT = 90.0
"""Mean outstanding commands over what is admitted: a mean so near to the limit is at it most of the time."""
_ONE_SHARE = 0.9
"""Share of all I/Os: one of several carries so much that the others add nothing."""
_UNEQUAL = 2.0
"""Times the median of its peers: outstanding I/Os of equal disks under an even load differ by less."""
_LEAST_EXTRA = 1.0
"""Outstanding I/Os by which it must differ as well."""
_FULL_LINK = 0.9
"""Share of the data rate of a link: frames, acknowledgements and commands take the rest."""
_BUSY_PCT = 90.0
"""Share of the time: the disk seldom waits for the load."""
_IDLER = 0.75
"""Times its busy time: peers below wait for the load, as it waits for this disk. Equal disks differ by less."""


def device_findings(run: RunFigures) -> Iterator[Finding]:
    """Find what the counters of devices show, whatever the load's own figures are."""
    yield from _waiting(run.disks)
    for group in _peers(run):
        yield from _uneven(group)
        yield from _busiest(group)
    yield from _shared(run)
    for device, what in (*((path, "path") for path in run.paths), *((port, "port") for port in run.ports)):
        yield from _at_limit(device, what)
    yield from _one_path(run)
    yield from _one_port(run.ports)
    yield from _full_link(run.ports)


def _worked(device: DeviceFigures) -> bool:
    return device.value("iops") >= _LEAST_IOPS


def _waiting(disks: Sequence[DeviceFigures]) -> Iterator[Finding]:
    """Q of half of await or more: the driver takes no more, and a lower depth gives the same throughput.

    What the driver holds is IOPS x S (Little's law); more than that only waits. Needs Q and S: exact ones make it
    likely, sampled ones a hint, and kernel counters, which have their sum only, nothing. Low Q is no evidence of a free
    device, since devices queue inside of S, so nothing is concluded from it.
    """
    for disk in disks:
        queue_ms, service_ms = disk.value("queue_ms"), disk.value("service_ms")
        tier = min(disk.tier("queue_ms"), disk.tier("service_ms"))
        if tier < Tier.SAMPLED or not _worked(disk) or not queue_ms >= _LEAST_QUEUE_MS:
            continue
        if queue_ms < _QUEUE_SHARE * (queue_ms + service_ms) or not disk.value("in_flight") >= _LEAST_QUEUED:
            continue
        served = max(disk.value("iops") * service_ms / 1e3, 1.0)
        yield Finding(
            FindingKind.DEVICE,
            Confidence.LIKELY if tier is Tier.EXACT else Confidence.HINT,
            f"I/Os wait longer for the driver of {disk.name} than they are served: about {served:.0f} outstanding "
            "instead would give the same throughput; spread the load over more disks or lower --qd",
            (
                *_of(disk, ("Q", "queue_ms", "ms"), ("S", "service_ms", "ms")),
                *_of(disk, ("outstanding", "in_flight", ""), ("busy", "busy_pct", "%")),
            ),
            (disk.name,),
        )


def _of(device: DeviceFigures, *wanted: tuple[str, str, str]) -> Iterator[Evidence]:
    for name, field_id, unit in wanted:
        if device.tier(field_id) is not Tier.NONE:
            yield Evidence(name, device.value(field_id), unit, device.source(field_id))


def _peers(run: RunFigures) -> Iterator[list[DeviceFigures]]:
    """Yield disks that should share a load evenly: those of different targets, and the members of one device."""
    used = {target.name for target in run.load.targets}
    tops = [disk for disk in run.top_disks if used.issuperset(disk.targets)]
    if sorted(name for disk in tops for name in disk.targets) == sorted(used):
        yield tops
    by_key = {disk.key: disk for disk in run.disks}
    for disk in run.disks:
        yield [by_key[key] for key in disk.members if key in by_key]


def _uneven(peers: Sequence[DeviceFigures]) -> Iterator[Finding]:
    """Most of the outstanding I/Os on one of several disks, by count (few disks) or by slowness (unequal depth).

    If it also completes nine tenths of the I/Os, the load is on too few disks. If it holds twice the median but does
    not complete more, its I/Os wait there while the others idle. In between, an uneven load is as good a reason.
    """
    known = [disk for disk in peers if disk.tier("in_flight") and disk.tier("iops")]
    total = sum(disk.value("iops") for disk in known)
    if len(known) < 2 or len(known) < len(peers) or total < _LEAST_IOPS:
        return
    busiest = max(known, key=lambda disk: disk.value("in_flight"))
    rest = [disk for disk in known if disk is not busiest]
    others = statistics.median(disk.value("in_flight") for disk in rest)
    evidence = (
        Evidence(f"outstanding on {busiest.name}", busiest.value("in_flight"), "", busiest.source("in_flight")),
        Evidence("median of the others", others, "", busiest.source("in_flight")),
        Evidence("its share of the IOPS", 100 * busiest.value("iops") / total, "%", busiest.source("iops")),
        Evidence("disks", len(known), "", "topology"),
    )
    if busiest.value("iops") >= _ONE_SHARE * total:
        text = f"nearly all I/Os go to {busiest.name}, one of {len(known)} disks: spread the data or the offsets"
        yield Finding(FindingKind.FEW_DISKS, Confidence.CERTAIN, text, evidence, (busiest.name,))
    elif busiest.value("in_flight") >= max(_UNEQUAL * others, others + _LEAST_EXTRA):
        more = busiest.value("iops") > 1.25 * statistics.median(disk.value("iops") for disk in rest)
        text = f"{busiest.name} holds more outstanding I/Os than its peers: " + (
            "it gets more of the load; spread the offsets evenly"
            if more
            else "it is slower than they are; check it, or give it a smaller share of the load"
        )
        yield Finding(FindingKind.UNEQUAL_DEPTH, Confidence.LIKELY, text, evidence, (busiest.name,))


def _busiest(peers: Sequence[DeviceFigures]) -> Iterator[Finding]:
    """One disk busy nine tenths of the time while its peers have nothing to do for a quarter of that or more.

    Busy time alone is no sign of a full device, since one I/O after the other is enough for 100 %; beside peers under
    the same load, which idle meanwhile, it is.
    """
    if len(peers) < 2 or not all(disk.tier("busy_pct") and disk.tier("iops") for disk in peers):
        return
    busiest = max(peers, key=lambda disk: disk.value("busy_pct"))
    rest = [disk for disk in peers if disk is not busiest]
    busy, others = busiest.value("busy_pct"), statistics.median(disk.value("busy_pct") for disk in rest)
    if not _worked(busiest) or busy < _BUSY_PCT or others > _IDLER * busy:
        return
    who = f"{rest[0].name} is" if len(rest) == 1 else f"the other {len(rest)} are"
    yield Finding(
        FindingKind.BUSY_DEVICE,
        Confidence.LIKELY,
        f"{busiest.name} is busy {busy:.0f} % while {who} at {others:.0f} %: it is full first; check it, or give it a "
        "smaller share of the load",
        tuple(
            Evidence(f"{disk.name} {name}", disk.value(field_id), unit, disk.source(field_id))
            for disk in (busiest, *rest[:3])
            for name, field_id, unit in (("busy", "busy_pct", "%"), ("await", "await_ms", "ms"))
            if disk.tier(field_id)
        ),
        (busiest.name,),
    )


def _shared(run: RunFigures) -> Iterator[Finding]:
    """Several targets on one disk: more targets are not more disks. Certain, as it is from the topology."""
    used = {target.name for target in run.load.targets}
    lowest = [disk for disk in run.disks if disk.is_lowest and used.intersection(disk.targets)]
    if len(used) > 1 and len(lowest) == 1 and used.issubset(lowest[0].targets):
        yield Finding(
            FindingKind.FEW_DISKS,
            Confidence.CERTAIN,
            f"all {len(used)} targets are on one disk, {lowest[0].name}: use targets on different disks",
            (Evidence("targets", len(used), "", "topology"), Evidence("disks", 1, "", "topology")),
            (lowest[0].name,),
        )


def _at_limit(device: DeviceFigures, what: str) -> Iterator[Finding]:
    """Mean outstanding commands at what a path or port admits: further ones wait in front of it."""
    if not _worked(device) or not device.value("limit_pct") >= _AT_LIMIT_PCT:
        return
    attribute = "queue_depth of the device" if what == "path" else "can_queue or queue size of the adapter"
    yield Finding(
        FindingKind.QUEUE_LIMIT,
        Confidence.LIKELY,
        f"{what} {device.name} has as many commands outstanding as it admits: raise the {attribute}, lower --qd, or "
        f"use more {what}s",
        tuple(
            _of(device, ("outstanding", "in_flight", ""), ("limit", "queue_limit", ""), ("of limit", "limit_pct", "%"))
        ),
        (device.name,),
    )


def _one_path(run: RunFigures) -> Iterator[Finding]:
    """One of several usable paths of a LUN with nine tenths of its I/Os. A path that is not optimized is no choice."""
    names = {disk.key: disk.name for disk in run.disks}
    for lun in dict.fromkeys(path.lun for path in run.paths if path.lun):
        paths = [path for path in run.paths if path.lun == lun and path.is_usable and path.tier("iops")]
        total = sum(path.value("iops") for path in paths)
        busiest = max(paths, key=lambda path: path.value("iops"), default=None)
        if busiest is None or len(paths) < 2 or total < _LEAST_IOPS or busiest.value("iops") < _ONE_SHARE * total:
            continue
        flow = ", and so one TCP connection" if busiest.transport == "iscsi" else ""
        yield Finding(
            FindingKind.ONE_PATH,
            Confidence.CERTAIN,
            f"nearly all I/Os to {names.get(lun, lun)} go over {busiest.name}, one of its {len(paths)} usable "
            f"paths{flow}: select paths by round-robin or queue length",
            (
                Evidence("its share of the IOPS", 100 * busiest.value("iops") / total, "%", busiest.source("iops")),
                Evidence("usable paths", len(paths), "", "topology"),
            ),
            (busiest.name,),
        )


def _one_port(ports: Sequence[DeviceFigures]) -> Iterator[Finding]:
    """One of several ports that reach the same targets with most I/Os; a hint, as others may be standby."""
    known = [port for port in ports if port.tier("iops")]
    groups = {frozenset(port.targets) for port in known}
    total = sum(port.value("iops") for port in known)
    if len(known) < 2 or len(groups) > 1 or total < _LEAST_IOPS:
        return
    busiest = max(known, key=lambda port: port.value("iops"))
    if busiest.value("iops") >= _ONE_SHARE * total:
        yield Finding(
            FindingKind.ONE_PORT,
            Confidence.HINT,
            f"nearly all I/Os go through port {busiest.name}, one of {len(known)} that reach the targets: "
            "use paths of all",
            (
                Evidence("its share of the IOPS", 100 * busiest.value("iops") / total, "%", busiest.source("iops")),
                Evidence("ports", len(known), "", "topology"),
            ),
            (busiest.name,),
        )


def _full_link(ports: Sequence[DeviceFigures]) -> Iterator[Finding]:
    """Bytes per second, of the direction with more of them, near the data rate of the link, which is full duplex."""
    for port in ports:
        most = max(port.value("read_bytes_per_s"), port.value("write_bytes_per_s"))
        if most >= _FULL_LINK * port.link_bytes_per_s:
            yield Finding(
                FindingKind.PORT_SPEED,
                Confidence.LIKELY,
                f"the link of port {port.name} is full, {most / 1e9:.2f} of {port.link_bytes_per_s / 1e9:.2f} GB/s: "
                "use paths through more ports, or a faster link",
                (
                    Evidence("data rate", most / 1e6, "MB/s", port.source("read_bytes_per_s")),
                    Evidence("link", port.link_bytes_per_s / 1e6, "MB/s", "topology"),
                ),
                (port.name,),
            )
