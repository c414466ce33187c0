"""Tape drives: additive sums of an interval, and their figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from collectors.derive.counter_deltas import Deltas, Values, aligned, column_deltas, instant
from collectors.derive.quotients import Quotients
from collectors.field import Field, Thresholds, Unit
from collectors.graph import Graph, Tape, ports_of
from collectors.model import FrameTable, Table, Topology
from collectors.sampling.reading import Collector
from collectors.subject import AddedSums, Interval, Report, SampledHost, Subject, any_above
from collectors.tables.tape.schema import TAPE
from engine.statistics.verdict import Better
from engine.text import safe_text

_ADDED = ("reads", "writes", "others", "read_bytes", "write_bytes", "read_ns", "write_ns", "residuals")


_tape = partial(Field, table="tapes", source="/sys/class/scsi_tape/*/stats (Documentation/scsi/st.rst)")
_per_s = partial(_tape, unit=Unit.PER_SECOND)
_bytes_per_s = partial(_tape, unit=Unit.BYTES_PER_SECOND)
_mean_ms = partial(_tape, unit=Unit.MILLISECONDS, factor=1e-6, hot=Thresholds(20, 50))

_FIELDS: tuple[Field, ...] = (
    _per_s("iops", "IOPS", "Completed reads and writes per second.", sums="reads writes"),
    _per_s("reads_per_s", "r/s", "Completed reads per second.", sums="reads"),
    _per_s("writes_per_s", "w/s", "Completed writes per second.", sums="writes"),
    _per_s(
        "others_per_s",
        "o/s",
        "Other commands per second: rewind, space, write filemarks.",
        better=Better.NEITHER,
        sums="others",
    ),
    _bytes_per_s("bytes_per_s", "B/s", "Bytes read and written per second.", sums="read_bytes write_bytes"),
    _bytes_per_s("read_bytes_per_s", "rB/s", "Bytes read per second.", sums="read_bytes"),
    _bytes_per_s("write_bytes_per_s", "wB/s", "Bytes written per second.", sums="write_bytes"),
    _mean_ms(
        "await_ms",
        "await",
        "Time per read or write; the kernel does not split it.",
        sums="read_ns write_ns",
        per="iops",
    ),
    _mean_ms("read_await_ms", "r await", "Time per read.", sums="read_ns", per="reads_per_s"),
    _mean_ms("write_await_ms", "w await", "Time per write.", sums="write_ns", per="writes_per_s"),
    _tape("in_flight", "inflight", "Outstanding commands at the end of the interval.", Unit.COUNT),
    _tape(
        "busy_pct",
        "Busy",
        "Time of the commands that ended, rewinds too, as a share of the interval; 100 % while one runs and none ends.",
        Unit.PERCENT,
        hot=Thresholds(70, 95),
        sums="busy_s",
        factor=100.0,
    ),
    _tape("read_bytes_per_io", "r size", "Mean size of a read.", Unit.BYTES, sums="read_bytes", per="reads_per_s"),
    _tape("write_bytes_per_io", "w size", "Mean size of a write.", Unit.BYTES, sums="write_bytes", per="writes_per_s"),
    _per_s(
        "residuals_per_s",
        "resid/s",
        "Reads and writes per second that moved less than asked.",
        better=Better.LOWER,
        sums="residuals",
    ),
)
_QUOTIENTS = Quotients(_FIELDS)


def tape_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All tape fields over one interval."""
    sums = tape_sums(interval.before(TAPE.name), current, interval.elapsed_s)
    return {"tapes": FrameTable(current.rows, tape_figures(sums))}


def tape_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    """Add up an interval, one value per drive, NaN where missing; all but `in_flight` are additive over intervals.

    `busy_s` are seconds in which a command ran: the kernel adds the time of a command when it ends, so that of a rewind
    of minutes comes all at once and counts for the interval at most, and an interval in which a command was outstanding
    and none ended was busy throughout.
    """
    before = aligned(previous, current)
    columns = current.schema.columns
    deltas = column_deltas(columns, before, current.values, elapsed_s=elapsed_s)
    held = np.minimum(instant(columns, before, "in_flight_now"), instant(columns, current.values, "in_flight_now"))
    return {
        **{name: deltas[name] for name in _ADDED},
        "elapsed_s": np.full(deltas.rows, elapsed_s),
        "busy_s": _busy_s(deltas, held, elapsed_s),
        "in_flight": deltas["in_flight_now"],
    }


def _busy_s(deltas: Deltas, held: Values, elapsed_s: float) -> Values:
    ended = deltas["reads"] + deltas["writes"] + deltas["others"]
    return np.where((held > 0) & (ended == 0), elapsed_s, np.minimum(deltas["io_ns"] / 1e9, elapsed_s))


def tape_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All tape fields of the sums of an interval, or of several added up."""
    return {**_QUOTIENTS.of(sums), "in_flight": sums["in_flight"]}


def _drive(key: str, graph: Graph) -> Tape | None:
    return next((tape for tape in graph.tapes if tape.key == key), None)


def _identity(key: str, topology: Topology) -> str:
    tape = _drive(key, topology.graph)
    return safe_text((tape.persistent_id if tape else "") or key)


def _facts(key: str, topology: Topology) -> dict[str, object]:
    tape = _drive(key, topology.graph)
    if tape is None:
        return {}
    port = ports_of(topology.graph).get(tape.port)
    return {
        "port": safe_text(port.name) if port else "",
        "address": safe_text(tape.address),
        "state": safe_text(tape.state),
        "model": safe_text(f"{tape.vendor} {tape.model}".strip()),
    }


def _readers(host: SampledHost) -> tuple[Collector, ...]:
    from collectors.tables.tape.reader import TapeCollector  # noqa: PLC0415 (see collectors.subject.Readers)

    return (TapeCollector(host.sysfs),)


_COLUMNS = ("iops", "bytes_per_s", "await_ms", "in_flight", "others_per_s", "busy_pct")

TAPES = Subject(
    table="tapes",
    title="tape",
    one="tape drive",
    fields=_FIELDS,
    raw=(TAPE,),
    readers=_readers,
    derive=tape_tables,
    active=any_above("iops", "others_per_s", "in_flight"),
    report=Report(
        option="-t",
        help="Tape drives.",
        columns=_COLUMNS,
        split_columns=(
            "reads_per_s",
            "writes_per_s",
            "read_bytes_per_s",
            "write_bytes_per_s",
            "read_await_ms",
            "write_await_ms",
            "in_flight",
            "others_per_s",
            "busy_pct",
        ),
        distribution_columns=_COLUMNS,
        averages=lambda: AddedSums("tapes", TAPE, tape_sums, tape_figures, latest=("in_flight",)),
    ),
    facts=_facts,
    identity=_identity,
)
"""The kernel does not split the time of tape commands: they have neither queue time nor service time."""
