"""I/O of processes, over the time between their own readings."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from collectors.derive.counter_deltas import ratio
from collectors.field import Field, Shown, Unit, with_sources
from collectors.model import MISSING, FrameTable, Table
from collectors.sampling.reading import Collector
from collectors.subject import Interval, SampledHost, Subject, any_above
from collectors.tables.process.schema import PROCESS
from engine.statistics.verdict import Better

_RATES = {
    "read_bytes_per_s": "read_bytes",
    "write_bytes_per_s": "write_bytes",
    "syscalls_read_per_s": "syscalls_read",
    "syscalls_write_per_s": "syscalls_write",
}


def _process(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> Field:
    return Field(id_, "processes", title, unit, help_, **shown)


_FIELDS: tuple[Field, ...] = (
    _process("pid", "PID", Unit.COUNT, "Process id.", digits=7, since_start=True),
    _process("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes it caused to be read from storage."),
    _process(
        "write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes it caused to be written, credited at dirtying."
    ),
    _process("syscalls_read_per_s", "r calls/s", Unit.PER_SECOND, "Read system calls.", better=Better.NEITHER),
    _process("syscalls_write_per_s", "w calls/s", Unit.PER_SECOND, "Write system calls.", better=Better.NEITHER),
)
_FIELDS = with_sources(_FIELDS, {"/proc/PID": ("pid",)}, "/proc/PID/io (proc_pid_io(5))")


def process_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:  # noqa: ARG001 - as all derivations
    """All process fields; the raw columns are already deltas over `span_us`."""
    values = np.where(current.values == MISSING, np.nan, current.values.astype(np.float64))
    found = {column.id: values[:, position] for position, column in enumerate(current.schema.columns)}
    span_s = np.where(found["span_us"] > 0, found["span_us"] / 1e6, np.nan)
    rates = {field_id: ratio(found[column], span_s) for field_id, column in _RATES.items()}
    return {"processes": FrameTable(current.rows, {"pid": found["pid"]} | rates)}


def _readers(host: SampledHost) -> tuple[Collector, ...]:
    from collectors.tables.process.reader import ProcessCollector  # noqa: PLC0415 (see collectors.subject.Readers)

    return (ProcessCollector(host.procfs),)


PROCESSES = Subject(
    table="processes",
    title="process",
    one="process",
    many="processes",
    fields=_FIELDS,
    raw=(PROCESS,),
    readers=_readers,
    derive=process_tables,
    columns=("pid", *_RATES),
    active=any_above(*_RATES),
)
