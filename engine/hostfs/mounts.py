"""Mounted devices in every mount namespace that can be seen."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from engine.hostfs.kernel_files import read_text, unescape_octal
from engine.hostfs.namespaces import Namespace
from engine.hostfs.sysblock import parse_device_number


class MountEntry(Struct, frozen=True):
    """One line of mountinfo (proc(5))."""

    number: int
    point: str
    filesystem: str
    source: str
    options: str
    namespace: str
    """Empty for our own, else "of pid 812 (name)", a process that lives in it."""
    root: str
    """Path under which the namespace's files are reached."""

    @property
    def text(self) -> str:
        """For refusals: "is mounted on /data (xfs)", with the namespace if it is not ours."""
        where = f" in the mount namespace {self.namespace}" if self.namespace else ""
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
        )


def read_mounts(namespaces: Sequence[Namespace]) -> list[MountEntry]:
    """Read the mounts of each namespace, in their order.

    Raises:
        OSError: not even those of the first, our own, can be read.
    """
    own, *others = namespaces
    mounts = list(parse_mountinfo((own.folder / "mountinfo").read_text(errors="surrogateescape")))
    for namespace in others:
        mounts += parse_mountinfo(namespace.mountinfo(), namespace.label, namespace.root)
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
    """Name the members of mounted btrfs and bcachefs filesystems; mountinfo shows one at best."""
    for filesystem, pattern in (("btrfs", "btrfs/*/devices/*/dev"), ("bcachefs", "bcachefs/*/dev-*/block/dev")):
        for file in sorted((sysfs / "fs").glob(pattern)):
            number = parse_device_number(read_text(file))
            if number is not None:
                yield (
                    number,
                    f"is a member of a mounted {filesystem} filesystem ({file.parts[len((sysfs / 'fs').parts) + 1]})",
                )
