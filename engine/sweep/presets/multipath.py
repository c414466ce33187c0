"""Queue depth x path policy x direction on a LUN, as HP measured them with diskbench on HP-UX 11i v3 (2007)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.job.choices import PathPolicy
from engine.job.spec import Access, JobSpec
from engine.replacing import replace
from engine.sweep.presets.figures import BLOCK, CPU_PER_GB, DEPTH, DETAIL, DIRECTION, IOPS, PEAK_MS
from engine.sweep.presets.preset import HostSize, Preset, PresetPart
from engine.sweep.presets.table import Cell, Pivot, PresetPoint, StudyColumn, StudyFigure, StudyTable, list_table

_OFF = "multipath off"
_PUBLISHED = {
    ("read", _OFF): ("read, multipath off", "251,000", "297,000", "304,000", "304,000"),
    ("read", "round-robin"): ("read, round-robin", "294,000", "299,000", "302,000", "302,000"),
    ("read", "least-command-load"): ("read, least-command-load", "290,000", "301,000", "304,000", "302,000"),
    ("write", _OFF): ("write, multipath off", "211,000", "278,000", "295,000", "284,000"),
    ("write", "round-robin"): ("write, round-robin", "280,000", "298,000", "296,000", "296,000"),
    ("write", "least-command-load"): ("write, least-command-load", "279,000", "296,000", "290,000", "288,000"),
}
_BLOCK = "1k"
_HEADS = ("1 KiB IOPS", "QD 4", "QD 8", "QD 16", "QD 32")
_ROWS = tuple(_PUBLISHED.values())


def _policy(point: PresetPoint) -> str:
    """Name the policy as the study does: all I/Os on one path is multipath off."""
    policy = point.knobs.policy
    return _OFF if policy is PathPolicy.PREFERRED_PATH else policy.value


_POLICY = StudyFigure(StudyColumn("policy", "policy"), _policy)


def _published(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    direction, policy, block = map(str, cells[:3])
    return _PUBLISHED.get((direction, policy), ()) if block == _BLOCK else ()


def _parts(job: JobSpec, _host: HostSize) -> tuple[PresetPart, ...]:
    axes = (f"bs={_BLOCK}", "read_pct=100,0", "policy=preferred-path,round-robin,least-command-load", "qd=4,8,16,32")
    return (PresetPart("", replace(job, access=Access.RANDOM), axes),)


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    down = (DIRECTION, _POLICY, BLOCK)
    iops = Pivot("IOPS by queue depth of the LUN", down, DEPTH, (IOPS,), _HEADS, _published, _ROWS)
    cost = Pivot("average peak latency and host CPU", down, DEPTH, (PEAK_MS, CPU_PER_GB))
    every = list_table("every point", (DIRECTION, _POLICY, BLOCK, DEPTH, *DETAIL), points)
    return iops.table(points), cost.table(points), every


def _refusal(job: JobSpec) -> str:
    if any(len(target.paths) > 1 for target in job.targets):
        return ""
    return "its targets have one path each: name the paths of a LUN, such as --lun sda,sdb"


def _remarks(_job: JobSpec, _host: HostSize) -> tuple[str, ...]:
    return ("the queue depth is of the LUN over all its paths; the study's is of each path, under 32 processes",)


MULTIPATH = Preset(
    name="multipath",
    title="queue depth x path policy x direction on --lun",
    source="HP-UX 11i v3 mass storage, 2007; diskbench, 32 processes per LUN, 2 paths",
    parts=_parts,
    tables=_tables,
    published=(
        "throughput over 4 ports with round-robin: about 3.6x one port; 2 ports: slightly over 2x IOPS",
        "cell-local round-robin on a 4-cell server: 2.1x the former release, a good part by other kernel work",
        "least-command-load wins with mixed I/O sizes or unequal paths, and costs CPU below 8K",
        "the default queue depth of a LUN path is 8",
    ),
    remarks=_remarks,
    refusal=_refusal,
)
