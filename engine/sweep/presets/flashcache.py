"""A load before and after a command that turns a cache on, as in IBM AIX 7.2 flash cache with NDISK64 (2017)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from engine.job.spec import Access, JobSpec
from engine.replacing import replace
from engine.sweep.presets.figures import BLOCK, CACHE_HIT, DETAIL, IOPS, MB_PER_S, MEAN_MS, PEAK_MS, THREADS
from engine.sweep.presets.preset import AGAIN, HostSize, Preset, PresetPart
from engine.sweep.presets.table import Cell, PresetPoint, StudyColumn, StudyFigure, StudyRow, StudyTable, list_table

_BEFORE, _AFTER = "before", "after"
_PART = StudyFigure(StudyColumn("part", "part"), lambda point: point.part)
_HIGHEST = ("highest of all threads", "2.7x IOPS, 2.5x MB/s with the cache on")
_VALUES = (IOPS, MB_PER_S, MEAN_MS, PEAK_MS)
_NO_DRIFT = 0.05
"""A difference that `compare` takes for none is no drift either, however certain it is."""
_VERDICT = StudyColumn("verdict", "")


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    axes = ("bs=4k", "read_pct=70", "qd=1,4,8,24,48,96,128,256")
    # The study's threads, one I/O each, share all devices; its localities of equal shares are uniform.
    job = replace(job, access=Access.RANDOM, total_queue_depth=True)
    return PresetPart(_BEFORE, job, axes), PresetPart(_AFTER, job, axes)


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    before, after, again = (_by_case(points, name) for name in (_BEFORE, _AFTER, AGAIN))
    parts = (_BEFORE, _AFTER, *((AGAIN,) if again else ()))
    compared = [
        _Compared(point, after[case], again.get(case), bool(again)) for case, point in before.items() if case in after
    ]
    rows = [StudyRow((THREADS.of(each.before), BLOCK.of(each.before), *each.cells)) for each in compared]
    if compared:
        rows.append(StudyRow(("highest", "", *_highest(before, after, again)), _HIGHEST))
    columns = (
        THREADS.column,
        BLOCK.column,
        *(column for value in _VALUES for column in _columns(value.column, parts)),
        *_columns(CACHE_HIT.column, parts[:2])[:2],
        *((_VERDICT,) if again else ()),
    )
    change = StudyTable("before and after the command", columns, tuple(rows), ("case", "result"), (_HIGHEST,))
    return change, list_table("every point", (_PART, THREADS, BLOCK, *DETAIL, CACHE_HIT), points)


def _by_case(points: Sequence[PresetPoint], part: str) -> Mapping[object, PresetPoint]:
    return {point.case: point for point in points if point.part == part}


def _columns(value: StudyColumn, parts: Sequence[str]) -> tuple[StudyColumn, ...]:
    names = (*((part, value.digits) for part in parts), ("times", 2))
    return tuple(StudyColumn(f"{value.key}_{name}", f"{value.title} {name}", digits) for name, digits in names)


class _Compared(Struct, frozen=True):
    """The measurements of one load."""

    before: PresetPoint
    after: PresetPoint
    again: PresetPoint | None
    is_back: bool
    """Whether any load was measured again after the command that turns the cache off."""

    @property
    def verdict(self) -> str:
        """Say why the ratio of after to before says nothing; empty if it does, or nothing was measured again."""
        return _drift(self.before, self.again) if self.is_back else ""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Cells of all values, and the verdict."""
        known, verdict = [self.before, self.after, self.again], self.verdict
        cells = [
            cell
            for value in _VALUES
            for cell in _with_ratio([value.of(each) if each else None for each in known], verdict, is_back=self.is_back)
        ]
        return *cells, CACHE_HIT.of(self.before), CACHE_HIT.of(self.after), *((verdict,) if self.is_back else ())


def _drift(before: PresetPoint, again: PresetPoint | None) -> str:
    """Say how far apart the two measurements without the cache are, where that is more than noise and than 5 %.

    The noise of a difference is the root of the sum of squares of both half-widths.
    """
    if again is None:
        return "undecided: not measured again"
    first, last = before.trial, again.trial
    if not (first.ios and last.ios) or max(first.half_width, last.half_width) >= 1:
        return "undecided: too few I/Os to tell whether it drifts"
    apart = abs(last.iops - first.iops)
    noise = math.hypot(first.half_width * first.iops, last.half_width * last.iops)
    if apart <= max(noise, _NO_DRIFT * first.iops):
        return ""
    return f"undecided: again {100 * (last.iops / first.iops - 1):+.0f} % IOPS"


def _with_ratio(cells: Sequence[Cell], verdict: str, *, is_back: bool) -> tuple[Cell, ...]:
    """Put the ratio of after to the mean of all measurements without the cache behind them, unless it is undecided."""
    before, after, again = cells
    shown = tuple(cells) if is_back else (before, after)
    without = [cell for cell in (before, again) if isinstance(cell, float)]
    if verdict or not isinstance(after, float) or len(without) < len(shown) - 1 or not sum(without) > 0:
        return *shown, None
    return *shown, after / (sum(without) / len(without))


def _highest(*parts: Mapping[object, PresetPoint]) -> tuple[Cell, ...]:
    """Compare the highest throughputs; latencies belong to one number of threads each."""
    is_back = bool(parts[-1])
    by_iops = [max(part.values(), key=lambda point: point.trial.iops, default=None) for part in parts]
    by_bytes = [max((point.trial.bytes_per_s for point in part.values()), default=None) for part in parts]
    verdict = _drift(by_iops[0], by_iops[-1]) if is_back and by_iops[0] is not None else ""
    iops = _with_ratio([None if each is None else each.trial.iops for each in by_iops], verdict, is_back=is_back)
    speed = _with_ratio([None if each is None else each / 1e6 for each in by_bytes], verdict, is_back=is_back)
    empty = (None,) * (len(iops) * (len(_VALUES) - 2) + 2)
    return *iops, *speed, *empty, *((verdict,) if is_back else ())


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
