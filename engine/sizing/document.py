"""Sizes as JSON: the key `sizing` of lunscope.sweep/1, and lunscope.sizing/1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.sizing.need import Need
from engine.sizing.size import DiskSize, Sizing, WidthCapacity
from engine.sweep.document import Document
from engine.version import version

SCHEMA = "lunscope.sizing/1"


def sizing_document(need: Need, sizings: Sequence[Sizing]) -> Document:
    """Everything that is said of a need, ready for json.dumps."""
    return {"need": need.text, "loads": [_load(each) for each in sizings]}


def sizing_file(need: Need, sizings: Sequence[Sizing], source: str) -> Document:
    """Likewise as a document of its own, of the measurements of a file."""
    return {"schema": SCHEMA, "version": version(), "from": source, **sizing_document(need, sizings)}


def _load(sizing: Sizing) -> Document:
    return {
        "load": sizing.load,
        "verdict": sizing.verdict.value,
        "text": sizing.words,
        "need_iops": sizing.iops,
        "size": _size(sizing.size),
        "measured": [_width(each) for each in sizing.widths],
    }


def _size(size: DiskSize | None) -> Document | None:
    if size is None:
        return None
    return {
        "disks": size.disks,
        "disks_low": size.low,
        "disks_high": size.high,
        "queue_depth": size.depth,
        "iops": size.iops,
        "latency_us": _us(size.latencies_ns),
        "highest_queue_depth": size.most_depth,
        "highest_iops": size.most_iops,
    }


def _width(width: WidthCapacity) -> Document:
    return {
        "disks": width.disks,
        "problem": width.problem or None,
        "highest_queue_depth": width.depth,
        "highest_iops": width.iops,
        "iops_half_width": width.uncertainty,
        "latency_us": _us(width.latencies_ns),
    }


def _us(latencies_ns: Mapping[str, float]) -> Document:
    return {metric.replace(".", "_"): round(value / 1000, 3) for metric, value in latencies_ns.items()}
