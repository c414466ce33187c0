"""I/O of processes, over the time between their own readings."""

from __future__ import annotations

from functools import partial

import numpy as np

from collectors.derive.quotients import Quotients
from collectors.field import Field, Unit
from collectors.model import MISSING, FrameTable, Table
from collectors.sampling.reading import Collector
from collectors.subject import Interval, SampledHost, Subject, any_above
from collectors.tables.process.schema import PROCESS
from engine.statistics.verdict import Better

_process = partial(Field, table="processes", source="/proc/PID/io (proc_pid_io(5))")

_FIELDS: tuple[Field, ...] = (
    _process("pid", "PID", "Process id.", Unit.COUNT, digits=7, since_start=True, source="/proc/PID"),
    _process(
        "read_bytes_per_s", "rB/s", "Bytes it caused to be read from storage.", Unit.BYTES_PER_SECOND, sums="read_bytes"
    ),
    _process(
        "write_bytes_per_s",
        "wB/s",
        "Bytes it caused to be written, credited at dirtying.",
        Unit.BYTES_PER_SECOND,
        sums="write_bytes",
    ),
    _process(
        "syscalls_read_per_s",
        "r calls/s",
        "Read system calls.",
        Unit.PER_SECOND,
        better=Better.NEITHER,
        sums="syscalls_read",
    ),
    _process(
        "syscalls_write_per_s",
        "w calls/s",
        "Write system calls.",
        Unit.PER_SECOND,
        better=Better.NEITHER,
        sums="syscalls_write",
    ),
)
_QUOTIENTS = Quotients(_FIELDS)


def process_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:  # noqa: ARG001 - as all derivations
    """All process fields; the raw columns are already deltas over `span_us`."""
    values = np.where(current.values == MISSING, np.nan, current.values.astype(np.float64))
    found = {column.id: values[:, position] for position, column in enumerate(current.schema.columns)}
    rates = _QUOTIENTS.of({**found, "elapsed_s": found["span_us"] / 1e6})
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
    columns=tuple(field.id for field in _FIELDS),
    active=any_above(*(field.id for field in _FIELDS if field.sums)),
)
