"""Direct, buffered and sync I/O over 1 to 1000 threads, with the host CPU per GB (TSM storage pools over NFS, 2014)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.config import DEFAULT_SCRATCH_BYTES
from engine.job.sizes import format_size
from engine.job.spec import Access, Backend, JobSpec
from engine.replacing import replace
from engine.sweep.presets.figures import (
    BLOCK,
    CONNECTIONS,
    CPU_PER_GB,
    DETAIL,
    DIRECTION,
    MB_PER_S,
    MEMORY,
    MODE,
    THREADS,
)
from engine.sweep.presets.preset import HostSize, Preset, PresetPart
from engine.sweep.presets.table import Cell, Pivot, PresetPoint, StudyTable, list_table

_BLOCK_BYTES = 1 << 20
_MEMORY_SHARE = 1 / 8
"""Share of the memory that the buffers of all threads may take."""
_THREADS = (1, 10, 100, 1000)
_PUBLISHED = {
    ("write", 1000.0): ("direct write, 1,000 threads", "about 230 MB/s per node"),
    ("read", 1000.0): ("direct read, 1,000 threads", "about 370 MB/s per node"),
}
_PLANNED = ("not direct, to plan with", "400-500 MB/s")
_HEADS = ("case", "throughput")
_CACHED = "buffered writes are done once they are in the page cache; what is written back later is in no figure"


def _threads(host: HostSize) -> list[int]:
    """Threads of the study that have room for a buffer each, up to a number."""
    most = max(int(host.memory_bytes * _MEMORY_SHARE / _BLOCK_BYTES), 1)
    return sorted({min(count, most) for count in _THREADS})


def _parts(job: JobSpec, host: HostSize) -> tuple[PresetPart, ...]:
    axes = ("bs=1m", "read_pct=0,100", "mode=direct,buffered,sync", f"qd={','.join(map(str, _threads(host)))}")
    # A thread of this engine has one I/O outstanding: the total depth is the number of threads.
    job = replace(job, access=Access.SEQUENTIAL, backend=Backend.THREADS, total_queue_depth=True)
    # Each block goes to one target whole, as to the files of a storage pool.
    job = replace(job, stripe_unit_bytes=_BLOCK_BYTES)
    return (PresetPart("", job, axes),)


def _published(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    direction, threads, block = cells[:3]
    if not isinstance(threads, float) or block != format_size(_BLOCK_BYTES):
        return ()
    return _PUBLISHED.get((str(direction), threads), ())


def _tables(points: Sequence[PresetPoint]) -> tuple[StudyTable, ...]:
    down, rows = (DIRECTION, THREADS, BLOCK), (*_PUBLISHED.values(), _PLANNED)
    title, values = "throughput, host CPU per GB and share of memory by mode", (MB_PER_S, CPU_PER_GB, MEMORY)
    decides = Pivot(title, down, MODE, values, _HEADS, _published, rows)
    return decides.table(points), list_table(
        "every point", (DIRECTION, MODE, THREADS, BLOCK, MEMORY, CONNECTIONS, *DETAIL), points
    )


def _remarks(job: JobSpec, host: HostSize) -> tuple[str, ...]:
    most, remarks = _threads(host)[-1], [_CACHED]
    if most < _THREADS[-1]:
        remarks.append(f"up to {most} threads instead of {_THREADS[-1]}: more buffers need more memory")
    used = job.size_bytes or (DEFAULT_SCRATCH_BYTES if job.targets[0].path is None else None)
    if used is not None and used * len(job.targets) < host.memory_bytes:
        remarks.append("the bytes used fit into memory: buffered reads come from the page cache; give more with --size")
    return tuple(remarks)


DIRECTIO = Preset(
    name="directio",
    title="direct, buffered and sync x direction x threads, 1m blocks",
    source="TSM storage pools on Isilon OneFS over NFS, 2014",
    parts=_parts,
    is_threads=True,
    tables=_tables,
    published=(
        "direct I/O saves host CPU and loses throughput on NAS: no coalescing, no read-ahead, synchronous writes",
        "buffered is faster at higher CPU",
        "turning the write cache of the array off gave +40 % at 1,000 threads with direct I/O",
        "the backup software writes blocks of 256k",
    ),
    remarks=_remarks,
)
