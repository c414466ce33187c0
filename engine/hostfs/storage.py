"""Which block devices an open file, or the file behind a loop device, is stored on."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from engine.hostfs.kernel_files import read_text
from engine.hostfs.mounts import MountEntry, devices_of, parse_mountinfo


def storage_numbers(fd: int, procfs: Path = Path("/proc")) -> tuple[int, ...]:
    """Numbers of the devices that an open file is or is stored on; none on filesystems without a device, such as NFS.

    Filesystems over several devices, and overlays, have a number of their own: their mount names the devices.
    """
    status = os.fstat(fd)
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    if os.major(number):
        return (number,)
    mount = mount_of(fd, procfs)
    return () if mount is None else tuple(sorted(devices_of(mount) or _upper_devices(mount)))


def loop_storage_numbers(sysfs: Path, name: str) -> tuple[int, ...]:
    """Numbers of the devices under a loop device; none if its file cannot be reached by its name."""
    path = read_text(sysfs / "block" / name / "loop" / "backing_file")
    return path_storage_numbers(path) if path else ()


def path_storage_numbers(path: str) -> tuple[int, ...]:
    """Numbers of the devices that a path of this namespace is or is stored on; none if it leads to nothing."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        return storage_numbers(fd)
    finally:
        os.close(fd)


def mount_of(fd: int, procfs: Path = Path("/proc")) -> MountEntry | None:
    """Find the mount by which a file was opened (mnt_id in /proc/PID/fdinfo, first field of mountinfo, proc(5))."""
    lines = (read_text(procfs / "self" / "fdinfo" / str(fd)) or "").splitlines()
    numbers = [line.split()[1] for line in lines if line.startswith("mnt_id:")]
    for line in (read_text(procfs / "self" / "mountinfo") or "").splitlines():
        if line.split(" ", 1)[0] in numbers:
            return next(parse_mountinfo(line), None)
    return None


def _upper_devices(mount: MountEntry) -> set[int]:
    """Name the device of the folder that an overlay writes to."""
    named = (option.partition("=") for option in mount.options.split(","))
    folders = [folder for name, _, folder in named if name == "upperdir"]
    try:
        numbers = {Path(folder).stat().st_dev for folder in folders}
    except OSError:
        return set()
    return {number for number in numbers if os.major(number)}
