"""A load before and after a command that turns a cache on, as in IBM AIX 7.2 flash cache with NDISK64 (2017)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.job.spec import Access, JobSpec
from engine.replacing import replace
from engine.sweep.presets.figures import BLOCK, CACHE_HIT, DETAIL, IOPS, MB_PER_S, MEAN_MS, PEAK_MS, THREADS
from engine.sweep.presets.preset import HostSize, Preset, PresetPart
from engine.sweep.presets.table import Cell, PresetPoint, StudyColumn, StudyFigure, StudyRow, StudyTable, list_table

_BEFORE, _AFTER = "before", "after"
_PART = StudyFigure(StudyColumn("part", "part"), lambda point: point.part)
_HIGHEST = ("highest of all threads", "2.7x IOPS, 2.5x MB/s with the cache on")
_VALUES = (IOPS, MB_PER_S, MEAN_MS, PEAK_MS)


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    axes = ("bs=4k", "read_pct=70", "qd=1,4,8,24,48,96,128,256")
    # The study's threads, one I/O each, share all devices; its localities of equal shares are uniform.
    job = replace(job, access=Access.RANDOM, total_queue_depth=True)
    return PresetPart(_BEFORE, job, axes), PresetPart(_AFTER, job, axes)


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    before, after = ([point for point in points if point.part == name] for name in (_BEFORE, _AFTER))
    by_case = {point.case: point for point in after}
    pairs = [(point, by_case[point.case]) for point in before if point.case in by_case]
    rows = [StudyRow((*_case(first), *_pair(first, second))) for first, second in pairs]
    if pairs:
        rows.append(StudyRow(("highest", "", *_highest(before, after)), _HIGHEST))
    columns = (
        THREADS.column,
        BLOCK.column,
        *(column for value in _VALUES for column in _columns(value.column)),
        *_columns(CACHE_HIT.column)[:2],
    )
    change = StudyTable("before and after the command", columns, tuple(rows), ("case", "result"), (_HIGHEST,))
    return change, list_table("every point", (_PART, THREADS, BLOCK, *DETAIL, CACHE_HIT), points)


def _case(point: PresetPoint) -> tuple[Cell, ...]:
    return THREADS.of(point), BLOCK.of(point)


def _columns(value: StudyColumn) -> tuple[StudyColumn, ...]:
    names = ((_BEFORE, value.digits), (_AFTER, value.digits), ("times", 2))
    return tuple(StudyColumn(f"{value.key}_{name}", f"{value.title} {name}", digits) for name, digits in names)


def _pair(first: PresetPoint, second: PresetPoint) -> tuple[Cell, ...]:
    pairs = (cell for value in _VALUES for cell in _times(value.of(first), value.of(second)))
    return (*pairs, CACHE_HIT.of(first), CACHE_HIT.of(second))


def _highest(before: Sequence[PresetPoint], after: Sequence[PresetPoint]) -> tuple[Cell, ...]:
    """Compare the highest throughputs; latencies belong to one number of threads each."""
    iops = _times(*(max(point.trial.iops for point in each) for each in (before, after)))
    speed = _times(*(max(point.trial.bytes_per_s / 1e6 for point in each) for each in (before, after)))
    return (*iops, *speed, *(None,) * (3 * (len(_VALUES) - 2) + 2))


def _times(first: Cell, second: Cell) -> tuple[Cell, Cell, Cell]:
    if isinstance(first, float) and isinstance(second, float) and first > 0:
        return first, second, second / first
    return first, second, None


def _refusal(job: JobSpec) -> str:
    if any(target.path is not None for target in job.targets):
        return ""
    return "a cache is in front of a device: name it with --target"


FLASHCACHE = Preset(
    name="flashcache",
    title="before and after a command that turns a cache on (--toggle) x threads, 4k random, 70 % read",
    source="IBM AIX 7.2 flash cache, 2017; NDISK64",
    parts=_parts,
    is_threads=True,
    tables=_tables,
    published=("max_transfer=0x100000 and queue_depth=256 on all SAN subsystem and cache disks",),
    remarks=lambda _job, _host: ("a cache that was just turned on still fills while the first points are measured",),
    refusal=_refusal,
    is_toggled=True,
)
