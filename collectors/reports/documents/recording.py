"""The document of a recording: averages, hot disks over time, latencies, the load, events, host and caveats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.all_subjects import REPORTED
from collectors.derive.percentiles import RowCells, bucket_midpoints_ns, percentiles_ns
from collectors.latency.subjects import WHOLE_LOAD, Direction, LatencySubject, disk_subject, parts_of, series_of
from collectors.model import FrameTable, Histograms, HistogramScale, Part
from collectors.reports.documents.averages import DocumentOptions, average_blocks, hot_disks
from collectors.reports.documents.content import (
    MOST_ROWS,
    Block,
    Charts,
    Document,
    DocumentTable,
    DrawnAxis,
    DrawnChart,
    DrawnCurve,
    Facts,
    Form,
    Mark,
    Paragraph,
    Section,
)
from collectors.reports.documents.host import (
    caveats_section,
    events_section,
    host_section,
    marks_of,
    span_text,
    tunables_grid,
)
from collectors.reports.documents.recorded import POINTS, Recorded, SeriesTable, read_recorded
from collectors.reports.documents.study import study_sections
from collectors.reports.documents.sweep import sweep_sections
from collectors.reports.documents.sweep_file import Swept, read_recorded_sweeps
from collectors.reports.report import with_tier
from collectors.session.reader import SessionReader
from collectors.session.recorded_loads import recorded_loads
from engine.events import Event
from engine.replacing import replace
from engine.text import safe_text

_MOST_SWEEPS = 8


def recording_document(reader: SessionReader, options: DocumentOptions | None = None) -> Document:
    """Read a recording once and describe it."""
    options = options or DocumentOptions()
    span_s = max((reader.end_ns - reader.start_ns) / 1e9, 0.0)
    point_s = options.interval_s or max(span_s / POINTS, reader.interval_s)
    steps = with_tier(reader.steps(reader.first, len(reader) - 1), options.best)
    found = read_recorded(steps, reader.interval_s, point_s, options.tables)
    events = reader.events()
    hot, swept = hot_disks(found), read_recorded_sweeps(events)
    host = found.topology.host.hostname or "unknown host"
    return Document(
        f"Storage report of {safe_text(host)}",
        f"{safe_text(reader.path.name)}: {span_text(found)}",
        (
            Section("Averages", tuple(average_blocks(found, options))),
            *_measured(swept),
            Section("Load", tuple(_load_blocks(found, events))),
            Section("Hot disks", tuple(_hot_blocks(found, hot, events))),
            Section("Latency", tuple(_latency_blocks(found, hot))),
            events_section(events),
            host_section(found),
            Section("Disks", tuple(_tunables(found, hot, options))),
            caveats_section(found, events, reader.notice),
        ),
    )


def _measured(swept: Sequence[Swept]) -> Iterator[Section]:
    """Make the sections of the last sweeps, studies and open loops."""
    if len(swept) > _MOST_SWEEPS:
        line = f"the last {_MOST_SWEEPS} of {len(swept)} sweeps are shown; replay shows all of them"
        yield Section("Sweeps", (Paragraph(line),))
    for each in swept[-_MOST_SWEEPS:]:
        yield from study_sections(each.study) if each.study else sweep_sections(each)


def _hot_blocks(found: Recorded, hot: Sequence[str], events: Sequence[Event]) -> Iterator[Block]:
    series, table = found.series.get("disks"), found.tables.get("disks")
    if series is None or table is None:
        return
    labels = dict(zip(table.rows.keys, _disk_labels(found, table), strict=True))
    for key in hot:
        yield Charts(_charts_of(series, key, found, marks_of(events, found.start_ns)), labels[key])


def _disk_labels(found: Recorded, table: FrameTable) -> tuple[str, ...]:
    subject = next(subject for subject in REPORTED if subject.table == "disks")
    return subject.labels(table.rows, found.topology)


def _charts_of(series: SeriesTable, key: str, found: Recorded, marks: tuple[Mark, ...]) -> tuple[DrawnChart, ...]:
    charts = [_latency_chart(series, key), *_percentile_charts(series, key), *_rate_charts(series, key)]
    if any(not math.isnan(value) for value in series.of(key, "busy_pct")):
        busy = _lines(series, key, (("busy", "busy_pct"),))
        charts.append(DrawnChart("Busy", "%", busy, most=100.0))
    return tuple(_placed(chart, found.start_ns, marks) for chart in charts)


def _placed(chart: DrawnChart, start_ns: int, marks: tuple[Mark, ...]) -> DrawnChart:
    return replace(chart, marks=marks, start_ns=start_ns)


def _latency_chart(series: SeriesTable, key: str) -> DrawnChart:
    """Queue on service time where both are known throughout, else the whole latency."""
    whole = series.of(key, "await_ms")
    queue, service = series.of(key, "queue_ms"), series.of(key, "service_ms")
    split = sum(not math.isnan(a + b) for a, b in zip(queue, service, strict=True))
    if not split or split * 2 < sum(not math.isnan(value) for value in whole):
        return DrawnChart("Latency (await)", "ms", _lines(series, key, (("await", "await_ms"),)))
    curves = _lines(series, key, (("S", "service_ms"), ("Q on top of it", "queue_ms")), Form.STACKED)
    known = zip(whole, queue, service, strict=True)
    rest = tuple(total if math.isnan(a + b) else math.nan for total, a, b in known)
    if any(not math.isnan(value) for value in rest):
        curves = (*curves, DrawnCurve("await where it is not split", series.times_s, rest))
    return DrawnChart("Latency: await = Q + S", "ms", curves)


def _percentile_charts(series: SeriesTable, key: str) -> Iterator[DrawnChart]:
    known = [
        (name, field)
        for name, field in (("p50", "p50_ms"), ("p99", "p99_ms"), ("peak", "max_ms"))
        if any(not math.isnan(value) for value in series.of(key, field))
    ]
    if len(known) > 1:
        yield DrawnChart("Percentiles and peaks", "ms", _lines(series, key, tuple(known)), log_y=True)


def _rate_charts(series: SeriesTable, key: str) -> Iterator[DrawnChart]:
    for title, unit, fields in (
        ("IOPS", "1/s", (("reads", "reads_per_s"), ("writes", "writes_per_s"))),
        ("Throughput", "B/s", (("reads", "read_bytes_per_s"), ("writes", "write_bytes_per_s"))),
    ):
        moved = tuple((name, field) for name, field in fields if any(value > 0 for value in series.of(key, field)))
        yield DrawnChart(title, unit, _lines(series, key, moved or fields[:1], Form.STACKED))


def _lines(
    series: SeriesTable, key: str, named: tuple[tuple[str, str], ...], form: Form = Form.LINE
) -> tuple[DrawnCurve, ...]:
    return tuple(DrawnCurve(name, series.times_s, series.of(key, field), form) for name, field in named)


def _load_blocks(found: Recorded, events: Sequence[Event]) -> Iterator[Block]:
    load, series = found.load, found.series.get("load_total")
    if not load.elapsed_s or series is None:
        return
    facts = [("Started", load_event.start.text) for load_event in recorded_loads(events)[:8]]
    facts += [
        ("I/Os", f"{load.ios:,.0f} in {load.elapsed_s:.1f} s with any"),
        ("IOPS", f"{load.ios / load.elapsed_s:,.1f}"),
        ("Throughput", f"{load.amount_bytes / load.elapsed_s / 2**20:,.1f} MiB/s"),
        ("Mean latency", f"{load.latency_ms / load.ios:,.3f} ms" if load.ios else "-"),
    ]
    yield Facts(tuple(facts))
    marks = marks_of(events, found.start_ns)
    charts = [
        *_percentile_charts(series, "load"),
        *_rate_charts(series, "load"),
        DrawnChart("In flight", "I/Os", _lines(series, "load", (("in flight", "in_flight"),))),
    ]
    yield Charts(tuple(_placed(chart, found.start_ns, marks) for chart in charts), "The load over time")


def _latency_blocks(found: Recorded, hot: Sequence[str]) -> Iterator[Block]:
    groups = list(_distributions(found, hot))
    if groups:
        yield percentile_grid([each for group in groups for each in group])
        yield Charts(tuple(map(distribution_chart, groups)), "Histograms")


def _distributions(found: Recorded, hot: Sequence[str]) -> Iterator[list[SubjectLatencies]]:
    load, trace = found.histograms.get("load"), found.histograms.get("trace")
    if load is not None:
        yield list(distributions(load, WHOLE_LOAD))
    for key in hot if trace is not None and found.frame is not None else ():
        subject = disk_subject(key, found.frame) if found.frame is not None else None
        if subject is not None and trace is not None and (parts := list(distributions(trace, subject))):
            yield parts


def _tunables(found: Recorded, hot: Sequence[str], options: DocumentOptions) -> Iterator[DocumentTable]:
    table = found.tables.get("disks")
    keys = hot if table is None or not options.all_rows else table.rows.keys
    devices = [device for key in keys[:MOST_ROWS] if (device := found.topology.devices.get(key)) is not None]
    grid = tunables_grid(devices)
    if devices and grid is not None:
        yield grid


PERCENTS = (50.0, 90.0, 99.0, 99.9)
_BINS_PER_OCTAVE = 4
_NAMES = {Part.TOTAL: "latency", Part.QUEUE: "Q", Part.SERVICE: "S"}


class SubjectLatencies(Struct, frozen=True, eq=False):
    """Latencies of one subject and part over a whole recording."""

    title: str
    part: Part
    scale: HistogramScale
    bucket: NDArray[np.uint16]
    count: NDArray[np.uint64]

    @property
    def ios(self) -> int:
        """I/Os counted."""
        return int(self.count.sum())

    def percentiles_ms(self) -> tuple[float, ...]:
        """PERCENTS in ms, NaN where there are too few I/Os."""
        cells = RowCells(self.scale, np.zeros(len(self.bucket), np.uint32), self.bucket, self.count)
        return tuple((percentiles_ns(cells, 1, PERCENTS)[:, 0] / 1e6).tolist())


def distributions(histograms: Histograms, subject: LatencySubject) -> Iterator[SubjectLatencies]:
    """Yield the parts of a subject that hold any I/O."""
    rows = np.array([not subject.keys or key in subject.keys for key in histograms.rows.keys], np.bool_)
    for part in parts_of(histograms.series):
        wanted = series_of(histograms.series, part, Direction.BOTH)
        series = np.array([name in wanted for name in histograms.series], np.bool_)
        kept = rows[histograms.row] & series[histograms.series_index] if len(rows) else np.zeros(0, np.bool_)
        if kept.any():
            total = np.bincount(histograms.bucket[kept], histograms.count[kept]).astype(np.uint64)
            bucket = np.flatnonzero(total)
            count = total[bucket]
            yield SubjectLatencies(subject.title, part, histograms.scale, bucket.astype(np.uint16), count)


def distribution_chart(found: Sequence[SubjectLatencies]) -> DrawnChart:
    """Draw the parts of one subject as shares of I/Os over the logarithm of latency."""
    curves = tuple(_curve(each) for each in found)
    marks = []
    if len(found) == 1:
        named = zip(("p50", "p90", "p99", "p99.9"), found[0].percentiles_ms(), strict=True)
        marks = [Mark(value, name, f"{name} {value:.3f} ms") for name, value in named if not math.isnan(value)]
    return DrawnChart(found[0].title, "% of I/Os", curves, DrawnAxis.LOG, "ms", tuple(marks))


def _curve(found: SubjectLatencies) -> DrawnCurve:
    middle_ms = np.maximum(bucket_midpoints_ns(found.scale, found.bucket), 1.0) / 1e6
    bins = np.floor(np.log2(middle_ms) * _BINS_PER_OCTAVE).astype(np.int64)
    first, last = int(bins.min()) - 1, int(bins.max()) + 1
    shares = np.bincount(bins - first, found.count.astype(np.float64), minlength=last - first + 1)
    shares *= 100 / shares.sum()
    x = np.exp2((np.arange(first, last + 1) + 0.5) / _BINS_PER_OCTAVE)
    return DrawnCurve(_NAMES[found.part], tuple(x.tolist()), tuple(shares.tolist()))


def percentile_grid(found: Sequence[SubjectLatencies]) -> DocumentTable:
    """Percentiles of subjects, from the sums of all their histograms."""
    head = (("of", ""), ("time", ""), ("I/Os", ""), *((f"p{percent:g}", "ms") for percent in PERCENTS))
    rows = tuple(
        (each.title, _NAMES[each.part], f"{each.ios:,}", *map(ms_text, each.percentiles_ms())) for each in found
    )
    return DocumentTable("Percentiles of the load" if len(found) == 1 else "Percentiles", head, rows, texts=2)


def ms_text(value: float) -> str:
    """Write milliseconds with three decimals, a missing value as a dash."""
    return "-" if math.isnan(value) else f"{value:,.3f}"
