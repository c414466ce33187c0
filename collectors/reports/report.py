"""The report: steps of any source, of a lower tier if wanted, as sar-like text or as one JSON document per interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from collectors.all_subjects import REPORTED, SUBJECTS, averages_of
from collectors.derive.downsample import downsample
from collectors.exact.live_tier import HostTier
from collectors.latency.average_peaks import AveragePeaks
from collectors.model import MISSING, Frame, FrameTable, Looking, Sample, Step, Table, Tier, Topology
from collectors.rates import derive
from collectors.registry import subject_of
from collectors.reports.page import PageOptions, ReportPage
from collectors.session.time_format import iso_time
from collectors.tables.block.derive.looking import added_up, looking_lines
from collectors.tables.block.schema import DISK
from engine.replacing import replace
from engine.strict_json import dump_json, rounded
from engine.text import safe_text

_EXACT = frozenset(schema.name for subject in SUBJECTS for schema in subject.exact_raw)
_SAMPLED = frozenset(schema.name for subject in SUBJECTS for schema in subject.sampled_raw)


def with_tier(steps: Iterable[Step], tier: Tier) -> Iterator[Step]:
    """Yield steps without the data of tiers above `tier`."""
    if tier is Tier.EXACT:
        yield from steps
        return
    host_tier = HostTier()
    for step in steps:
        previous = None if step.previous is None else _limited(step.previous, tier, host_tier)
        yield Step(previous, _limited(step.current, tier, host_tier))


def _limited(sample: Sample, tier: Tier, host_tier: HostTier) -> Sample:
    dropped = _EXACT if tier is Tier.SAMPLED else _EXACT | _SAMPLED
    tables = {name: table for name, table in sample.tables.items() if name not in dropped}
    if tier is Tier.KERNEL and DISK.name in tables:
        tables[DISK.name] = _without_samples(tables[DISK.name])
    histograms = {name: cells for name, cells in sample.histograms.items() if name not in dropped}
    topology = host_tier.apply(sample.topology, min(tier, sample.topology.host.tier), "")
    return replace(sample, tables=tables, histograms=histograms, topology=topology)


def _without_samples(table: Table) -> Table:
    values = table.values.copy()
    values[:, [position for position, column in enumerate(table.schema.columns) if column.id.startswith("driver_")]] = (
        MISSING
    )
    return Table(table.schema, table.rows, values)


SCHEMA = "lunscope.report/1"


ALL_TABLES = tuple(subject.table for subject in REPORTED)
UNASKED_TABLES = tuple(subject.table for subject in REPORTED if subject.report is not None and subject.report.unasked)
"""Tables with rows in a JSON report if no subject is selected by its option."""


def report_line(frame: Frame, tables: Sequence[str] = ALL_TABLES) -> dict[str, object]:
    """One interval as a document of numbers, strings and null only.

    Idle disks, paths and ports are included, so that all lines have the same rows. `id` is persistent (wwid, NGUID,
    serial) if the disk has one; `tiers` in a row are the tiers of fields that vary by disk; `states_age_s` is the age
    of the states of paths at `time`.

    Args:
        frame: any frame; it may have no disks.
        tables: tables with rows; the others are empty.
    """
    return {
        "schema": SCHEMA,
        "time": iso_time(frame.time_ns),
        "interval_s": rounded(frame.elapsed_s),
        "tier": frame.topology.host.tier.name.lower(),
        "states_age_s": rounded(frame.states_age_s),
        "looking": None if frame.looking is None else looking_document(frame.looking),
        **{name: _rows(frame, name) if name in tables else [] for name in ALL_TABLES},
    }


def looking_document(cost: Looking) -> dict[str, object]:
    """Write what looking cost: shares are of one CPU, `basis` says how the time of the programs is known."""
    known = not math.isnan(cost.programs_s)
    return {
        "sampling_pct": rounded(cost.sampling_pct),
        "programs_pct": rounded(cost.programs_pct),
        "ns_per_io": rounded(cost.ns_per_io),
        "basis": ("measured" if cost.is_measured else "estimated") if known else None,
    }


def _rows(frame: Frame, name: str) -> list[dict[str, object]]:
    table = frame.tables.get(name)
    return [] if table is None else [row_document(name, table, row, frame.topology) for row in range(len(table.rows))]


def row_document(name: str, table: FrameTable, row: int, topology: Topology) -> dict[str, object]:
    """Write one row of a frame table: its names and facts, all its figures, and the tiers that vary by row."""
    key = table.rows.keys[row]
    subject = subject_of(name)
    figures = {field.id: rounded(table.value(field.id, row)) for field in subject.fields}
    tiers = {field_id: Tier(int(codes[row])).name.lower() for field_id, codes in table.tiers.items() if codes[row]}
    return {
        "name": safe_text(table.rows.names[row]),
        "id": subject.identity(key, topology),
        **subject.facts(key, topology),
        **figures,
        "tiers": tiers,
    }


__all__ = ["ReportOptions", "report_json", "report_line", "report_text"]


class ReportOptions(Struct, frozen=True):
    """What `lunscope report` shows."""

    tables: tuple[str, ...] = ()
    """Selected subjects with a report; default: disks in text and UNASKED_TABLES in JSON."""
    split: bool = False
    """Reads and writes separately (-R)."""
    distribution: bool = False
    """Percentiles and peaks instead of means, and average peak latencies at the end (-P)."""
    all_disks: bool = False
    """Also disks without I/O in text; JSON always has them, so that all its lines have the same rows."""
    count: int | None = None
    """Number of intervals; None: all intervals of the source."""
    header_every: int = 20
    """Lines after which the header is repeated."""
    interval_s: float | None = None
    """Shortest interval of a line; None: that of the steps."""


def report_text(steps: Iterable[Step], options: ReportOptions | None = None) -> Iterator[str]:
    """Yield the lines of a report: a line per disk, path, port or tape and interval, then the averages.

    The averages follow when `steps` ends or `options.count` is reached; they are over the whole time, not the lines.
    """
    options = options or ReportOptions()
    page_options = PageOptions(options.split, options.all_disks, options.header_every, options.distribution)
    page = ReportPage(options.tables or ("disks",), page_options)
    averages, peaks, topology = averages_of(options.tables), AveragePeaks(), Topology()
    cost: Looking | None = None
    if options.interval_s is not None:
        steps = downsample(_noting(steps, peaks) if options.distribution else steps, options.interval_s)
    for step, frame in _intervals(steps, options.count):
        topology = step.current.topology
        cost = added_up(part for part in (cost, frame.looking) if part is not None)
        for added in averages:
            added.add(step)
        if options.interval_s is None:
            peaks.add(frame)
        yield from page.lines(step, frame)
    tables: dict[str, FrameTable] = {}
    for added in averages:
        tables |= added.tables()
    yield from page.averages(tables, topology)
    if cost is not None and cost.ios > 0:
        yield ""
        yield from looking_lines(cost)
    if options.distribution:
        yield from page.average_peaks(tables, peaks, topology)


def report_json(steps: Iterable[Step], options: ReportOptions | None = None) -> Iterator[str]:
    """Yield one JSON document per interval, as `report_line` makes them, without line ends."""
    options = options or ReportOptions()
    if options.interval_s is not None:
        steps = downsample(steps, options.interval_s)
    for _, frame in _intervals(steps, options.count):
        if not math.isnan(frame.elapsed_s):
            line = report_line(frame, options.tables or UNASKED_TABLES)
            yield dump_json(line, compact=True)


def _noting(steps: Iterable[Step], peaks: AveragePeaks) -> Iterator[Step]:
    """Collect the peaks of steps before they are merged: the peak of a longer interval is another figure."""
    for step in steps:
        peaks.add(derive(step.previous, step.current))
        yield step


def _intervals(steps: Iterable[Step], count: int | None) -> Iterator[tuple[Step, Frame]]:
    """Derive steps until `count` intervals have passed."""
    left = count
    for step in steps:
        frame = derive(step.previous, step.current)
        yield step, frame
        if left is not None and not math.isnan(frame.elapsed_s):
            left -= 1
        if left == 0:
            return
