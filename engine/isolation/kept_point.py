"""A point of an isolation curve as JSON: in the file of the curve and in a recording."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from engine._native import HISTOGRAM_BUCKETS
from engine.errors import UsageError
from engine.isolation.caps import parse_cap
from engine.isolation.study import AggressorLoad, IsolationPoint
from engine.isolation.victim import VictimSecond
from engine.study.decoded import Count, decoded
from engine.study.trial_file import TrialKind
from engine.text import safe_text, short_text

_LONGEST_BLOCK = 40
_Figure = Annotated[float, Meta(ge=0, lt=1 << 62)]
_Depth = Annotated[int, Meta(ge=1, le=1_000_000)]
_Bucket = Annotated[int, Meta(ge=0, lt=HISTOGRAM_BUCKETS)]


class _Second(Struct, frozen=True, array_like=True):
    duration_s: _Figure
    ios: Count
    skipped: Count
    latency_sum_ns: Count
    buckets: list[_Bucket]
    counts: list[Count]

    def __post_init__(self) -> None:
        ascend = all(earlier < later for earlier, later in itertools.pairwise(self.buckets))
        if len(self.buckets) != len(self.counts) or not ascend:
            raise ValueError("no histogram")


class _Point(Struct, frozen=True):
    load: tuple[_Depth, str] | None
    cap: str
    iops: _Figure | None
    seconds: tuple[_Second, ...]


def point_document(point: IsolationPoint) -> dict[str, Any]:
    """Write a point as a JSON object that `read_point` reads back."""
    load = point.aggressor
    return {
        "load": None if load is None else [load.queue_depth, load.block],
        "cap": point.cap.text,
        "iops": point.aggressor_iops,
        "seconds": [
            [each.duration_s, each.ios, each.skipped, each.latency_sum_ns, each.buckets.tolist(), each.counts.tolist()]
            for each in point.seconds
        ],
    }


def read_point(document: Any) -> IsolationPoint | None:  # noqa: ANN401 (of a file)
    """Read a point back from its object; None where it is none."""
    found = decoded(_Point, document)
    if found is None:
        return None
    load = found.load
    try:
        cap = parse_cap(found.cap)
    except UsageError:
        return None
    block = "" if load is None else safe_text(short_text(load[1], _LONGEST_BLOCK))
    return IsolationPoint(
        None if load is None else AggressorLoad(load[0], block), cap, found.iops, tuple(map(_second, found.seconds))
    )


def _second(found: _Second) -> VictimSecond:
    buckets, counts = np.array(found.buckets, np.uint16), np.array(found.counts, np.uint64)
    return VictimSecond(found.duration_s, found.ios, found.skipped, found.latency_sum_ns, buckets, counts)


POINTS = TrialKind("lunscope.isolation-points/1", read_point, point_document, "point", is_nested=True)
"""The points of a curve; there is one curve only."""
