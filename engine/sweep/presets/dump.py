"""Several targets written in parallel against one, as the crash dump of HP-UX 11i v3 does."""

from __future__ import annotations

from collections.abc import Sequence

from engine.job.spec import Access, JobSpec
from engine.replacing import replace
from engine.sweep.presets.figures import BLOCK, CPU_PER_GB, DEPTH, DISKS, MB_PER_S, MEAN_MS, NOTE, PEAK_MS, SPREAD
from engine.sweep.presets.preset import HostSize, Preset, PresetPart, disks_of, doubled, one_target
from engine.sweep.presets.table import PresetPoint, StudyColumn, StudyRow, StudyTable, list_table

_BLOCK_BYTES = 1 << 20
_FIGURES = (DISKS, DEPTH, BLOCK, MB_PER_S, SPREAD, MEAN_MS, PEAK_MS, CPU_PER_GB, NOTE)
_GAIN = StudyColumn("times_one_target", "x one target", 2)
_TIME = StudyColumn("time_of_one_target", "time / one target", 2)
"""A dump has the same bytes, whatever the targets."""


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    axes = ("bs=1m", "read_pct=0", "qd=4", f"stripe_width={doubled(len(job.targets))}")
    # Each block goes to one target whole, as a dump writes it.
    return (PresetPart("", replace(job, access=Access.SEQUENTIAL, stripe_unit_bytes=_BLOCK_BYTES), axes),)


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    plain = list_table("throughput of targets written in parallel", _FIGURES, points)
    gains = [_gain(point, points) for point in points]
    rows = tuple(
        StudyRow((*row.cells, gain, 1 / gain if gain else None)) for row, gain in zip(plain.rows, gains, strict=True)
    )
    return (replace(plain, columns=(*plain.columns, _GAIN, _TIME), rows=rows),)


def _gain(point: PresetPoint, points: Sequence[PresetPoint]) -> float | None:
    """Throughput as a multiple of that of one target with the same depth."""
    one = next((each for each in points if _is_single(each, point)), None)
    if one is None or not one.trial.bytes_per_s:
        return None
    return point.trial.bytes_per_s / one.trial.bytes_per_s


def _is_single(each: PresetPoint, point: PresetPoint) -> bool:
    return each.case == (replace(point.knobs, stripe_width=1), point.settings)


DUMP = Preset(
    name="dump",
    title="targets written in parallel against one, sequential 1m blocks",
    source="HP-UX 11i v3 mass storage, 2007",
    parts=_parts,
    tables=_tables,
    published=("crash dump on several devices in parallel: less than one-quarter of the time of the former release",),
    scratch_targets=disks_of,
    remarks=one_target,
)
