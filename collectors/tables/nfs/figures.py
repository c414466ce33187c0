"""Derivation of NFS figures: additive sums of an interval, and the figures of such sums."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Raw, Values, aligned, column_deltas, ratio
from collectors.derive.quotients import Quotients
from collectors.model import MISSING, Rows, Table
from collectors.tables.nfs.fields import OPERATION_FIELDS, TRANSPORT_FIELDS
from collectors.tables.nfs.schema import (
    BYTE_COUNTERS,
    OPERATION_COUNTERS,
    TRANSPORT_COUNTERS,
    TRANSPORT_GAUGES,
    mount_of,
    mount_row,
    nfs_key,
)

_OF_OPERATIONS, _OF_TRANSPORTS = Quotients(OPERATION_FIELDS), Quotients(TRANSPORT_FIELDS)


def operation_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    """Add up an interval, one value per row, NaN where missing; all are additive over intervals.

    An operation that a mount had not used before counts from 0. `elapsed_s` is NaN where the row has no interval.
    """
    before = _from_zero(previous, current, aligned(previous, current))
    deltas = column_deltas(current.schema.columns, before, current.values, elapsed_s=elapsed_s)
    known = ~np.isnan(deltas["operations"])
    return {
        **{name: deltas[name] for name in (*OPERATION_COUNTERS, *BYTE_COUNTERS)},
        "elapsed_s": np.where(known, elapsed_s, np.nan),
    }


def _from_zero(previous: Table | None, current: Table, before: Raw) -> Raw:
    """Previous values, 0 for operations that are new on a mount that was there."""
    if previous is None or previous.rows is current.rows:
        return before
    there = previous.rows.positions
    keys = current.rows.keys
    new = [row for row, key in enumerate(keys) if key not in there and mount_row(key) in there]
    if not new:
        return before
    found = before.copy()
    found[new, : len(OPERATION_COUNTERS)] = 0
    missing = current.values[new] == MISSING
    found[new] = np.where(missing, MISSING, found[new])
    return found


def operation_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All fields of operations that follow from sums of an interval, or of several added up."""
    again = np.maximum(sums["transmissions"] - sums["operations"], 0.0)
    return {
        **_OF_OPERATIONS.of({**sums, "retransmissions": again}),
        "retransmission_pct": ratio(100.0 * again, sums["operations"]),
        "direct_pct": _direct_pct(sums),
    }


def _direct_pct(sums: Mapping[str, Values]) -> Values:
    direct = sums["direct_read_bytes"] + sums["direct_write_bytes"]
    buffered = sums["buffered_read_bytes"] + sums["buffered_write_bytes"]
    return 100.0 * ratio(direct, direct + buffered)


def transport_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    """Add up an interval, one value per transport, NaN where missing; counters and times are additive over intervals.

    `mount_sends` are the sends of all transports of the same mount, `mount_transports` how many of them are known.
    """
    deltas = column_deltas(current.schema.columns, aligned(previous, current), current.values, elapsed_s=elapsed_s)
    known = ~np.isnan(deltas["sends"])
    group, count = _groups(current.rows)
    sends = np.bincount(group, np.where(known, deltas["sends"], 0.0), count)
    members = np.bincount(group, known, count)
    return {
        **{name: deltas[name] for name in (*TRANSPORT_COUNTERS, *TRANSPORT_GAUGES)},
        "elapsed_s": np.where(known, elapsed_s, np.nan),
        "mount_sends": np.where(known, sends[group], np.nan),
        "mount_transports": members[group].astype(np.float64),
    }


@lru_cache(maxsize=4)
def _groups(rows: Rows) -> tuple[NDArray[np.intp], int]:
    """Return the number of each row's mount, and how many mounts there are."""
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(mount_of(key), len(numbers)) for key in rows.keys]
    return np.array(found, np.intp), len(numbers)


def transport_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All fields of transports of the sums of an interval, or of several added up."""
    sends = sums["sends"]
    share = ratio(sends, sums["mount_sends"])
    return {
        **_OF_TRANSPORTS.of(sums),
        **{name: sums[name] for name in TRANSPORT_GAUGES},
        "share_pct": 100.0 * share,
        "balance": share * sums["mount_transports"],
        "in_flight": ratio(sums["outstanding_sum"], sends),
        "sending": ratio(sums["sending_sum"], sends),
        "pending": ratio(sums["pending_sum"], sends),
        "backlog": ratio(sums["backlog_sum"], sends),
    }


def transports_of_mounts(rows: Rows, transports: Rows, figures: Mapping[str, Values]) -> dict[str, Values]:
    """Return the number of transports and the imbalance for the rows of whole mounts; NaN for their operations."""
    count, imbalance = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    largest: dict[str, float] = {}
    number: dict[str, int] = {}
    for key, balance in zip(transports.keys, figures["balance"].tolist(), strict=True):
        mount = mount_of(key)
        number[mount] = number.get(mount, 0) + 1
        largest[mount] = max(largest.get(mount, balance), balance)
    for row, key in enumerate(rows.keys):
        mount = mount_of(key)
        if mount in number and nfs_key(key).is_mount:
            count[row], imbalance[row] = number[mount], largest[mount]
    return {"transports": count, "imbalance": imbalance}
