"""Raw samples with exact counters, for derivation tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collectors.exact.tracer import SCALE
from collectors.model import Histograms, Rows, Sample, Topology
from collectors.tables.block.schema import TRACE, TRACE_GROUP, TRACE_SERIES, TRACER
from engine.replacing import replace
from tests.unit import raw_samples as raw

SECOND_NS = raw.SECOND_NS
Cells = Sequence[tuple[int, int, int, int]]


def traced_sample(
    at_s: float,
    who: Rows,
    *values: Mapping[str, int],
    disks: Sequence[Mapping[str, int]] = (),
    disk_rows: Rows | None = None,
    cells: Cells = (),
    groups: Mapping[str, int] | None = None,
    topology: Topology | None = None,
    started_ns: int = 1,
    late_ns: int = 0,
    tag_wait: int = 0,
    losses: Mapping[str, int] | None = None,
) -> Sample:
    """A sample whose disks are `disk_rows` or the traced ones; busy time of groups by key."""
    disk_rows = disk_rows or who
    sample = raw.sample(
        at_s,
        disks=raw.disks(disk_rows, *(disks or [{}] * len(disk_rows))),
        topology=topology or raw.topology(disk_rows),
    )
    groups = groups or {}
    clock = {"started_ns": started_ns, "clock_ns": round(at_s * SECOND_NS) + late_ns + 1, "tag_wait_on": tag_wait}
    clock |= losses or {}
    tables = {
        "trace": raw.raw_table(TRACE, who, values),
        "trace_group": raw.raw_table(
            TRACE_GROUP, Rows(tuple(groups), tuple(groups)), [{"busy_ns": ns} for ns in groups.values()]
        ),
        "tracer": raw.raw_table(TRACER, Rows(("tracer",), ("tracer",)), [clock]),
    }
    columns = np.array(cells, np.int64).reshape(-1, 4).T
    types = (np.uint32, np.uint8, np.uint16, np.uint64)
    row, series, bucket, count = (column.astype(kind) for column, kind in zip(columns, types, strict=True))
    histograms = Histograms(SCALE, who, TRACE_SERIES, row, series, bucket, count)
    return replace(sample, tables={**sample.tables, **tables}, histograms={"trace": histograms})


def bucket_of(latency_ns: int) -> int:
    """Bucket of a latency on the tracer's scale."""
    units = latency_ns // SCALE.unit_ns
    octave = max(0, units.bit_length() - 1 - SCALE.sub_bits)
    return units if units < 1 << SCALE.sub_bits else (octave << SCALE.sub_bits) + (units >> octave)
