"""kstats of ZFS as spl-kstat.c prints them, in a fake procfs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ARC = {
    "hits": 90_000,
    "iohits": 2_000,
    "misses": 8_000,
    "demand_data_hits": 50_000,
    "demand_data_iohits": 500,
    "demand_data_misses": 4_000,
    "demand_metadata_hits": 38_000,
    "demand_metadata_iohits": 0,
    "demand_metadata_misses": 500,
    "prefetch_data_hits": 1_500,
    "prefetch_data_iohits": 1_400,
    "prefetch_data_misses": 3_400,
    "prefetch_metadata_hits": 500,
    "prefetch_metadata_iohits": 100,
    "prefetch_metadata_misses": 100,
    "mru_hits": 30_000,
    "mru_ghost_hits": 700,
    "mfu_hits": 60_000,
    "mfu_ghost_hits": 300,
    "uncached_hits": 0,
    "deleted": 1_234,
    "c": 4 << 30,
    "c_min": 512 << 20,
    "c_max": 8 << 30,
    "size": 3 << 30,
    "mru_size": 1 << 30,
    "mru_ghost_size": 256 << 20,
    "mfu_size": 2 << 30,
    "mfu_ghost_size": 128 << 20,
    "uncached_size": 0,
    "l2_hits": 100,
    "l2_misses": 7_900,
    "l2_size": 10 << 30,
    "l2_asize": 6 << 30,
    "memory_throttle_count": 3,
    "arc_meta_used": 700 << 20,
}
"""OpenZFS 2.3 has these, in the kernel's order; those that are not read are left out."""
POOL = {
    "trim_extents_written": 0,
    "arc_read_count": 8_000,
    "arc_read_bytes": 8_000 << 17,
    "arc_write_count": 900,
    "arc_write_bytes": 900 << 17,
    "direct_read_count": 24_000,
    "direct_read_bytes": 24_000 << 17,
    "direct_write_count": 100,
    "direct_write_bytes": 100 << 17,
}


def kstat_text(values: Mapping[str, int]) -> str:
    """Print a named kstat; the available memory of the ARC is signed and may be negative."""
    lines = [f"9 1 0x01 {len(values) + 1} {272 * len(values)} 8253144271 1234567890123"]
    lines.append(f"{'name':<32}type data")
    lines += [f"{name:<32}4    {value}" for name, value in values.items()]
    return "\n".join([*lines, f"{'memory_available_bytes':<32}3    -4096"]) + "\n"


def write_zfs(procfs: Path, arc: Mapping[str, int] = ARC, pools: Mapping[str, Mapping[str, int]] | None = None) -> None:
    """Write the statistics of the ARC and of pools."""
    folder = procfs / "spl/kstat/zfs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "arcstats").write_text(kstat_text(arc))
    for pool, values in (pools or {}).items():
        (folder / pool).mkdir(exist_ok=True)
        (folder / pool / "iostats").write_text(kstat_text(values))
