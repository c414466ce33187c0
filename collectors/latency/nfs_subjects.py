"""Subjects of the latency screen: NFS mounts, their operations and transports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collectors.latency.subjects import NFS, LatencySubject, offered_subjects
from collectors.model import Frame, Histograms, Rows
from collectors.tables.nfs.fields import TRANSPORTS
from collectors.tables.nfs.schema import UNKNOWN, latency_parts, nfs_key
from engine.hostfs.kernel_files import unescape_octal
from engine.text import safe_text


def all_subjects(frame: Frame, offered: Mapping[str, Histograms]) -> Iterator[LatencySubject]:
    """Yield all subjects with current histograms, the load first, NFS mounts last."""
    yield from offered_subjects(frame, offered)
    if NFS in offered:
        yield from nfs_subjects(offered[NFS].rows)


def nfs_subject(table: str, key: str) -> LatencySubject:
    """Return the subject of a row of the tables of operations or of transports."""
    parts = nfs_key(key)
    mount, part = parts.mount, parts.part
    if table == TRANSPORTS:
        return _subject(f"NFS {mount_name(mount)}, transport {safe_text(part)}", f"{mount} ", f" {part}")
    return _mount(mount) if parts.is_mount else _operation(mount, part)


def nfs_subjects(rows: Rows) -> Iterator[LatencySubject]:
    """Yield each mount with timed calls, and after it each of its operations."""
    by_mount: dict[str, dict[str, None]] = {}
    for key in rows.keys:
        mount, operation, _ = latency_parts(key)
        by_mount.setdefault(mount, {})[operation] = None
    for mount, operations in by_mount.items():
        yield _mount(mount)
        yield from (_operation(mount, each) for each in operations)


def _mount(mount: str) -> LatencySubject:
    kind = "" if nfs_key(f"{mount} all").point == UNKNOWN else "mount "
    return _subject(f"NFS {kind}{mount_name(mount)}", f"{mount} ")


def _operation(mount: str, operation: str) -> LatencySubject:
    return _subject(f"NFS {mount_name(mount)} {safe_text(operation)}", f"{mount} {operation} ")


def _subject(title: str, begin: str, end: str = "") -> LatencySubject:
    # Keys of rows without a device: no disk, port or load is meant anywhere.
    return LatencySubject(title, NFS, frozenset({begin}), (begin, end))


def mount_name(mount: str) -> str:
    """Return the mount point of what a key begins with, or server and RPC client where the mount is not known."""
    parts = nfs_key(f"{mount} all")
    if parts.point == UNKNOWN:
        return safe_text(f"{parts.address} RPC {parts.device}")
    return safe_text(unescape_octal(parts.point))
