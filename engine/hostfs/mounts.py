"""Mounted devices in every mount namespace that can be seen, and files on overlay mounts.

The kernel shows a file on an overlay mount once more, as another inode, in one of the layers below.

Loop devices, swap and writers may be known by either; nothing in the overlay's own inode leads to the layer's.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from engine.hostfs.kernel_files import Roots, unescape_octal
from engine.hostfs.sysblock import parse_device_number, read_text
from engine.text import whole_number


class MountEntry(Struct, frozen=True):
    """One line of mountinfo (proc(5))."""

    number: int
    point: str
    filesystem: str
    source: str
    options: str
    namespace: str
    """Empty for our own, else "pid 812 (name)" of a process that lives in it."""
    root: str
    """Path under which the namespace's files are reached."""
    within: str = "/"
    """Folder of the filesystem that is seen at the point."""

    @property
    def text(self) -> str:
        """For refusals: "is mounted on /data (xfs)", with the namespace if it is not ours."""
        where = f" in the mount namespace of {self.namespace}" if self.namespace else ""
        return f"is mounted on {self.point} ({self.filesystem}){where}"


def parse_mountinfo(text: str, namespace: str = "", root: str = "") -> Iterator[MountEntry]:
    """Parse lines of mountinfo; lines that are not understood are skipped."""
    for line in text.splitlines():
        fields = line.split(" ")
        if "-" not in fields[6:]:
            continue
        separator = fields.index("-", 6)
        number = parse_device_number(fields[2])
        if number is None or len(fields) < separator + 4:
            continue
        filesystem, source, options = fields[separator + 1 : separator + 4]
        yield MountEntry(
            number,
            unescape_octal(fields[4]),
            filesystem,
            unescape_octal(source),
            unescape_octal(options),
            namespace,
            root,
            unescape_octal(fields[3]),
        )


def _processes(procfs: Path) -> list[str]:
    numbered = ((whole_number(name), name) for name in os.listdir(procfs))  # noqa: PTH208 - as in kernel_files
    return [name for _, name in sorted((number, name) for number, name in numbered if number is not None)]


def _namespace_id(procfs: Path, process: str) -> int | None:
    try:
        return os.stat(f"{procfs}/{process}/ns/mnt").st_ino  # noqa: PTH116 - as in kernel_files
    except OSError:
        return None


def _other_namespaces(procfs: Path) -> Iterator[Path]:
    seen = {_namespace_id(procfs, "self"), None}
    for process in _processes(procfs):
        namespace = _namespace_id(procfs, process)
        if namespace not in seen:
            seen.add(namespace)
            yield procfs / process


def read_mounts(roots: Roots) -> list[MountEntry]:
    """Read all mounts of our own namespace, then those of every other one that may be read, each namespace once.

    Raises:
        OSError: not even our own can be read.
    """
    own = (roots.procfs / "self" / "mountinfo").read_text(errors="surrogateescape")
    mounts = list(parse_mountinfo(own))
    for process in _other_namespaces(roots.procfs):
        text = read_text(process / "mountinfo")
        label = f"pid {process.name} ({read_text(process / 'comm') or '?'})"
        mounts += parse_mountinfo(text or "", label, str(process / "root"))
    return mounts


def _device_at(path: str) -> int | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_rdev if stat.S_ISBLK(status.st_mode) else None


def devices_of(mount: MountEntry) -> set[int]:
    """Name the devices under one mount: its number, and what its source and options name."""
    named = [option.partition("=")[2] for option in mount.options.split(",")]
    if os.major(mount.number) == 0:
        named += mount.source.split(":")
    found = {_device_at(mount.root + path) or _device_at(path) for path in named if path.startswith("/dev/")}
    return {number for number in found | {mount.number} if number is not None and os.major(number)}


def pooled_devices(sysfs: Path) -> Iterator[tuple[int, str]]:
    """Name the members of mounted btrfs and bcachefs filesystems, of which mountinfo shows one at best."""
    for filesystem, pattern in (("btrfs", "btrfs/*/devices/*/dev"), ("bcachefs", "bcachefs/*/dev-*/block/dev")):
        for file in sorted((sysfs / "fs").glob(pattern)):
            number = parse_device_number(read_text(file))
            if number is not None:
                yield (
                    number,
                    f"is a member of a mounted {filesystem} filesystem ({file.parts[len((sysfs / 'fs').parts) + 1]})",
                )


Inode = tuple[int, int]
"""A file as (st_dev, st_ino)."""

_LAYERS = re.compile(r"(?:^|,)(?:upperdir|lowerdir\+?|datadir\+)=((?:\\.|[^,\\])*)")
"""Options that name folders; colons part several, a backslash keeps a colon or comma (overlayfs.rst)."""
_COLON = re.compile(r"(?<!\\):+")


class Overlay(Struct, frozen=True):
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
