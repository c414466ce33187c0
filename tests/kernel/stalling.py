"""What stops answering: a block device over a filesystem that can be frozen, and a filesystem that nobody serves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.attaching import attach_one

MIB = 1 << 20
_UNDER_SILENT_MOUNT = """
import ctypes, os, sys
folder, *arguments = sys.argv[1:]
channel = os.open("/dev/fuse", os.O_RDWR)
os.set_inheritable(channel, True)
options = f"fd={channel},rootmode=40000,user_id=0,group_id=0"
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"silent", folder.encode(), b"fuse", 0, options.encode()):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.executable, [sys.executable, *arguments])
"""


def _run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@dataclass
class StallingDisk:
    """A loop device; what is written to it while its filesystem is frozen waits for the thaw."""

    device: str
    mount: Path
    frozen: bool = False

    def freeze(self) -> None:
        _run("fsfreeze", "-f", self.mount)
        self.frozen = True

    def thaw(self) -> None:
        if self.frozen:
            _run("fsfreeze", "-u", self.mount)
            self.frozen = False


@contextmanager
def stalling_disk(folder: Path) -> Iterator[StallingDisk]:
    """Make one of 32 MiB under a folder; everything is thawed, detached and unmounted in the end."""
    image, mount = folder / "outer.img", folder / "mount"
    with image.open("wb") as file:
        file.truncate(1536 * MIB)
    _run("mkfs.ext4", "-q", "-F", image)
    mount.mkdir()
    attach_one("mount", "-o", "loop", str(image), str(mount))
    device = ""
    try:
        inner = mount / "inner.img"
        inner.write_bytes(bytes(range(256)) * (32 * MIB // 256))
        device = attach_one("losetup", "--find", "--show", str(inner))
        disk = StallingDisk(device, mount)
        try:
            yield disk
        finally:
            disk.thaw()
    finally:
        # Whatever the kernel still holds of a process that was given up goes once its writes are through.
        if device:
            _run("losetup", "--detach", device)
        for _ in range(50):
            done = subprocess.run(["umount", str(mount)], check=False, capture_output=True, timeout=60)
            if done.returncode == 0:
                break
            subprocess.run(["sleep", "0.2"], check=True)
        else:
            raise AssertionError(f"{mount} stays busy: {done.stderr!r}")


def under_silent_mount(folder: Path, *arguments: str | Path) -> list[str]:
    """Make a command that runs Python where every call on something in a folder waits: FUSE that nobody serves.

    The mount is in a namespace of its own, so that nobody else waits in it, and goes with the process.
    """
    folder.mkdir()
    own = ["unshare", "--mount", "--propagation", "slave", sys.executable, "-c", _UNDER_SILENT_MOUNT]
    return [*own, str(folder), *map(str, arguments)]
