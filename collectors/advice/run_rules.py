"""Findings from the figures of a load beside those of the devices below it, and all findings of a run."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.advice.device_rules import device_findings
from collectors.advice.figures import RunFigures
from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind, in_order
from collectors.advice.load_rules import is_at_rate, is_driver_bound, is_measured, load_findings, may_have_waited

_SAME_IOS = 0.2
"""How far the rates of load and disks may differ if their I/Os are the same ones: transients, and few of others."""
_ABOVE = 2.0
"""Times await: from here on more than half of the latency is spent above the counters of the disk."""
_LEAST_ABOVE_MS = 0.2
"""System calls, wakeups and a loop device's worker take less."""
_OTHERS = 1.25
"""Times the depth of the load: with more outstanding on a disk, others use it, too."""
_KEPT = 0.8
"""Share of the depth that is outstanding on average if the load keeps it full."""
_CACHED = 0.5
"""Share of the bytes of a buffered load that its disks did not move."""


def run_findings(run: RunFigures) -> tuple[Finding, ...]:
    """Find what limited a load over one part with the same knobs, and what to change; empty if nothing is evident."""
    if not is_measured(run.load):
        return ()
    return in_order((*load_findings(run.load), *_joint(run), *device_findings(run)))


def _joint(run: RunFigures) -> Iterator[Finding]:
    load = run.load
    yield from _page_cache(run)
    if load.direct and load.closed and not load.pauses and not is_at_rate(load) and not is_driver_bound(load):
        above = tuple(_above_device(run))
        yield from above
        yield from _own_depth(run, is_clear=not above and not may_have_waited(load))


def _own_depth(run: RunFigures, *, is_clear: bool) -> Iterator[Finding]:
    """One I/O outstanding on each target: throughput is 1 / latency, whatever the device could do beside it.

    Likely if the counters of the disks show no more outstanding than that, so that nothing else was on them; a hint
    without counters, and where latency is spent elsewhere than in the disks (not `is_clear`). At a higher depth one
    measurement cannot tell: a device that is full has low latencies as well, and its driver's queue may be empty. A
    sweep can.
    """
    load = run.load
    if load.queue_depth != 1 or load.one_queue or not load.in_flight >= _KEPT * load.depth:
        return
    tops = run.top_disks
    outstanding = sum(disk.value("in_flight") for disk in tops)
    if outstanding > _OTHERS * load.depth:
        return
    seen = bool(tops) and outstanding >= 0
    disks = tuple(
        Evidence(f"outstanding on {disk.name}", disk.value("in_flight"), "", disk.source("in_flight"))
        for disk in tops[:4]
        if disk.tier("in_flight")
    )
    yield Finding(
        FindingKind.OWN_DEPTH,
        Confidence.LIKELY if seen and is_clear else Confidence.HINT,
        "one I/O at a time on each target: throughput is 1 / latency; raise --qd (sweep --vary qd=1..64 finds how far)",
        (Evidence("QD", load.queue_depth), Evidence("outstanding", load.in_flight), *disks),
        tuple(target.name for target in load.targets),
    )


def _above_device(run: RunFigures) -> Iterator[Finding]:
    """Latency of the load of twice the await of its disks or more, for the same I/Os.

    The counters of a disk begin when a request is started (blk_account_io_start). Before that an I/O waits for a free
    request (nr_requests), a limit of its control group (io.max), the filesystem or a mapping. Only if disks complete
    as many I/Os as the load; a hint on a busy host, where I/Os wait for processors as well.
    """
    load, tops = run.load, run.top_disks
    iops = sum(disk.value("iops") for disk in tops)
    if not tops or not abs(iops - load.iops) <= _SAME_IOS * load.iops:
        return
    await_ms = sum(disk.value("iops") * disk.value("await_ms") for disk in tops if disk.value("iops") > 0) / iops
    latency_ms = load.latency_ns / 1e6
    if latency_ms >= _ABOVE * await_ms and latency_ms - await_ms >= _LEAST_ABOVE_MS:
        names = ", ".join(disk.name for disk in tops[:4])
        yield Finding(
            FindingKind.ABOVE_DEVICE,
            Confidence.HINT if may_have_waited(load) else Confidence.LIKELY,
            f"most of the latency is spent before {names} counts an I/O: see limits of the control group (io.max), "
            "nr_requests, the filesystem or mapping; lower --qd if requests are short",
            (
                Evidence("latency", latency_ms, "ms"),
                Evidence("await", await_ms, "ms", tops[0].source("await_ms")),
                Evidence("IOPS of the load", load.iops),
                Evidence("IOPS of the disks", iops, "", tops[0].source("iops")),
            ),
            tuple(disk.name for disk in tops),
        )


def _page_cache(run: RunFigures) -> Iterator[Finding]:
    """Buffered I/Os that the disks did not do, with the I/Os of all others included: at least so many were in memory.

    Certain for reads, as counters miss none. Writes may follow after the end of the measurement: likely.
    """
    load, tops = run.load, run.top_disks
    if load.direct or not tops:
        return
    for direction, wanted, confidence in (
        ("read", load.read_bytes_per_s, Confidence.CERTAIN),
        ("write", load.write_bytes_per_s, Confidence.LIKELY),
    ):
        moved = sum(disk.value(f"{direction}_bytes_per_s") for disk in tops)
        if wanted > 0 and moved <= (1 - _CACHED) * wanted:
            yield Finding(
                FindingKind.PAGE_CACHE,
                confidence,
                f"at least {100 * (1 - moved / wanted):.0f} % of the bytes of {direction}s did not reach the disks "
                "while it was measured: the figures are of the page cache; use --mode direct for those of the disks",
                (
                    Evidence(f"{direction}s of the load", wanted / 1e6, "MB/s"),
                    Evidence(f"{direction}s of the disks", moved / 1e6, "MB/s", tops[0].source("bytes_per_s")),
                ),
                tuple(disk.name for disk in tops),
            )
