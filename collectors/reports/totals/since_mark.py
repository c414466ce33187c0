"""Totals of disks, paths, ports and the host of a recording since a note or mark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from msgspec import Struct

from collectors.model import Sample, Topology
from collectors.paths.groups import lun_name, target_name
from collectors.reports.totals.level import (
    WHOLE_HOST,
    CountLevel,
    CountSubject,
    LevelTotals,
    find_mark,
    largest_latency_ns,
    level_totals,
)
from collectors.sampling.schedule import SECOND_NS
from collectors.session.reader import SessionReader
from collectors.session.time_format import iso_time
from collectors.topology.ports import natural
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.text import safe_text

SCHEMA = "lunscope.totals/1"
_TABLES = ("disks", "paths", "hbas", "target_ports", "whole_host")
_COLUMNS = ("reads", "writes", "read MB", "written MB", "errors", "timeouts", "retries", "failovers", "max ms")


class TotalsReport(Struct, frozen=True):
    """Totals of all subjects since one mark, to the end of the recording."""

    mark: Event
    end_ns: int
    rows: tuple[tuple[CountSubject, LevelTotals], ...]


def totals_since(reader: SessionReader, mark_name: str, tables: Sequence[str], *, every: bool) -> TotalsReport:
    """Add up a recording since a mark.

    Args:
        reader: the recording.
        mark_name: text of a note, name of what was cleared, or `last`.
        tables: of disks, paths and ports; the host is always the last row.
        every: also those without I/O.

    Raises:
        UsageError: there is no such mark, or a table has no totals.
        LunscopeError: no sample can be read.
    """
    _check("--since-mark", tables)
    mark = find_mark(reader.events(), mark_name)
    first, last = reader.index_at(mark.time_ns), len(reader) - 1
    base, now = (reader.sample_at(index) if last >= 0 else None for index in (first, last))
    if base is None or now is None:
        raise UsageError(f"{reader.path}: the sample at the mark or the last one cannot be read")
    subjects = _all_subjects(tables, now.topology)
    peaks = _largest(reader, first + 1, last, subjects)
    rows = [(one, level_totals(base, now, one, peak)) for one, peak in zip(subjects, peaks, strict=True)]
    return TotalsReport(mark, now.time_ns, tuple(row for row in rows if every or _did_anything(row[1])))


def totals_up_to(reader: SessionReader, now: Sample, tables: Sequence[str], *, every: bool) -> TotalsReport:
    """Add up what this host did from the last sample of a recording of it up to a sample of now.

    Args:
        reader: the recording.
        now: sample of this host.
        tables: as of `totals_since`.
        every: also those without I/O.

    Raises:
        UsageError: it is of another host or boot, whose counters are others, or a table has no totals.
        LunscopeError: its last sample cannot be read.
    """
    _check("--since", tables)
    base = reader.sample_at(len(reader) - 1) if len(reader) else None
    if base is None:
        raise UsageError(f"{reader.path}: its last sample cannot be read")
    boot = base.topology.host.boot_id
    if not boot or boot != now.topology.host.boot_id:
        raise UsageError(f"{reader.path}: of another host or boot, whose counters began anew: record it again")
    rows = [(one, level_totals(base, now, one, None)) for one in _all_subjects(tables, now.topology)]
    mark = Event(EventKind.NOTE, f"the end of {reader.path.name}", base.time_ns, base.monotonic_ns, {})
    return TotalsReport(mark, now.time_ns, tuple(row for row in rows if every or _did_anything(row[1])))


def _check(option: str, tables: Sequence[str]) -> None:
    other = [table for table in tables if table not in _TABLES]
    if other:
        raise UsageError(f"{option} adds up disks, paths and ports; {other[0]} have no totals")


def _all_subjects(tables: Sequence[str], topology: Topology) -> list[CountSubject]:
    return [*(subject for table in tables for subject in _subjects(table, topology)), WHOLE_HOST]


def _largest(reader: SessionReader, first: int, last: int, subjects: Sequence[CountSubject]) -> list[int | None]:
    """Find the largest latency of each subject over a range of samples, reading each sample once."""
    peaks: list[int | None] = [None] * len(subjects)
    for step in reader.steps(first, last):
        for position, subject in enumerate(subjects):
            found = (largest_latency_ns((step.current,), subject), peaks[position])
            peaks[position] = max((peak for peak in found if peak is not None), default=None)
    return peaks


def _did_anything(totals: LevelTotals) -> bool:
    return any((totals.reads, totals.writes, totals.errors, totals.timeouts, totals.retries, totals.failovers))


def _subjects(table: str, topology: Topology) -> Iterator[CountSubject]:
    graph = topology.graph
    if table == "hbas":
        for port in graph.ports:
            yield CountSubject(CountLevel.PORT, port.key, safe_text(port.name))
    elif table == "target_ports":
        for target in graph.targets:
            yield CountSubject(CountLevel.TARGET, target.key, target_name(target))
    elif table == "paths":
        for path in sorted(graph.paths, key=lambda path: natural(path.name)):
            yield CountSubject(CountLevel.PATH, path.key, safe_text(path.name))
    elif table == "disks":
        for lun in sorted(graph.luns, key=lambda lun: natural(lun.name)):
            level = CountLevel.LUN if lun.multipath else CountLevel.DISK
            yield CountSubject(level, lun.key, lun_name(lun.key, topology))


def totals_lines(report: TotalsReport) -> Iterator[str]:
    """Yield a table of the totals."""
    seconds = (report.end_ns - report.mark.time_ns) / SECOND_NS
    yield f"since '{safe_text(report.mark.text)}', {iso_time(report.mark.time_ns)}: {seconds:.1f} s"
    if not report.rows:
        yield "no I/O and no errors since (--all shows all)"
        return
    cells = [("", *_COLUMNS), *((subject.words, *_cells(totals)) for subject, totals in report.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for name, *figures in cells:
        aligned = (figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        yield "  ".join((name.ljust(widths[0]), *aligned))


def _cells(totals: LevelTotals) -> Iterator[str]:
    for count in (totals.reads, totals.writes):
        yield "-" if count is None else str(count)
    for size in (totals.read_bytes, totals.write_bytes):
        yield "-" if size is None else f"{size / 1e6:.1f}"
    for count in (totals.errors, totals.timeouts, totals.retries, totals.failovers):
        yield "-" if count is None else str(count)
    latency = totals.max_latency_ns
    yield "-" if latency is None else f"{latency / 1e6:.3f}"


def totals_document(report: TotalsReport) -> dict[str, object]:
    """Convert the totals; missing ones are null."""
    return {
        "schema": SCHEMA,
        "mark": safe_text(report.mark.text),
        "mark_time": iso_time(report.mark.time_ns),
        "time": iso_time(report.end_ns),
        "rows": [
            {"level": str(subject.level), "name": subject.name, "key": safe_text(subject.key), **_plain(totals)}
            for subject, totals in report.rows
        ],
    }


def _plain(totals: LevelTotals) -> dict[str, object]:
    plain = asdict(totals)
    del plain["since_ns"]
    return {**plain, "elapsed_s": round(totals.elapsed_s, 6) if math.isfinite(totals.elapsed_s) else None}
