"""What a load over several hosts measured: each host's result, and all I/Os together from the sums of histograms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from collectors.fleet.frames import Frame
from collectors.reports.run_events import events_between, run_events_document
from engine.events import Event
from engine.replacing import replace
from engine.results.histogram import SUB_BITS
from engine.results.measured import Measured, Split, combine, combine_splits
from engine.results.result_document import Document, split_document

_FIELDS = ("ios", "bytes", "errors", "latency_sum_ns", "peak_sum_ns", "peak_seconds")
_LONGEST_S = 1e9
"""A time longer than any load ran."""
_MOST_BUCKETS = 64 << SUB_BITS


class HostResult(Struct, frozen=True, eq=False):
    """What one host measured."""

    name: str
    document: Mapping[str, object]
    """The lunscope.run/1 of the host."""
    split: Split
    duration_s: float
    started_ns: int
    """Start on the controller's CLOCK_MONOTONIC."""

    @property
    def ended_ns(self) -> int:
        """When it ended, on the same clock."""
        elapsed_s = self.document.get("elapsed_s")
        known = isinstance(elapsed_s, int | float) and 0 <= elapsed_s < _LONGEST_S
        return self.started_ns + round((elapsed_s if known else self.duration_s) * 1e9)  # type: ignore[operator]


class FleetResult(Struct, frozen=True, eq=False):
    """What all of them measured."""

    hosts: tuple[HostResult, ...]
    missing: Mapping[str, str]
    """Hosts without a result, and why."""
    start_spread_ns: int | None
    """Time between the first host's start and the last one's; None with fewer than two."""
    turn_spreads_ns: tuple[int, ...] = ()
    """The same of each turn of the knobs."""
    clock_bound_ns: int | None = None
    """Largest bound of the clocks, by which the spreads may be wrong on either side."""
    events: tuple[Event, ...] = ()
    """What happened on the hosts meanwhile, by time."""

    @property
    def split(self) -> Split:
        """All I/Os."""
        return combine_splits([host.split for host in self.hosts])

    @property
    def is_bad(self) -> bool:
        """Whether a host is missing or an I/O failed."""
        return bool(self.missing or self.split.total.errors)

    @property
    def duration_s(self) -> float:
        """Longest time that any host measured."""
        return max((host.duration_s for host in self.hosts), default=0.0)

    def with_events(self, events: Iterable[Event]) -> FleetResult:
        """Add those events of the hosts that came between the first start and the last end."""
        if not self.hosts:
            return self
        begun_ns = min(host.started_ns for host in self.hosts)
        return replace(self, events=events_between(events, begun_ns, max(host.ended_ns for host in self.hosts)))


def host_result(name: str, frame: Frame, started_ns: int) -> HostResult | None:
    """Read the result frame of a host; None where it is damaged."""
    document, split = frame.get("document"), measured_split(frame)
    if not isinstance(document, dict) or split is None:
        return None
    try:
        duration_s = float(document["duration_s"] or 0.0)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return HostResult(name, document, split, duration_s, started_ns)


def measured_split(frame: Frame) -> Split | None:
    """Read what a host measured of its I/Os; None where it is damaged."""
    measured = frame.get("measured")
    if not isinstance(measured, dict):
        return None
    try:
        read, write = (_measured(measured[name]) for name in ("read", "write"))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return Split(read, write, combine([read, write]))


def _measured(value: Mapping[str, object]) -> Measured:
    numbers = {name: value[name] for name in _FIELDS}
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers.values()):
        raise ValueError("not a count")
    least, largest = value["least_ns"], value["largest_ns"]
    if not all(each is None or (type(each) is int and 0 <= each < 1 << 63) for each in (least, largest)):
        raise ValueError("not a time")
    buckets, counts = value["buckets"], value["counts"]
    if not isinstance(buckets, list) or not isinstance(counts, list) or len(buckets) != len(counts):
        raise ValueError("not a histogram")
    if not all(type(each) is int and 0 <= each < _MOST_BUCKETS for each in buckets):
        raise ValueError("not a bucket")
    return Measured(
        **numbers,  # type: ignore[arg-type] # checked above
        least_ns=least,  # type: ignore[arg-type]
        largest_ns=largest,  # type: ignore[arg-type]
        buckets=np.array(buckets, np.uint16),
        counts=np.array(counts, np.uint64),
    )


def fleet_document(result: FleetResult) -> Document:
    """Write it as JSON, schema lunscope.fleet-run/1."""
    return {
        "schema": "lunscope.fleet-run/1",
        "duration_s": result.duration_s,
        **split_document(result.split, result.duration_s),
        "partial": bool(result.missing),
        "missing": [{"host": name, "reason": reason} for name, reason in result.missing.items()],
        "start_spread_ms": _ms(result.start_spread_ns),
        "turn_spread_ms": [_ms(each) for each in result.turn_spreads_ns],
        "clock_bound_ms": _ms(result.clock_bound_ns),
        "hosts": [{"host": host.name, "result": host.document} for host in result.hosts],
        "events": run_events_document(result.events),
    }


def _ms(value_ns: int | None) -> float | None:
    return None if value_ns is None else value_ns / 1e6
