"""One pass over a recording: averages as `report` has them, short series for charts, histograms, and losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from collectors.all_subjects import averages_of
from collectors.derive.downsample import downsample
from collectors.derive.percentiles import merged
from collectors.latency.subjects import SOURCES
from collectors.model import Frame, FrameTable, Histograms, Step, Topology
from collectors.rates import derive
from collectors.subject import Averages, interval_s
from collectors.tables.block.path_verdict import path_verdicts

POINTS = 240
"""Most points of a series: more than a chart has pixels to tell apart."""
CHARTED: Mapping[str, tuple[str, ...]] = {
    "disks": (
        "await_ms",
        "queue_ms",
        "service_ms",
        "iops",
        "reads_per_s",
        "writes_per_s",
        "read_bytes_per_s",
        "write_bytes_per_s",
        "busy_pct",
        "p50_ms",
        "p99_ms",
        "max_ms",
    ),
    "load_total": (
        "await_ms",
        "p50_ms",
        "p99_ms",
        "max_ms",
        "iops",
        "reads_per_s",
        "writes_per_s",
        "read_bytes_per_s",
        "write_bytes_per_s",
        "in_flight",
    ),
}
"""Fields with a series, by table."""
_LATE_SHARE = 0.5
"""Share of the interval from which a sample counts as late."""


class SeriesTable(Struct, frozen=True, eq=False):
    """Series of all rows of a table: times in seconds since the start, and per row and field its values."""

    times_s: tuple[float, ...]
    values: Mapping[tuple[str, str], tuple[float, ...]]

    def of(self, key: str, field_id: str) -> tuple[float, ...]:
        """Values of one row and field, NaN where it was unknown."""
        return self.values.get((key, field_id), (float("nan"),) * len(self.times_s))


class LoadTotal(Struct):
    """I/O of the load over the whole recording."""

    ios: float = 0.0
    amount_bytes: float = 0.0
    latency_ms: float = 0.0
    """Sum over all I/Os."""
    elapsed_s: float = 0.0


class Recorded(Struct, eq=False):
    """What the pass found."""

    start_ns: int = 0
    end_ns: int = 0
    topology: Topology = field(default_factory=Topology)
    tables: dict[str, FrameTable] = field(default_factory=dict)
    """Averages over the recording, as `report` prints them."""
    series: dict[str, SeriesTable] = field(default_factory=dict)
    interval_s: float = float("nan")
    """Interval of the series."""
    histograms: dict[str, Histograms] = field(default_factory=dict)
    """Histograms over the recording, by source."""
    load: LoadTotal = field(default_factory=LoadTotal)
    intervals: int = 0
    measured_s: float = 0.0
    gaps: int = 0
    late: int = 0
    largest_late_s: float = 0.0
    losses: Mapping[str, int] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)
    """Paths with a verdict, with the number of intervals in which they had one."""
    last_remarks: dict[str, str] = field(default_factory=dict)
    """The last verdict on each, in words."""
    frame: Frame | None = None
    """The last one."""


def read_recorded(steps: Iterable[Step], usual_s: float, point_s: float, tables: Collection[str] = ()) -> Recorded:
    """Read all steps once.

    Args:
        steps: of the whole recording or of a lower tier of it.
        usual_s: nominal time between samples.
        point_s: shortest time between points of a series.
        tables: those that are shown though they are not by default.
    """
    found = Recorded(interval_s=point_s)
    averages = averages_of(tables)
    series = {table: _ChartSeries(fields) for table, fields in CHARTED.items()}
    for step in downsample(_counted(steps, found, averages, usual_s), point_s):
        frame = derive(step.previous, step.current)
        found.frame = frame
        found.losses = frame.losses or found.losses
        for name, kept in series.items():
            kept.add((frame.time_ns - found.start_ns) / 1e9, frame.tables.get(name))
        _add_load(found.load, frame)
        if step.previous is not None:
            _add_remarks(found, frame)
            _add_histograms(found.histograms, step)
    for each in averages:
        found.tables |= each.tables()
    found.series = {name: kept.table() for name, kept in series.items()}
    return found


def _counted(steps: Iterable[Step], found: Recorded, averages: list[Averages], usual_s: float) -> Iterator[Step]:
    """Add every step to the averages and counts before steps are merged."""
    for step in steps:
        sample = step.current
        elapsed_s = interval_s(step.previous, sample)
        if not found.start_ns:
            found.start_ns = sample.time_ns
        elif step.previous is None:
            found.gaps += 1
        found.end_ns, found.topology = sample.time_ns, sample.topology
        if elapsed_s > 0:
            found.intervals += 1
            found.measured_s += elapsed_s
        late_s = sample.late_ns / 1e9
        found.late += late_s > _LATE_SHARE * usual_s
        found.largest_late_s = max(found.largest_late_s, late_s)
        for each in averages:
            each.add(step)
        yield step


def _add_remarks(found: Recorded, frame: Frame) -> None:
    for words in path_verdicts(frame):
        path = " ".join(words.split(" ", 2)[:2])
        found.remarks[path] += 1
        found.last_remarks[path] = words


def _add_load(load: LoadTotal, frame: Frame) -> None:
    table = frame.tables.get("load_total")
    if table is None or not len(table.rows):
        return
    ios = table.value("iops", 0) * frame.elapsed_s
    if ios > 0:
        load.ios += ios
        load.elapsed_s += frame.elapsed_s
        load.amount_bytes += float(np.nan_to_num(table.value("bytes_per_s", 0) * frame.elapsed_s))
        load.latency_ms += float(np.nan_to_num(table.value("await_ms", 0) * ios))


def _add_histograms(held: dict[str, Histograms], step: Step) -> None:
    for source, cells in step.current.histograms.items():
        if source not in SOURCES:
            continue
        before = held.get(source)
        if before is None or before.scale != cells.scale:
            held[source] = merged([cells])
        else:
            held[source] = merged([before, cells])


class _ChartSeries:
    """Collects the rows of one table; a row that is not there has a gap."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self._fields = fields
        self._times_s: list[float] = []
        self._tables: list[tuple[Mapping[str, int], dict[str, NDArray[np.float32]]]] = []

    def add(self, time_s: float, table: FrameTable | None) -> None:
        self._times_s.append(time_s)
        if table is None:
            self._tables.append(({}, {}))
            return
        held = {name: table.columns[name].astype(np.float32) for name in self._fields if name in table.columns}
        self._tables.append((table.rows.positions, held))

    def table(self) -> SeriesTable:
        keys = dict.fromkeys(key for positions, _ in self._tables for key in positions)
        values = {(key, name): tuple(self._values(key, name)) for key in keys for name in self._fields}
        return SeriesTable(tuple(self._times_s), values)

    def _values(self, key: str, name: str) -> Iterator[float]:
        for positions, held in self._tables:
            row = positions.get(key)
            yield float(held[name][row]) if row is not None and name in held else float("nan")
