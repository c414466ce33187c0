"""Path queues x policy x direction on a LUN, and HBA ports, as HP measured with diskbench on HP-UX 11i v3 (2007)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.hostfs.hba_ports import takes_queue_depth
from engine.job.choices import PathPolicy
from engine.job.spec import Access, Backend, JobSpec
from engine.replacing import replace
from engine.sweep.presets.figures import BLOCK, CPU_PER_GB, DEPTH, DETAIL, DIRECTION, IOPS, MB_PER_S, PEAK_MS
from engine.sweep.presets.preset import HostSize, Preset, PresetPart, doubled
from engine.sweep.presets.table import (
    Cell,
    Pivot,
    PresetPoint,
    StudyColumn,
    StudyFigure,
    StudyRow,
    StudyTable,
    list_table,
)
from engine.sweep.setting_axis import several_ports

_OFF = "multipath off"
_PUBLISHED = {
    ("read", _OFF): ("read, multipath off", "251,000", "297,000", "304,000", "304,000"),
    ("read", "round-robin"): ("read, round-robin", "294,000", "299,000", "302,000", "302,000"),
    ("read", "least-command-load"): ("read, least-command-load", "290,000", "301,000", "304,000", "302,000"),
    ("write", _OFF): ("write, multipath off", "211,000", "278,000", "295,000", "284,000"),
    ("write", "round-robin"): ("write, round-robin", "280,000", "298,000", "296,000", "296,000"),
    ("write", "least-command-load"): ("write, least-command-load", "279,000", "296,000", "290,000", "288,000"),
}
_BLOCK, _LARGE_BLOCK = "1k", "64k"
_HEADS = ("1 KiB IOPS", "QD 4", "QD 8", "QD 16", "QD 32")
_ROWS = tuple(_PUBLISHED.values())
_PROCESSES = 32
"""The study had so many, each with an I/O outstanding."""
_PATH_DEPTH = "tune.queue_depth"
_PORTS, _PATHS = "ports", "paths"
_CHARTS = {
    (_LARGE_BLOCK, 4.0): ("chart 1, 4 ports, round-robin", "about 3.6x the throughput of one"),
    (_BLOCK, 2.0): ("chart 2, 2 ports, round-robin", "slightly over 2x the IOPS of one"),
}
_TIMES = StudyColumn("times_one", "x one", 2)


def _policy(point: PresetPoint) -> str:
    """Name the policy as the study does: all I/Os on one path is multipath off."""
    policy = point.knobs.policy
    return _OFF if policy is PathPolicy.PREFERRED_PATH else policy.value


def _depth(point: PresetPoint) -> Cell:
    depth = point.setting(_PATH_DEPTH)
    return DEPTH.of(point) if depth is None else depth


_POLICY = StudyFigure(StudyColumn("policy", "policy"), _policy)
_DEPTH = StudyFigure(DEPTH.column, _depth)


def _published(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    direction, policy, block = map(str, cells[:3])
    return _PUBLISHED.get((direction, policy), ()) if block == _BLOCK else ()


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    job = replace(job, access=Access.RANDOM)
    if job.backend is Backend.AUTO:
        job = replace(job, backend=Backend.THREADS)
    axes = (f"bs={_BLOCK}", "read_pct=100,0", "policy=preferred-path,round-robin,least-command-load")
    depths: tuple[str, ...] = ("qd=4,8,16,32",)
    if _has_path_depths(job):
        depths = (f"{_PATH_DEPTH}=4,8,16,32", f"qd={_PROCESSES}")
    ways = f"{_PORTS}={doubled(len(several_ports(job)))}" if several_ports(job) else f"{_PATHS}={doubled(_paths(job))}"
    scaled = (f"bs={_BLOCK},{_LARGE_BLOCK}", "read_pct=100,0", "policy=round-robin", ways, f"qd={_PROCESSES}")
    return PresetPart("", job, (*axes, *depths)), PresetPart(_PORTS, job, scaled)


def _has_path_depths(job: JobSpec) -> bool:
    """Whether every path has a queue whose depth may be set."""
    nodes = [node for target in job.targets for node in target.nodes]
    return bool(nodes) and all(map(takes_queue_depth, nodes))


def _paths(job: JobSpec) -> int:
    """Paths that each LUN has."""
    return min((len(target.paths) for target in job.targets if len(target.paths) > 1), default=1)


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    scaled = [point for point in points if point.part == _PORTS]
    depths = [point for point in points if point.part != _PORTS]
    down = (DIRECTION, _POLICY, BLOCK)
    iops = Pivot("IOPS by queue depth", down, _DEPTH, (IOPS,), _HEADS, _published, _ROWS)
    cost = Pivot("average peak latency and host CPU", down, _DEPTH, (PEAK_MS, CPU_PER_GB))
    every = list_table("every point", (DIRECTION, _POLICY, BLOCK, _DEPTH, *DETAIL), depths)
    return iops.table(depths), cost.table(depths), _scale(scaled), every


def _scale(points: Sequence[PresetPoint]) -> StudyTable:
    """Compare numbers of HBA ports, or of paths where these are all through one, with one of them."""
    kind = _PORTS if any(point.setting(_PORTS) for point in points) else _PATHS
    ways = StudyFigure(StudyColumn(kind, kind), lambda point: point.setting(kind))
    figures = (DIRECTION, BLOCK, ways, IOPS, MB_PER_S, PEAK_MS)
    ones = {(point.knobs): point.trial.iops for point in points if point.setting(kind) == 1}
    rows = []
    for row, point in zip(list_table("", figures, points).rows, points, strict=True):
        one = ones.get(point.knobs)
        published = _CHARTS.get((str(row.cells[1]), float(row.cells[2] or 0)), ()) if kind == _PORTS else ()
        rows.append(StudyRow((*row.cells, point.trial.iops / one if one else None), published))
    columns = (*(figure.column for figure in figures), _TIMES)
    title = f"throughput by number of {'HBA ports' if kind == _PORTS else 'paths'}, {_PROCESSES} outstanding"
    return StudyTable(title, columns, tuple(rows), ("case", "result"), tuple(_CHARTS.values()))


def _refusal(job: JobSpec) -> str:
    if any(len(target.paths) > 1 for target in job.targets):
        return ""
    return "its targets have one path each: name the paths of a LUN, such as --lun sda,sdb"


def _remarks(job: JobSpec, _host: HostSize) -> tuple[str, ...]:
    remarks = []
    if not _has_path_depths(job):
        remarks.append(
            "the queue depth is of the LUN over all its paths, as theirs (tune.queue_depth) cannot be set here; "
            "the study's is of each path, under 32 processes"
        )
    if not several_ports(job):
        remarks.append("the paths are not known to go through several HBA ports: the number of paths varies instead")
    return tuple(remarks)


MULTIPATH = Preset(
    name="multipath",
    title="queue depth of the paths x policy x direction on --lun, and number of HBA ports",
    source="HP-UX 11i v3 mass storage, 2007; diskbench, 32 processes per LUN, 2 paths",
    parts=_parts,
    tables=_tables,
    published=(
        "cell-local round-robin on a 4-cell server: 2.1x the former release, a good part by other kernel work",
        "least-command-load wins with mixed I/O sizes or unequal paths, and costs CPU below 8K",
        "the default queue depth of a LUN path is 8",
    ),
    remarks=_remarks,
    refusal=_refusal,
    tunables=(_PATH_DEPTH,),
)
