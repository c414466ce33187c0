"""What limits an NFS mount, in words: said only where the counters alone show it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from collectors.model import Frame, FrameTable
from collectors.tables.nfs.fields import OPERATIONS, TRANSPORTS
from collectors.tables.nfs.schema import mount_of, nfs_key
from engine.text import safe_text, three_digits

_FEWEST_PER_S = 5.0
"""Operations per second below which means say little."""
_SLOW_MS = 5.0
"""Execute time below which nothing is slow."""
_MOST_OF_IT = 0.6
"""Part of the execute time from which on it is named."""
_WAITING_TO_SEND = 1.0
"""Mean length of the queue of a connection from which on requests wait for each other."""
_WITHOUT_SLOT = 0.1
_UNEVEN = 1.5
_SENT_AGAIN_PCT = 0.1


class _Mount(Struct, frozen=True):
    """Figures of one mount that verdicts need; of transports their largest or sum, NaN where unknown."""

    iops: float
    queue_ms: float
    rtt_ms: float
    execute_ms: float
    again_pct: float
    imbalance: float
    transports: float
    sends_per_s: float
    receives_per_s: float
    sending: float
    backlog: float
    pending_now: float
    slots_limit: float
    version: str
    protocol: str


def nfs_verdicts(frame: Frame) -> dict[str, str]:
    """One line for each mount that has something to tell, by what the keys of its rows begin with."""
    table = frame.tables.get(OPERATIONS)
    if table is None:
        return {}
    found = {}
    transports = _rows_of_mounts(frame.tables.get(TRANSPORTS))
    for row, key in enumerate(table.rows.keys):
        if nfs_key(key).is_mount:
            mount = mount_of(key)
            words = "; ".join(_said(_figures(frame, row, key, transports.get(mount, []))))
            if words:
                found[mount] = words
    return found


def nfs_remarks(frame: Frame) -> Iterator[str]:
    """Yield the verdicts as lines of a report."""
    verdicts = nfs_verdicts(frame)
    for mount, words in verdicts.items():
        table = frame.tables[OPERATIONS]
        row = next(row for key, row in table.rows.positions.items() if mount_of(key) == mount)
        yield f"! {safe_text(table.rows.names[row].rpartition(' ')[0])}: {words}"


def _rows_of_mounts(table: FrameTable | None) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row, key in enumerate(() if table is None else table.rows.keys):
        found.setdefault(mount_of(key), []).append(row)
    return found


def _figures(frame: Frame, row: int, key: str, transports: list[int]) -> _Mount:
    table, others = frame.tables[OPERATIONS], frame.tables.get(TRANSPORTS)

    def of_all(field_id: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        values = [] if others is None else [others.value(field_id, each) for each in transports]
        return np.array([value for value in values if not np.isnan(value)] or [np.nan])

    return _Mount(
        iops=table.value("iops", row),
        queue_ms=table.value("queue_ms", row),
        rtt_ms=table.value("rtt_ms", row),
        execute_ms=table.value("execute_ms", row),
        again_pct=table.value("retransmission_pct", row),
        imbalance=table.value("imbalance", row),
        transports=float(len(transports)),
        sends_per_s=float(of_all("sends_per_s").sum()),
        receives_per_s=float(of_all("receives_per_s").sum()),
        sending=float(of_all("sending").max()),
        backlog=float(of_all("backlog").max()),
        pending_now=float(of_all("pending_now").sum()),
        slots_limit=float(of_all("slots_limit").max()),
        version=nfs_key(key).version,
        protocol=nfs_key(key).protocol,
    )


def _said(mount: _Mount) -> Iterator[str]:
    if mount.iops == 0 and mount.receives_per_s == 0 and mount.pending_now > 0:
        yield f"no reply in this interval, {mount.pending_now:.0f} requests wait: server or network is away"
        return
    if mount.iops >= _FEWEST_PER_S:
        yield from _of_transports(mount)
        yield from _of_time(mount)
        if mount.again_pct >= _SENT_AGAIN_PCT:
            yield f"{three_digits(mount.again_pct)} % sent again: loss in the network, or a server that drops requests"


def _of_transports(mount: _Mount) -> Iterator[str]:
    if mount.backlog >= _WITHOUT_SLOT:
        limit = "" if np.isnan(mount.slots_limit) else f" of {mount.slots_limit:.0f}"
        yield f"slots exhausted{limit}: {mount.backlog:.1f} requests wait for a slot at a send"
    if mount.transports == 1 and mount.protocol.startswith("tcp") and mount.sending >= _WAITING_TO_SEND:
        yield (
            f"one flow is the limit: {mount.sending:.1f} requests wait to be sent on the only TCP connection "
            "(more of them: nconnect)"
        )
    # Few sends are uneven by chance: three standard deviations of a Poisson count at the mean of the transports.
    per_transport = mount.sends_per_s / max(mount.transports, 1.0)
    if mount.transports > 1 and mount.imbalance >= _UNEVEN and (mount.imbalance - 1.0) ** 2 * per_transport >= 9.0:
        yield f"transports unbalanced: the busiest of {mount.transports:.0f} sends {mount.imbalance:.1f} x their mean"


def _of_time(mount: _Mount) -> Iterator[str]:
    if not mount.execute_ms >= _SLOW_MS:
        return
    if mount.rtt_ms >= _MOST_OF_IT * mount.execute_ms:
        yield f"server or network slow: RTT {mount.rtt_ms:.1f} of {mount.execute_ms:.1f} ms"
    elif mount.queue_ms >= _MOST_OF_IT * mount.execute_ms:
        yield f"client queue: {mount.queue_ms:.1f} of {mount.execute_ms:.1f} ms before sending{_session_slots(mount)}"


def _session_slots(mount: _Mount) -> str:
    """Where requests wait if no queue of a transport is long: NFSv4.1 limits them by slots of its session."""
    free = mount.backlog < _WITHOUT_SLOT and mount.sending < _WAITING_TO_SEND
    has_session = mount.version.startswith("4.") and mount.version != "4.0"
    return ", the connections are free: session slots (nfs.max_session_slots, threads of the server)" if (
        free and has_session
    ) else ""  # fmt: skip
