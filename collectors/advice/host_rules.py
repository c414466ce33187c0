"""Findings about what is not the storage: paging, and limits of the processor time of the load."""

from __future__ import annotations

import math
from collections.abc import Iterator

from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind
from collectors.kernel.cpu_limits import CpuLimit, LimitKind
from collectors.reports.run_devices import RunDevices
from engine.text import safe_text

_LEAST_BYTES_PER_S = float(1 << 20)
"""Paging below that moves what was not used for long, and disturbs nobody."""
_SHARE_PCT = 10.0
"""Part of the bytes of a disk: less paging costs the load less than repetitions differ."""
_WAITED_PCT = 10.0
"""Time in which some task waited for memory; likewise."""
_STOPPED_PCT = 10.0
"""Periods in which a group was stopped: as many as there may be waits for a processor (engine/results/waiting.py)."""
_INTERRUPTS_PCT = 80.0
"""Time of one processor in interrupts: what else it does no longer fits beside them."""
_ENTITLED_PCT = 95.0
"""Part of a capped entitlement: above it the hypervisor dispatches the partition later."""


def host_findings(devices: RunDevices) -> Iterator[Finding]:
    """Find what held a load up besides its devices."""
    yield from _paging(devices)
    for limit in devices.cpu_limits:
        yield from _cpu_limit(limit)


def _paging(devices: RunDevices) -> Iterator[Finding]:
    """Find that the host pages on a disk of the load, or that tasks wait for memory meanwhile.

    The kernel counts pages by host, not by area: the share of a disk is known if it is below all areas.
    """
    found = {name: _of_host(devices, name) for name in ("swap_in_bytes_per_s", "swap_out_bytes_per_s")}
    paged = sum(found.values())
    if not paged >= _LEAST_BYTES_PER_S:
        return
    waited = _of_host(devices, "psi_memory_some_pct")
    disks = devices.tables.get("disks")
    for row, key in enumerate(() if disks is None else disks.rows.keys):
        users = devices.swaps.get(key, ())
        moved = math.nan if disks is None else disks.value("bytes_per_s", row)
        share = min(100.0 * paged / moved, 100.0) if len(users) == devices.swap_areas and moved > 0 else math.nan
        if not users or share < _SHARE_PCT:
            continue
        name = safe_text(devices.topology.devices[key].name if key in devices.topology.devices else key)
        areas = ", ".join(map(safe_text, users[:4]))
        known = "" if math.isnan(share) else f": {share:.0f} % of its bytes"
        yield _paging_finding(
            f"the host pages to {areas} on {name}, which the load uses{known}; free memory, or move swap elsewhere",
            {**found, "psi_memory_some_pct": waited, "share": share},
            name,
        )
        return
    if waited >= _WAITED_PCT:
        yield _paging_finding(
            f"the host pages, and tasks wait for memory {waited:.0f} % of the time: its memory is short, and not only "
            "the storage is measured; free memory",
            {**found, "psi_memory_some_pct": waited},
        )


_EVIDENCE = {
    "swap_in_bytes_per_s": ("swapped in", 1e-6, "MB/s"),
    "swap_out_bytes_per_s": ("swapped out", 1e-6, "MB/s"),
    "psi_memory_some_pct": ("waited for memory", 1.0, "%"),
    "share": ("its share of the bytes of the disk", 1.0, "%"),
}


def _paging_finding(text: str, figures: dict[str, float], *about: str) -> Finding:
    evidence = (
        Evidence(_EVIDENCE[name][0], value * _EVIDENCE[name][1], _EVIDENCE[name][2], "kernel")
        for name, value in figures.items()
        if not math.isnan(value)
    )
    return Finding(FindingKind.PAGING, Confidence.LIKELY, text, tuple(evidence), about)


def _of_host(devices: RunDevices, field_id: str) -> float:
    host = devices.host
    return math.nan if host is None or not len(host.rows) else host.value(field_id, 0)


def _cpu_limit(limit: CpuLimit) -> Iterator[Finding]:
    """Find a group that is stopped, a partition that has used what it is entitled to, one processor for interrupts."""
    least, what, text, about = _WORDS[limit.kind]
    if limit.share_pct < least:
        return
    evidence = (
        Evidence(what, limit.share_pct, "%", "kernel"),
        Evidence("processors admitted", limit.cpus, "", "kernel"),
        Evidence("busiest processor", limit.busiest_pct, "%", "kernel"),
    )
    admitted = f"{limit.cpus:g} processor{'' if limit.cpus == 1 else 's'}"
    yield Finding(
        FindingKind.CPU_LIMIT,
        Confidence.LIKELY,
        text.format(name=safe_text(limit.name), admitted=admitted, share=f"{limit.share_pct:.0f} %"),
        tuple(each for each in evidence if not math.isnan(each.value)),
        (safe_text(limit.name) or about,),
    )


_WORDS = {
    LimitKind.GROUP: (
        _STOPPED_PCT,
        "periods in which it was stopped",
        "the control group {name} may use {admitted} (cpu.max; cpu.cfs_quota_us in cgroup v1) and is stopped in "
        "{share} of the periods: the load waits for its quota, not for the storage; raise the "
        "quota, or use another group",
        "",
    ),
    LimitKind.PARTITION: (
        _ENTITLED_PCT,
        "used of its entitlement",
        "the partition is capped at an entitlement of {admitted} and uses {share} of it: raise the entitlement, or "
        "uncap it",
        "partition",
    ),
    LimitKind.INTERRUPTS: (
        _INTERRUPTS_PCT,
        "its time in interrupts",
        "{name} spends {share} of its time in interrupts: spread them over the other processors "
        "(irqbalance, /proc/irq/*/smp_affinity, more queues)",
        "",
    ),
}
"""From which share on it is said, what the share is, the sentence, and what it is about where it has no name."""
