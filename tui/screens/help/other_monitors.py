"""Figures of esxtop and iostat beside those of lunscope: what is the same, and what differs.

Sources: VMware KB 309140 and the esxtop documentation; iostat(1) of sysstat 12; docs/other-monitors.md has the same.
"""

from __future__ import annotations

from msgspec import Struct


class Counterpart(Struct, frozen=True):
    """A figure of another monitor."""

    theirs: str
    ours: str
    """Titles of the figures that correspond."""
    text: str


ESXTOP: tuple[Counterpart, ...] = (
    Counterpart(
        "DAVG",
        "S",
        "From the HBA driver to completion: HBA, fabric, array. Both are means; S has p99 and maximum, too.",
    ),
    Counterpart(
        "KAVG",
        "Q (+ Tag)",
        "Time in the kernel above the driver. KAVG includes QAVG and processing; Q is the wait of a request for the "
        "driver, Tag the wait for a free request before it.",
    ),
    Counterpart(
        "QAVG",
        "Q, Tag",
        "Wait because a queue is full. Linux: in Q where the queue_depth of the path is reached, in Tag where "
        "nr_requests or can_queue is.",
    ),
    Counterpart(
        "GAVG",
        "await",
        "DAVG + KAVG, as await is Q + S. In a virtual machine its own S contains the host's whole GAVG.",
    ),
    Counterpart(
        "ACTV", "aqu-sz", "Commands in the driver at one moment; aqu-sz is a mean over the interval and includes Q."
    ),
    Counterpart("QUED", "aqu-sz x Q / await", "Commands that wait for the driver; Little's law gives them as a mean."),
    Counterpart("DQLEN, AQLEN", "Limit", "Commands that a path (queue_depth) and a port (can_queue) admit."),
    Counterpart("%USD, LOAD", "%limit", "ACTV / DQLEN, and with QUED; %limit is aqu-sz / Limit, so nearer to LOAD."),
    Counterpart("CMDS/s", "IOPS", "esxtop counts all commands; IOPS are reads and writes, d/s and f/s the others."),
    Counterpart("ABRTS/s", "+tmo", "Commands that timed out; esxtop counts the aborts that follow."),
)

ESXTOP_RULE = (
    "DAVG above 20 to 25 ms points to the array or the fabric, KAVG above 1 to 2 ms to the host. Here S is coloured "
    "from 20 ms, Q from 2 ms. esxtop has means only: 19 I/Os of 1 ms and one of 500 ms show as 25.95 ms; p99 and Peak "
    "tell them apart."
)

IOSTAT: tuple[Counterpart, ...] = (
    Counterpart(
        "r_await, w_await",
        "r await, w await",
        "The same: accounted start to completion, Q + S. Without I/O iostat prints 0.00 and lunscope -.",
    ),
    Counterpart(
        "aqu-sz",
        "aqu-sz",
        "The same mean. iostat adds up time of all requests, lunscope that of reads and writes, and of held I/Os.",
    ),
    Counterpart(
        "%util",
        "Busy",
        "Share of time with any I/O outstanding. iostat has the kernel's ticks, wrong at light loads and before 6.10; "
        "exact Busy is timed. 100 % is no limit of a device that works in parallel.",
    ),
    Counterpart(
        "svctm",
        "S",
        "Was %util / IOPS, wrong wherever I/Os overlap; gone since sysstat 12.1.2, in atop as avio. S is measured.",
    ),
    Counterpart("rkB/s, wkB/s", "rB/s, wB/s", "The same in bytes; suffixes are powers of 1024."),
    Counterpart("rareq-sz, wareq-sz", "r size, w size", "The same in bytes; iostat prints KiB."),
    Counterpart("rrqm/s, wrqm/s", "rrqm/s, wrqm/s", "The same."),
    Counterpart("avwait, avserv", "Q, S", "Of sar on HP-UX and Solaris; no Linux tool besides has the split."),
)
