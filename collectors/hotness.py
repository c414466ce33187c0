"""Hotness of a disk and its cause in words; no claim goes beyond the figures of the tier."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import ratio
from collectors.model import Frame, FrameTable, Rows, Tier, Topology
from engine.text import safe_text, three_digits

_Values = NDArray[np.float64]

UNUSUAL = 2.0
"""Times its usual latency, or that of its peers, from which on the latency of a disk is unusual."""
BUSY_WEIGHT, QUEUE_WEIGHT, SHARE_WEIGHT = 0.4, 0.3, 0.3


STALLED_MS = 2_000.0
"""Time without a completion while I/Os are outstanding, from which on a disk counts as stalled."""


def hotness(
    busy_pct: _Values, in_flight: _Values, queue_ms: _Values, service_ms: _Values, stalled_ms: _Values
) -> _Values:
    """Hotness of every disk, 0 to 100.

    `busy_pct * (0.4 + 0.3 * queue share + 0.3 * I/O time share)`: busy time counts in full only where I/Os queue and
    the disk carries more than its peers. Queue share is the part of the await spent queueing; I/O time share is the
    disk's part of all outstanding I/Os of the given disks. An unknown share is left out and the others weigh more. NaN
    where busy is missing. A stalled disk is as hot as can be.

    Args:
        busy_pct: shape (disks,), as are the others.
        in_flight: outstanding I/Os, averaged.
        queue_ms: queue time per I/O.
        service_ms: service time per I/O.
        stalled_ms: time without a completion while I/Os are outstanding.
    """
    hot = np.zeros(len(busy_pct))
    busy = np.flatnonzero(busy_pct != 0)  # Few disks of thousands.
    parts = (
        (QUEUE_WEIGHT, _share(queue_ms[busy], queue_ms[busy] + service_ms[busy])),
        (SHARE_WEIGHT, _share(in_flight[busy], _sum(in_flight))),
    )
    weight = score = np.full(len(busy), BUSY_WEIGHT)
    for part, share in parts:
        known = ~np.isnan(share)
        weight = weight + np.where(known, part, 0.0)
        score = score + np.where(known, part * share, 0.0)
    hot[busy] = np.minimum(busy_pct[busy] * score / weight, 100.0)
    hot[stalled_ms >= STALLED_MS] = 100.0
    return hot


def hottest(disks: FrameTable | None, usual_ms: _Values | None = None, topology: Topology | None = None) -> str | None:
    """Key of the hottest disk; None if no disk has a hotness.

    Of disks that are equally hot, within TIE of the hottest, it is the one whose latency is most above its usual one
    (`usual_ms`, one value per row) and that of its peers.
    """
    values = None if disks is None else disks.columns.get("heat")
    if disks is None or values is None or not np.isfinite(values).any():
        return None
    return disks.rows.keys[int(np.argmax(hot_order(disks, usual_ms, topology)))]


HEAT_ORDER = "heat:order"
"""Column for the order of rows by hotness, beside the figure itself."""


def with_hot_order(disks: FrameTable, frame: Frame) -> FrameTable:
    """Add the values by which screens order the disks of a frame, or some of them, by hotness."""
    return disks.with_columns({HEAT_ORDER: hot_order(disks, _usual_of_rows(frame, disks.rows), frame.topology)})


def hottest_of(disks: FrameTable | None, frame: Frame) -> str | None:
    """Key of the hottest of the disks of a frame, or of some of them."""
    return None if disks is None else hottest(disks, _usual_of_rows(frame, disks.rows), frame.topology)


def _usual_of_rows(frame: Frame, rows: Rows) -> _Values | None:
    usual, all_rows = frame.usual_ms.get("disks"), frame.tables["disks"].rows
    if usual is None or rows is all_rows:
        return usual
    return usual[_positions(rows, all_rows)]


@lru_cache(maxsize=4)
def _positions(rows: Rows, all_rows: Rows) -> NDArray[np.intp]:
    return np.array([all_rows.positions[key] for key in rows.keys], np.intp)


TIE = 2.0
"""Difference of two hotnesses below which latency decides: that of many busy disks differs by chance."""


def hot_order(disks: FrameTable, usual_ms: _Values | None, topology: Topology | None = None) -> _Values:
    """Values that order disks as hotness does, and among ties by latency; for ordering only, NaN is lowest.

    Disks are put into steps of TIE from the hottest one down; those in one step are tied.
    """
    heat = disks.columns["heat"]
    known = np.flatnonzero(np.isfinite(heat))
    order = np.full(len(heat), -np.inf)
    if not len(known):
        return order
    step = np.floor((np.max(heat[known]) - heat[known]) / TIE)
    excess = np.nan_to_num(latency_excess(disks, usual_ms, topology)[known], posinf=0.0)
    excess[excess < UNUSUAL] = 0.0
    # A bounded excess stays within its step; without one the order is that of the hotness.
    order[known] = -step + 0.999 * excess / (1.0 + excess) + heat[known] * 1e-6
    return order


def latency_excess(disks: FrameTable, usual_ms: _Values | None, topology: Topology | None = None) -> _Values:
    """How many times its usual latency, or that of its peers, a disk takes: the larger; NaN where neither is known."""
    await_ms = disks.columns["await_ms"]
    usual = np.full(len(await_ms), np.nan) if usual_ms is None or len(usual_ms) != len(await_ms) else usual_ms
    peers = peer_latencies(disks, topology or Topology())
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.fmax(await_ms / usual, await_ms / peers)


LEAST_PEERS = 3
"""Disks of a kind with I/O, from which on a disk is compared with them."""


@lru_cache(maxsize=4)
def peer_latencies(disks: FrameTable, topology: Topology) -> _Values:
    """Median await of the disks of the same kind that did I/O; NaN with fewer than LEAST_PEERS."""
    await_ms = disks.columns["await_ms"]
    kinds = _kinds(disks.rows, topology)
    peers = np.full(len(await_ms), np.nan)
    with np.errstate(invalid="ignore"):
        working = await_ms > 0
    for kind in np.unique(kinds[working]).tolist():
        at = kinds == kind
        if np.count_nonzero(at & working) >= LEAST_PEERS:
            peers[at] = _median(await_ms[at & working])
    return peers


def _median(values: _Values) -> float:
    """Median as np.median has it, which takes many times as long for so few, and imports masked arrays (2 MB)."""
    middle = np.sort(values)
    return float(middle[(len(values) - 1) // 2] + middle[len(values) // 2]) / 2


@lru_cache(maxsize=4)
def _kinds(rows: Rows, topology: Topology) -> NDArray[np.int64]:
    """Assign a number to each kind of disk: those of one kind and medium are comparable."""
    numbers: dict[tuple[object, ...], int] = {}
    devices = (topology.devices.get(key) for key in rows.keys)
    kinds = (() if device is None else (device.kind, device.rotational, device.bio_based) for device in devices)
    return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], np.int64)


def latency_reason(frame: Frame, row: int) -> str:
    """Compare the latency of a disk with its usual one and that of its peers; empty if nothing is unusual.

    "await 8.2 ms, 6x its usual 1.3 ms; peers 1.2 ms".
    """
    disks = frame.tables["disks"]
    await_ms, usual_ms = disks.value("await_ms", row), usual_of(frame, row)
    peers_ms = float(peer_latencies(disks, frame.topology)[row])
    unusual = any(base > 0 and await_ms / base >= UNUSUAL for base in (usual_ms, peers_ms))
    if not unusual:
        return ""
    parts = []
    if usual_ms > 0:
        times = await_ms / usual_ms
        more = f"{times:.0f}x its " if times >= UNUSUAL else ""
        parts.append(f"{more}usual {three_digits(usual_ms)} ms")
    if peers_ms > 0:
        parts.append(f"peers {three_digits(peers_ms)} ms")
    return f"await {three_digits(await_ms)} ms, {'; '.join(parts)}"


def usual_of(frame: Frame, row: int) -> float:
    """Return the usual await of a disk in the session, NaN if it is not known."""
    usual = frame.usual_ms.get("disks")
    return math.nan if usual is None or row >= len(usual) else float(usual[row])


def _sum(in_flight: _Values) -> float:
    return float(in_flight[~np.isnan(in_flight)].sum())


def _share(part: _Values, whole: _Values | float) -> _Values:
    return np.minimum(np.maximum(ratio(part, whole), 0.0), 1.0)


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
            stalled_s = float(np.fmax(disks.value("stalled_ms", row) / 1e3, frame.elapsed_s))
            return f"stalled: {outstanding:.0f} outstanding and none completed in {stalled_s:.1f} s"
        return "idle"
    bio_based = device is not None and device.bio_based
    parts = [_busy_words(disks, row), _latency_words(disks, row, bio_based=bio_based), _share_words(disks, row)]
    unusual = latency_reason(frame, row)
    return ", ".join(part for part in parts if part) + (f"; {unusual}" if unusual else "")


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
