"""Hotness of a disk and its cause in words; no claim goes beyond the figures of the tier."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from collectors.model import Frame, FrameTable, Tier
from engine.text import safe_text

_Values = NDArray[np.float64]

BUSY_WEIGHT, QUEUE_WEIGHT, SHARE_WEIGHT = 0.4, 0.3, 0.3


def hotness(busy_pct: _Values, in_flight: _Values, queue_ms: _Values, service_ms: _Values) -> _Values:
    """Hotness of every disk, 0 to 100.

    `busy_pct * (0.4 + 0.3 * queue share + 0.3 * I/O time share)`: busy time counts in full only where I/Os queue and
    the disk carries more than its peers. Queue share is the part of the await spent queueing; I/O time share is the
    disk's part of all outstanding I/Os of the given disks. An unknown share is left out and the others weigh more. NaN
    where busy is missing.

    Args:
        busy_pct: shape (disks,), as are the others.
        in_flight: outstanding I/Os, averaged.
        queue_ms: queue time per I/O.
        service_ms: service time per I/O.
    """
    parts = (
        (QUEUE_WEIGHT, _share(queue_ms, queue_ms + service_ms)),
        (SHARE_WEIGHT, _share(in_flight, _sum(in_flight))),
    )
    weight = np.full(len(busy_pct), BUSY_WEIGHT)
    score = weight.copy()
    for part, share in parts:
        known = ~np.isnan(share)
        weight[known] += part
        score[known] += part * share[known]
    hot: _Values = np.minimum(busy_pct * score / weight, 100.0)
    return hot


def hottest(disks: FrameTable | None) -> str | None:
    """Key of the hottest disk; None if no disk has a hotness."""
    values = None if disks is None else disks.columns.get("heat")
    if disks is None or values is None or not np.isfinite(values).any():
        return None
    return disks.rows.keys[int(np.nanargmax(values))]


def _sum(in_flight: _Values) -> float:
    return float(np.nansum(in_flight))


def _share(part: _Values, whole: _Values | float) -> _Values:
    with np.errstate(divide="ignore", invalid="ignore"):
        share: _Values = np.clip(np.where(np.greater(whole, 0), np.divide(part, whole), np.nan), 0.0, 1.0)
        return share


_QUEUE_RULES = 0.5
"""Share of the await from which on the verdict names the queue, not the disk: esxtop's rule of KAVG, QAVG and DAVG."""

_CARRIES = 0.5
"""Share of the I/O time of all disks from which on the verdict mentions it."""


def verdict(frame: Frame, row: int) -> str:
    """Explain the hotness of a disk in one line.

    Queue and disk are distinguished only where the tier does so, and estimates say "about"; the name is safe to print.

    Args:
        frame: any frame with a "disks" table.
        row: row of the disk in that table.
    """
    rows = frame.tables["disks"].rows
    return f"{safe_text(rows.names[row])}: {_reason(frame, row)}"


def _reason(frame: Frame, row: int) -> str:
    disks = frame.tables["disks"]
    device = frame.topology.devices.get(disks.rows.keys[row])
    if math.isnan(disks.value("iops", row)):
        if device is not None and device.iostats is False:
            return f"its I/O is not counted: echo 1 > /sys/block/{safe_text(device.name)}/queue/iostats"
        return "no figures for this interval"
    if not any(disks.value(kind, row) > 0 for kind in ("iops", "discards_per_s", "flushes_per_s")):
        outstanding = disks.value("in_flight", row)
        if outstanding > 0:
            return f"stalled: {outstanding:.0f} outstanding and none completed in {frame.elapsed_s:.1f} s"
        return "idle"
    bio_based = device is not None and device.bio_based
    parts = [_busy_words(disks, row), _latency_words(disks, row, bio_based=bio_based), _share_words(disks, row)]
    return ", ".join(part for part in parts if part)


def _busy_words(disks: FrameTable, row: int) -> str:
    busy = disks.value("busy_pct", row)
    if math.isnan(busy):
        return "busy not known"
    by_ticks = _tier(disks, "busy_pct", row) is Tier.KERNEL
    return f"{busy:.0f} % busy by kernel ticks" if by_ticks else f"{busy:.0f} % busy"


def _latency_words(disks: FrameTable, row: int, *, bio_based: bool) -> str:
    queue_ms, service_ms, await_ms = (disks.value(field_id, row) for field_id in ("queue_ms", "service_ms", "await_ms"))
    if math.isnan(queue_ms + service_ms):
        if math.isnan(await_ms):
            return "too little I/O to time"
        below = "look at the disks below it" if bio_based else "queue/service split unavailable (kernel tier)"
        return f"await {await_ms:.2f} ms, {below}"
    if queue_ms <= 0:
        return f"no queueing: {service_ms:.2f} ms is device service time"
    about = "" if _tier(disks, "queue_ms", row) is Tier.EXACT else "about "
    share = queue_ms / (queue_ms + service_ms)
    cause = (
        "the queue, not the disk, is slow"
        if share >= _QUEUE_RULES
        else f"mostly device service time, {service_ms:.2f} ms"
    )
    return f"{about}{100 * share:.0f} % of await is queueing: {cause}"


def _share_words(disks: FrameTable, row: int) -> str:
    in_flight = disks.columns["in_flight"]
    share = float(_share(in_flight, _sum(in_flight))[row])
    has_peers = np.count_nonzero(in_flight > 0) > 1
    return f"{100 * share:.0f} % of the I/O time of all disks" if has_peers and share >= _CARRIES else ""


def _tier(disks: FrameTable, field_id: str, row: int) -> Tier:
    codes = disks.tiers.get(field_id)
    return Tier.KERNEL if codes is None else Tier(int(codes[row]))
