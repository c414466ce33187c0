"""Raw samples for derivation tests: everything a test does not name is 0, or MISSING where it is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collectors.model import MISSING, Device, Histograms, HostFacts, Rows, Sample, Schema, Table, Topology
from collectors.tables.block.schema import DISK
from collectors.tables.host.schema import HOST
from collectors.tables.load.schema import LOAD
from collectors.tables.process.schema import PROCESS
from engine.replacing import replace

SECOND_NS = 1_000_000_000
RAW_MISSING = int(MISSING)
NO_SAMPLES = {
    "driver_in_flight_sum": 0,
    "driver_in_flight_samples": 0,
    "driver_busy_samples": 0,
    "driver_in_flight_peak": 0,
}
"""Sums of a disk or a group where the sampler has just begun."""


def rows(*names: str) -> Rows:
    return Rows(tuple(f"{name}:8:0:1" for name in names), names)


def raw_table(schema: Schema, who: Rows, values: Sequence[Mapping[str, int]]) -> Table:
    raw = np.zeros((len(who), len(schema.columns)), np.uint64)
    for row, given in enumerate(values):
        for column_id, value in given.items():
            raw[row, schema.index(column_id)] = value
    return Table(schema, who, raw)


def disk_row(**values: int) -> dict[str, int]:
    """One disk without sampler, unless the test gives its columns."""
    return {column.id: RAW_MISSING for column in DISK.columns if column.id.startswith("driver_")} | values


def sample(
    at_s: float,
    *,
    disks: Table | None = None,
    host: Table | None = None,
    processes: Table | None = None,
    load: Table | None = None,
    tapes: Table | None = None,
    groups: Table | None = None,
    histograms: Histograms | None = None,
    topology: Topology | None = None,
) -> Sample:
    given = {"disk": disks, "host": host, "process": processes, "load": load, "tape": tapes, "group": groups}
    return Sample(
        time_ns=1_763_700_000 * SECOND_NS + round(at_s * SECOND_NS),
        monotonic_ns=round(at_s * SECOND_NS),
        topology=topology or Topology(),
        tables={name: table for name, table in given.items() if table is not None},
        histograms={} if histograms is None else {"load": histograms},
    )


def disks(who: Rows, *values: Mapping[str, int]) -> Table:
    return raw_table(DISK, who, [disk_row(**dict(given)) for given in values])


def host(**values: int) -> Table:
    return raw_table(HOST, Rows(("host",), ("host",)), [values])


def processes(who: Rows, *values: Mapping[str, int]) -> Table:
    return raw_table(PROCESS, who, values)


def load(who: Rows, *values: Mapping[str, int]) -> Table:
    return raw_table(LOAD, who, values)


def without_column(sample: Sample, table: str, column_id: str) -> Sample:
    """A sample of a version that did not have a column yet."""
    whole = sample.tables[table]
    kept = [position for position, column in enumerate(whole.schema.columns) if column.id != column_id]
    schema = Schema(table, tuple(whole.schema.columns[position] for position in kept))
    return replace(sample, tables={**sample.tables, table: Table(schema, whole.rows, whole.values[:, kept])})


def topology(who: Rows, kernel: str = "6.18.44", long_bits: int = 64, **facts: object) -> Topology:
    """Every row as a device with the given facts."""
    devices = {
        key: Device(key=key, name=name, kind="disk", major=8, minor=0, **facts)  # type: ignore[arg-type]
        for key, name in zip(who.keys, who.names, strict=True)
    }
    return Topology(devices, HostFacts(hostname="lab", kernel=kernel, machine="x86_64", cpus=4, long_bits=long_bits))
