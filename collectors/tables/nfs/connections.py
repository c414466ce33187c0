"""How many connections to NFS servers carried what a load did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from collectors.model import MISSING, Sample, Table
from collectors.tables.nfs.schema import NFS_TRANSPORT, nfs_key
from engine.hostfs.kernel_files import unescape_octal


def used_connections(first: Sample | None, last: Sample | None, files: Sequence[str]) -> int | None:
    """Count the transports that sent requests between two samples, of the mounts that files are on.

    None where no file is on NFS, or the counters of its mount are not known at both ends.
    """
    before, now = (None if sample is None else sample.tables.get(NFS_TRANSPORT.name) for sample in (first, last))
    if before is None or now is None:
        return None
    points = {key: unescape_octal(nfs_key(key).point) for key in now.rows.keys}
    wanted = {_deepest(file, set(points.values())) for file in files} - {""}
    known = [_sent(before, now, key) for key, point in points.items() if point in wanted]
    return sum(sent > 0 for sent in known if sent is not None) if known and None not in known else None


def _deepest(file: str, points: set[str]) -> str:
    """Find the mount point that a file is below; empty without one."""
    above = (str(folder) for folder in PurePosixPath(file).parents)
    return next((folder for folder in above if folder in points), "")


def _sent(before: Table, now: Table, key: str) -> int | None:
    rows = before.rows.positions.get(key), now.rows.positions[key]
    if rows[0] is None:
        return None
    counts = int(before.column("sends")[rows[0]]), int(now.column("sends")[rows[1]])
    return None if MISSING in counts or counts[1] < counts[0] else counts[1] - counts[0]
