"""Files on overlay mounts, which the kernel shows once more, as other inodes, in the layers below.

Loop devices, swap and writers may be known by either; nothing in the overlay's own inode leads to the layer's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.hostfs.mounts import MountEntry

Inode = tuple[int, int]
"""A file as (st_dev, st_ino)."""

_LAYERS = re.compile(r"(?:^|,)(?:upperdir|lowerdir\+?|datadir\+)=((?:\\.|[^,\\])*)")
"""Options that name folders; colons part several, a backslash keeps a colon or comma (overlayfs.rst)."""
_COLON = re.compile(r"(?<!\\):+")


@dataclass(frozen=True, slots=True)
class Overlay:
    """One overlay mount: where it is seen, from which of its folders on, and the folders it is made of."""

    point: PurePosixPath
    within: str
    layers: tuple[str, ...]


def read_overlays(mounts: Sequence[MountEntry]) -> list[Overlay]:
    """Pick the overlays out of all mounts, those of other namespaces under the paths that reach them."""
    found = []
    for mount in mounts:
        if mount.filesystem == "overlay":
            point = PurePosixPath(mount.root + mount.point)
            layers = [mount.root + layer for layer in _folders(mount.options)] + list(_folders(mount.options))
            found.append(Overlay(point, mount.within.lstrip("/"), tuple(dict.fromkeys(layers))))
    return found


def _folders(options: str) -> Iterator[str]:
    for match in _LAYERS.finditer(options):
        for folder in _COLON.split(match[1]):
            yield re.sub(r"\\(.)", r"\1", folder)


def inodes_below(overlays: Sequence[Overlay], path: str) -> frozenset[Inode]:
    """Find the files of a path on an overlay in its layers: all of that name, hidden ones too; none elsewhere."""
    found = set()
    for overlay in overlays:
        if not PurePosixPath(path).is_relative_to(overlay.point):
            continue
        relative = overlay.within / PurePosixPath(path).relative_to(overlay.point)
        for layer in overlay.layers:
            try:
                status = Path(layer, relative).stat()
            except OSError:
                continue
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)
