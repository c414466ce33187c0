"""What tape drives did over an interval, as sums that add up, and the figures made of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from collectors.derive.growth import Grown, Values, aligned, growth, instant, ratio
from collectors.model import FrameTable, Table

_NS_PER_MS = 1e6
_ADDED = ("reads", "writes", "others", "read_bytes", "write_bytes", "read_ns", "write_ns", "residuals")


def tape_table(previous: Table | None, current: Table, elapsed_s: float) -> FrameTable:
    """All tape fields over one interval."""
    return FrameTable(current.rows, tape_figures(tape_sums(previous, current, elapsed_s)))


def tape_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    """Add up an interval, one value per drive, NaN where missing; all but `in_flight` add up over intervals.

    `busy_s` are seconds in which a command ran: the kernel adds the time of a command when it ends, so that of a rewind
    of minutes comes all at once and counts for the interval at most, and an interval in which a command was outstanding
    and none ended was busy throughout.
    """
    before = aligned(previous, current)
    columns = current.schema.columns
    grown = growth(columns, before, current.values)
    held = np.minimum(instant(columns, before, "in_flight_now"), instant(columns, current.values, "in_flight_now"))
    return {
        **{name: grown[name] for name in _ADDED},
        "elapsed_s": np.full(grown.rows, elapsed_s),
        "busy_s": _busy_s(grown, held, elapsed_s),
        "in_flight": grown["in_flight_now"],
    }


def _busy_s(grown: Grown, held: Values, elapsed_s: float) -> Values:
    ended = grown["reads"] + grown["writes"] + grown["others"]
    return np.where((held > 0) & (ended == 0), elapsed_s, np.minimum(grown["io_ns"] / 1e9, elapsed_s))


def tape_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All tape fields of the sums of an interval, or of several added up."""
    return _rates(sums) | _means(sums) | {
        "busy_pct": 100.0 * ratio(sums["busy_s"], sums["elapsed_s"]),
        "in_flight": sums["in_flight"],
    }  # fmt: skip


def _rates(sums: Mapping[str, Values]) -> dict[str, Values]:
    amounts = {
        "iops": sums["reads"] + sums["writes"],
        "reads_per_s": sums["reads"],
        "writes_per_s": sums["writes"],
        "others_per_s": sums["others"],
        "bytes_per_s": sums["read_bytes"] + sums["write_bytes"],
        "read_bytes_per_s": sums["read_bytes"],
        "write_bytes_per_s": sums["write_bytes"],
        "residuals_per_s": sums["residuals"],
    }
    return {field_id: ratio(amount, sums["elapsed_s"]) for field_id, amount in amounts.items()}


def _means(sums: Mapping[str, Values]) -> dict[str, Values]:
    reads, writes = sums["reads"], sums["writes"]
    return {
        "await_ms": ratio((sums["read_ns"] + sums["write_ns"]) / _NS_PER_MS, reads + writes),
        "read_await_ms": ratio(sums["read_ns"] / _NS_PER_MS, reads),
        "write_await_ms": ratio(sums["write_ns"] / _NS_PER_MS, writes),
        "read_bytes_per_io": ratio(sums["read_bytes"], reads),
        "write_bytes_per_io": ratio(sums["write_bytes"], writes),
    }
