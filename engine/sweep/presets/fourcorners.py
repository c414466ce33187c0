"""64 KiB sequential and 8 KiB random, from all writes to all reads, over 1 to 8 disks (fio on Azure NetApp Files)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from engine.job.spec import Access, JobSpec
from engine.sweep.presets.figures import BLOCK, DEPTH, DISKS, IOPS, MIB_PER_S, PEAK_MS, READ_PCT
from engine.sweep.presets.preset import HostSize, Preset, PresetPart, disks_of, doubled, one_target
from engine.sweep.presets.table import Cell, Pivot, PresetPoint, StudyColumn, StudyFigure, StudyRow, StudyTable

_RANDOM_BLOCK = "8k"
_RANDOM, _SEQUENTIAL = "random", "sequential"
_PUBLISHED = {
    1: ("1 VM, 1 disk", "73,040 IOPS 8K average over the mix"),
    2: ("1 VM, 2 disks", "128,420 IOPS (+75.8 %)"),
    8: ("1 VM, up to 8", "147,000 IOPS peak (100 % random read), 2,786 MiB/s 64K"),
}
_SCALE = (
    DISKS.column,
    DEPTH.column,
    BLOCK.column,
    StudyColumn("random_average_iops", "random IOPS, average over the mix"),
    StudyColumn("gain_pct", "gain %", 1),
    StudyColumn("random_highest_iops", "highest"),
    StudyColumn("sequential_highest_mebibytes_per_s", "sequential MiB/s, highest", 1),
)


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    common = (f"stripe_width={doubled(min(len(job.targets), 8))}", "qd=16", "read_pct=0,25,50,75,100")
    return (
        PresetPart(_SEQUENTIAL, replace(job, access=Access.SEQUENTIAL), ("bs=64k", *common)),
        PresetPart(_RANDOM, replace(job, access=Access.RANDOM), (f"bs={_RANDOM_BLOCK}", *common)),
    )


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    # The mix is not the load axis; in order of the mix the columns rise.
    points = sorted(points, key=lambda point: (point.knobs.stripe_width, point.knobs.read_pct))
    parts = {name: [point for point in points if point.part == name] for name in (_SEQUENTIAL, _RANDOM)}
    pivots = (
        _by_mix("sequential, MiB/s by share of reads", MIB_PER_S).table(parts[_SEQUENTIAL]),
        _by_mix("random, IOPS by share of reads", IOPS).table(parts[_RANDOM]),
    )
    return (_scale(parts[_RANDOM], parts[_SEQUENTIAL]), *pivots)


def _by_mix(title: str, value: StudyFigure) -> Pivot:
    return Pivot(title, (DISKS, DEPTH, BLOCK), READ_PCT, (value, PEAK_MS))


def _scale(random: Sequence[PresetPoint], sequential: Sequence[PresetPoint]) -> StudyTable:
    """Average the mix for each number of disks, as the study does; gains are over the fewest disks."""
    groups: dict[tuple[int, int, Cell], list[PresetPoint]] = {}
    for point in random:
        groups.setdefault((point.knobs.stripe_width, point.knobs.queue_depth, BLOCK.of(point)), []).append(point)
    first = dict[tuple[int, Cell], float]()
    rows = []
    for (width, depth, block), points in sorted(groups.items(), key=lambda group: group[0][:2]):
        iops = [point.trial.iops for point in points]
        average = statistics.fmean(iops)
        gain = average / first.setdefault((depth, block), average) - 1 if average else 0.0
        fastest = [point for point in sequential if point.knobs.stripe_width == width and _depth(point) == depth]
        speed = max((point.trial.bytes_per_s / (1 << 20) for point in fastest), default=None)
        cells: tuple[Cell, ...] = (float(width), float(depth), block, average, 100 * gain, max(iops), speed)
        rows.append(StudyRow(cells, _PUBLISHED.get(width, ()) if block == _RANDOM_BLOCK else ()))
    return StudyTable("scale over disks", _SCALE, tuple(rows), ("case", "result"), tuple(_PUBLISHED.values()))


def _depth(point: PresetPoint) -> int:
    return point.knobs.queue_depth


FOURCORNERS = Preset(
    name="fourcorners",
    title="64k sequential and 8k random x share of reads x number of disks",
    source="Azure NetApp Files datastores for Azure VMware Solution; fio 3.16, NFSv3",
    parts=_parts,
    tables=_tables,
    published=(
        "1 host, 1 datastore, 1 VM -> 4 VMs x 4 disks: +3 % to +16 % IOPS; 2,148 -> 2,138 MiB/s",
        "1 host, 1 -> 2 -> 4 datastores: ~76,000 IOPS, +76 %, +163 %; beyond 8 diminishing",
        "4 hosts, 1 datastore: 195,000 IOPS 8K; > 5,000 MiB/s 64K (+135 % over one host)",
        "4 hosts, 4 datastores: > 530,000 IOPS 8K; > 10,500 MiB/s 64K",
        "one network flow (a TCP connection per host and datastore) is the usual limit",
    ),
    scratch_targets=disks_of,
    remarks=one_target,
)
