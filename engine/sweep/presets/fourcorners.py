"""64 KiB sequential and 8 KiB random, from all writes to all reads, over disks and hosts (fio, Azure NetApp Files)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from msgspec import Struct

from engine.job.spec import Access, JobSpec
from engine.replacing import replace
from engine.sweep.presets.figures import BLOCK, DEPTH, DISKS, FLOWS, HOSTS, IOPS, MIB_PER_S, PEAK_MS, READ_PCT
from engine.sweep.presets.preset import HostSize, Preset, PresetPart, disks_of, doubled, one_target
from engine.sweep.presets.table import Cell, Pivot, PresetPoint, StudyColumn, StudyFigure, StudyRow, StudyTable

_RANDOM_BLOCK = "8k"
_RANDOM, _SEQUENTIAL = "random", "sequential"
_DISKS_OF_A_HOST = 4
"""Scratch files of each host where no target is named: the study recommends at least as many datastores."""
_PUBLISHED: Mapping[tuple[Cell, ...], tuple[str, str]] = {
    (1.0,): ("1 VM, 1 disk", "73,040 IOPS 8K average over the mix"),
    (2.0,): ("1 VM, 2 disks", "128,420 IOPS (+75.8 %)"),
    (8.0,): ("1 VM, up to 8", "147,000 IOPS peak (100 % random read), 2,786 MiB/s 64K"),
}
_PUBLISHED_OF_HOSTS: Mapping[tuple[Cell, ...], tuple[str, str]] = {
    (1.0, 1.0): ("1 host, 1 datastore", "~76,000 IOPS 8K"),
    (1.0, 2.0): ("1 host, 2 datastores", "+76 %"),
    (1.0, 4.0): (
        "1 host, 4 datastores",
        "+163 %; beyond 8 diminishing; with 4 VMs 198,060 IOPS 8K or 2,351 MiB/s 64K average over the mix",
    ),
    (4.0, 1.0): (
        "4 hosts, 1 datastore",
        "195,000 IOPS 8K; > 5,000 MiB/s 64K (+135 % over one host); 148,980 IOPS or 4,147 MiB/s average over the mix",
    ),
    (4.0, 4.0): (
        "4 hosts, 4 datastores",
        "> 530,000 IOPS 8K; > 10,500 MiB/s 64K; over 585,000 IOPS at most",
    ),
}
_AVERAGE = StudyColumn("random_average_iops", "random IOPS, average over the mix")
_PER_FLOW = StudyColumn("random_average_iops_per_flow", "of each")
_RESULTS = (
    StudyColumn("gain_pct", "gain %", 1),
    StudyColumn("random_highest_iops", "highest"),
    StudyColumn("sequential_highest_mebibytes_per_s", "sequential MiB/s, highest", 1),
)


class _ScaleStudy(Struct, frozen=True):
    """What the study scales, and what it published of it."""

    title: str
    sizes: tuple[StudyFigure, ...]
    published: Mapping[tuple[Cell, ...], tuple[str, str]]
    flows: StudyFigure | None = None
    """Figure by which the average is divided; None: it is not."""

    def tables(self, points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
        """Average over the mix by size, then each share of reads."""
        # The mix is not the load axis; in order of the mix the columns rise.
        points = sorted(points, key=lambda point: (*self._size(point), point.knobs.read_pct))
        parts = {name: [point for point in points if point.part == name] for name in (_SEQUENTIAL, _RANDOM)}
        pivots = (
            self._by_mix("sequential, MiB/s by share of reads", MIB_PER_S).table(parts[_SEQUENTIAL]),
            self._by_mix("random, IOPS by share of reads", IOPS).table(parts[_RANDOM]),
        )
        return (self._averages(parts[_RANDOM], parts[_SEQUENTIAL]), *pivots)

    def _size(self, point: PresetPoint) -> tuple[float, ...]:
        return tuple(float(figure.of(point) or 0) for figure in self.sizes)

    def _by_mix(self, title: str, value: StudyFigure) -> Pivot:
        return Pivot(title, (*self.sizes, DEPTH, BLOCK), READ_PCT, (value, PEAK_MS))

    def _averages(self, random: Sequence[PresetPoint], sequential: Sequence[PresetPoint]) -> StudyTable:
        """Average the mix for each size, as the study does; gains are over the smallest."""
        groups: dict[tuple[tuple[float, ...], int, Cell], list[PresetPoint]] = {}
        for point in random:
            groups.setdefault((self._size(point), point.knobs.queue_depth, BLOCK.of(point)), []).append(point)
        first = dict[tuple[int, Cell], float]()
        rows = []
        for (size, depth, block), points in sorted(groups.items(), key=lambda group: group[0][:2]):
            iops = [point.trial.iops for point in points]
            average = statistics.fmean(iops)
            gain = average / first.setdefault((depth, block), average) - 1 if average else 0.0
            fastest = [point for point in sequential if self._size(point) == size and _depth(point) == depth]
            speed = max((point.trial.bytes_per_s / (1 << 20) for point in fastest), default=None)
            flows = () if self.flows is None else (float(self.flows.of(points[0]) or 1),)
            cells: tuple[Cell, ...] = (*size, *flows, float(depth), block, average)
            cells += (*(average / count for count in flows), 100 * gain, max(iops), speed)
            rows.append(StudyRow(cells, self.published.get(size, ()) if block == _RANDOM_BLOCK else ()))
        return StudyTable(self.title, self._columns, tuple(rows), ("case", "result"), tuple(self.published.values()))

    @property
    def _columns(self) -> tuple[StudyColumn, ...]:
        flows = () if self.flows is None else (self.flows.column,)
        each = () if self.flows is None else (_PER_FLOW,)
        sizes = tuple(figure.column for figure in self.sizes)
        return (*sizes, *flows, DEPTH.column, BLOCK.column, _AVERAGE, *each, *_RESULTS)


def _depth(point: PresetPoint) -> int:
    return point.knobs.queue_depth


def _parts_over(job: JobSpec, *sizes: str) -> tuple[PresetPart, ...]:
    common = (*sizes, "qd=16", "read_pct=0,25,50,75,100")
    return (
        PresetPart(_SEQUENTIAL, replace(job, access=Access.SEQUENTIAL), ("bs=64k", *common)),
        PresetPart(_RANDOM, replace(job, access=Access.RANDOM), (f"bs={_RANDOM_BLOCK}", *common)),
    )


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    return _parts_over(job, f"stripe_width={doubled(min(len(job.targets), 8))}")


def fourcorners_over(hosts: int) -> Preset:
    """Make the study over the hosts of a fleet and the targets of each of them."""

    def parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
        widths = doubled(min(len(job.targets), 8))
        return _parts_over(job, f"hosts={doubled(hosts)}", f"stripe_width={widths}")

    return replace(
        FOURCORNERS,
        title="64k sequential and 8k random x share of reads x number of hosts x disks of each",
        parts=parts,
        tables=_ScaleStudy("scale over hosts and disks", (HOSTS, DISKS), _PUBLISHED_OF_HOSTS, FLOWS).tables,
        published=("one network flow (a TCP connection per host and datastore) is the usual limit",),
        scratch_targets=lambda _host: _DISKS_OF_A_HOST,
    )


FOURCORNERS = Preset(
    name="fourcorners",
    title="64k sequential and 8k random x share of reads x number of disks",
    source="Azure NetApp Files datastores for Azure VMware Solution; fio 3.16, NFSv3",
    parts=_parts,
    tables=_ScaleStudy("scale over disks", (DISKS,), _PUBLISHED).tables,
    published=(
        "1 host, 1 datastore, 1 VM -> 4 VMs x 4 disks: +3 % to +16 % IOPS; 2,148 -> 2,138 MiB/s",
        "1 host, 1 -> 2 -> 4 datastores: ~76,000 IOPS, +76 %, +163 %; beyond 8 diminishing",
        "4 hosts, 1 datastore: 195,000 IOPS 8K; > 5,000 MiB/s 64K (+135 % over one host)",
        "4 hosts, 4 datastores: > 530,000 IOPS 8K; > 10,500 MiB/s 64K",
        "averages over the mix, 8K or 64K: 4 hosts, 1 datastore 148,980 IOPS or 4,147 MiB/s; "
        "1 host, 4 VMs, 4 datastores 198,060 IOPS or 2,351 MiB/s; at most over 585,000 IOPS and 10,500 MiB/s",
        "more than ~75,000 IOPS or ~1,700 MiB/s of one VM: spread over several disks",
        "one network flow (a TCP connection per host and datastore) is the usual limit",
    ),
    scratch_targets=disks_of,
    remarks=one_target,
)
