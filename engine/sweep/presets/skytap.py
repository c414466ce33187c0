"""Block size, queue depth and number of disks, as Skytap measured them on IBM Power with NDISK64 (2024)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.job.spec import Access, JobSpec
from engine.replacing import replace
from engine.sweep.presets.figures import (
    BLOCK,
    CHECK,
    CONTROLLERS,
    CPU_PER_GB,
    DEPTH,
    DETAIL,
    DISKS,
    IOPS,
    MB_PER_S,
    PEAK_MS,
)
from engine.sweep.presets.preset import HostSize, Preset, PresetPart, disks_of, doubled, one_target
from engine.sweep.presets.table import Cell, PresetPoint, StudyRow, StudyTable, list_table
from engine.sweep.setting_axis import targets_by_port

_PUBLISHED = {
    "4k": ("4k", "2/32", "10", "130,800", "536", "1.18"),
    "8k": ("8k", "6/80", "10", "116,000", "950", "1.36"),
    "16k": ("16k", "6/80", "10", "63,500", "1,040", "1.98"),
    "64k": ("64k", "6/80", "10", "26,400", "1,730", "3.2"),
}
_HEADS = ("block", "controllers/disks", "QD", "IOPS", "MB/s", "avg peak ms")


_BLOCKS = "bs=4k,8k,16k,64k"


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    job = replace(job, access=Access.RANDOM)
    axes = (_BLOCKS, f"stripe_width={doubled(len(job.targets))}", "qd=3,8,10,12,32", "read_pct=80")
    disks, count = _alike(job)
    if count < 2:
        return (PresetPart("", job, axes),)
    scaled = (_BLOCKS, f"controllers={doubled(count)}", f"stripe_width={disks}", "qd=10", "read_pct=80")
    return PresetPart("", job, axes), PresetPart("controllers", job, scaled)


def _alike(job: JobSpec) -> tuple[int, int]:
    """Choose a number of disks that each controller has, and the most controllers that as many can be spread over."""
    targets = targets_by_port(job)
    fewest = min(map(len, targets.values()), default=0)
    return fewest, min(fewest, len(targets))


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    best = list_table(
        "", (BLOCK, CONTROLLERS, DISKS, DEPTH, IOPS, MB_PER_S, CHECK, PEAK_MS, CPU_PER_GB), _best_by_block(points)
    )
    rows = tuple(StudyRow(row.cells, _published(row.cells[0])) for row in best.rows)
    title = "best balance of throughput and latency by block size (IOPS / average peak latency)"
    every = list_table("every point", (BLOCK, CONTROLLERS, DISKS, DEPTH, *DETAIL), points)
    return StudyTable(title, best.columns, rows, _HEADS, tuple(_PUBLISHED.values())), every


def _best_by_block(points: Sequence[PresetPoint]) -> list[PresetPoint]:
    """Choose by the average peak latency, as the study does; points without a whole second have none."""
    by_block: dict[Cell, list[tuple[float, PresetPoint]]] = {}
    for point in points:
        peak_ms = PEAK_MS.of(point)
        if isinstance(peak_ms, float) and peak_ms > 0:
            by_block.setdefault(BLOCK.of(point), []).append((point.trial.iops / peak_ms, point))
    return [max(each, key=lambda pair: pair[0])[1] for each in by_block.values()]


def _published(block: Cell) -> tuple[str, ...]:
    return _PUBLISHED.get(str(block), ())


def _remarks(job: JobSpec, host: HostSize) -> tuple[str, ...]:
    few = "the number of controllers does not vary: it takes two or more, each with two targets of one path or more"
    return (*one_target(job, host), *(() if _alike(job)[1] > 1 or len(job.targets) < 2 else (few,)))


SKYTAP = Preset(
    name="skytap",
    title="block size x number of disks x queue depth, and x controllers, 80 % read",
    source="Skytap on Azure, IBM Power LPARs, 2024; NDISK64 on AIX",
    parts=_parts,
    tables=_tables,
    published=(
        "QD 10 per disk is best throughout, 8 to 12 good; the same QD on every disk",
        "more disks help only if the load is spread over them",
        "best throughput with 6 controllers and 192 disks, at higher latency",
    ),
    scratch_targets=disks_of,
    remarks=_remarks,
)
