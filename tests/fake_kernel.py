"""Writes trees that look like /proc and /sys, for readers that take their roots.

Links are as in the real ones (SYSFS/block/X leads below devices/), names may hold any bytes, and every attribute can be
given, changed or taken away.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

COUNTERS = 17
"""What current kernels print after the name; others by `fields`."""

_DISK_ATTRIBUTES = {
    "removable": "0",
    "ro": "0",
    "queue/rotational": "0",
    "queue/scheduler": "[none] mq-deadline",
    "queue/logical_block_size": "512",
    "queue/physical_block_size": "4096",
    "queue/nr_requests": "256",
    "queue/write_cache": "write back",
    "queue/iostats": "1",
    "mq/0/nr_tags": "256",
}


@dataclass
class FakeDisk:
    """One device; attributes beside the usual ones, None to leave a usual one out."""

    name: str
    major: int = 8
    minor: int = 0
    sectors: int = 2048
    diskseq: int | None = 1
    counters: Sequence[int] = (0,) * COUNTERS
    attributes: Mapping[str, str | bytes | None] = field(default_factory=dict)
    partitions: int = 0
    lean: bool = False
    """Without the usual attributes of the queue, for trees of thousands."""
    at: str = ""
    """Folder below SYSFS/devices, as of real devices: its parts say what the device hangs on."""
    slaves: Sequence[str] = ()

    @property
    def folder(self) -> str:
        return f"devices/{self.at or _entry(self.name)}"


class FakeKernel:
    """A pair of roots with what the readers look for; `write_diskstats` prints the present counters."""

    def __init__(self, root: Path, *, fields: int = 3 + COUNTERS) -> None:
        self.procfs = root / "proc"
        self.sysfs = root / "sys"
        self.fields = fields
        self.disks: dict[str, FakeDisk] = {}
        self.uevents = 1000
        for folder in ("block", "class/block", "devices", "kernel"):
            (self.sysfs / folder).mkdir(parents=True)
        self.procfs.mkdir()
        self.write_diskstats()
        self.uevent()

    def add(self, *disks: FakeDisk) -> None:
        """Add devices to sysfs and diskstats."""
        for disk in disks:
            self.disks[disk.name] = disk
            self._write_sysfs(disk)
        self.write_diskstats()
        self.uevent()

    def remove(self, name: str, *, uevent: bool = True) -> None:
        """Take a device away."""
        folder = self.disks.pop(name).folder
        (self.sysfs / "block" / _entry(name)).unlink()
        (self.sysfs / "class/block" / _entry(name)).unlink()
        shutil.rmtree(self.sysfs / folder)
        self.write_diskstats()
        if uevent:
            self.uevent()

    def count(self, name: str, counters: Sequence[int]) -> None:
        """Give a device new counters, in sysfs and in the next `write_diskstats`."""
        self.disks[name].counters = counters
        self._write(self.disks[name], "stat", _print_counters(counters))

    def set(self, name: str, attribute: str, value: str | bytes | None) -> None:
        """Change one attribute, or take it away."""
        self._write(self.disks[name], attribute, value)

    def add_class(self, name: str, entry: str, at: str, **attributes: str | int) -> None:
        """Add a device of another class (scsi_host, nvme, ...) that lives in a folder below SYSFS/devices."""
        folder = self.sysfs / "devices" / at
        folder.mkdir(parents=True, exist_ok=True)
        link = self.sysfs / "class" / name / entry
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../devices/{at}")
        for attribute, value in attributes.items():
            (folder / attribute).write_bytes(_bytes(f"{value}\n"))

    def add_partition(self, disk: str, number: int, *, sectors: int = 1024) -> str:
        """Add a partition to sysfs; returns its name."""
        parent = self.disks[disk]
        name = f"{disk}{'p' if disk[-1].isdigit() else ''}{number}"
        folder = self.sysfs / parent.folder / name
        folder.mkdir()
        values = {"partition": number, "size": sectors, "dev": f"{parent.major}:{parent.minor + number}"}
        for attribute, value in values.items():
            (folder / attribute).write_text(f"{value}\n")
        (self.sysfs / "class/block" / name).symlink_to(f"../../{parent.folder}/{name}")
        return name

    def set_class(self, name: str, entry: str, attribute: str, value: str) -> None:
        """Change one attribute of a device of another class."""
        (self.sysfs / "class" / name / entry / attribute).write_text(f"{value}\n")

    def write_diskstats(self, extra_lines: Iterable[bytes] = ()) -> None:
        """Print PROCFS/diskstats with as many fields as the kernel has."""
        lines = [line for disk in self.disks.values() for line in self._lines(disk)]
        (self.procfs / "diskstats").write_bytes(b"".join([*lines, *extra_lines]))

    def uevent(self) -> None:
        """Count one more uevent."""
        self.uevents += 1
        (self.sysfs / "kernel/uevent_seqnum").write_text(f"{self.uevents}\n")

    def write_proc(self, name: str, text: str | bytes) -> None:
        """Write any file of PROCFS."""
        path = self.procfs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_bytes(text))

    def write_process(self, pid: int, command: bytes, *, started: int = 100, **io: int) -> None:
        """Write PROCFS/PID/io and stat."""
        counters = {"rchar": 0, "wchar": 0, "syscr": 0, "syscw": 0, "read_bytes": 0, "write_bytes": 0} | io
        counters.setdefault("cancelled_write_bytes", 0)
        self.write_proc(f"{pid}/io", "".join(f"{name}: {value}\n" for name, value in counters.items()))
        fields = b" ".join(b"0" for _ in range(18))
        self.write_proc(f"{pid}/stat", b"%d (%b) S %b %d 0 0\n" % (pid, command, fields, started))

    def _lines(self, disk: FakeDisk) -> Iterable[bytes]:
        name = os.fsencode(disk.name)
        counters = [*disk.counters, *([0] * self.fields)][: self.fields - 3]
        text = _print_counters(counters)
        yield b"%4d %7d %b %b" % (disk.major, disk.minor, name, text)
        for number in range(1, disk.partitions + 1):
            between = b"p" if disk.name[-1].isdigit() else b""
            yield b"%4d %7d %b%b%d %b" % (disk.major, disk.minor + number, name, between, number, text)

    def _write_sysfs(self, disk: FakeDisk) -> None:
        entry = _entry(disk.name)
        (self.sysfs / disk.folder / "slaves").mkdir(parents=True)
        (self.sysfs / "block" / entry).symlink_to(f"../{disk.folder}")
        (self.sysfs / "class/block" / entry).symlink_to(f"../../{disk.folder}")
        for slave in disk.slaves:
            (self.sysfs / disk.folder / "slaves" / slave).symlink_to(f"../../{slave}")
        usual: dict[str, str | bytes | None] = {
            "stat": _print_counters(disk.counters),
            "inflight": "       0        0\n",
            "size": f"{disk.sectors}\n",
            "dev": f"{disk.major}:{disk.minor}\n",
            "diskseq": None if disk.diskseq is None else f"{disk.diskseq}\n",
        }
        if not disk.lean:
            usual |= {name: f"{value}\n" for name, value in _DISK_ATTRIBUTES.items()}
        for attribute, value in (usual | dict(disk.attributes)).items():
            self._write(disk, attribute, value)

    def _write(self, disk: FakeDisk, attribute: str, value: str | bytes | None) -> None:
        path = f"{self.sysfs}/{disk.folder}/{attribute}"
        if value is None:
            Path(path).unlink(missing_ok=True)
            return
        if "/" in attribute:
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 a tree has 300,000 of them
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, _bytes(value))
        os.close(descriptor)


def busy_counters(seed: int) -> tuple[int, ...]:
    """Counters of seven digits, a different set for every seed; a line of diskstats then has some 150 bytes."""
    return tuple((seed * 7919 + column * 104_729) % 9_000_000 + 1_000_000 for column in range(COUNTERS))


def _entry(name: str) -> str:
    return name.replace("/", "!")


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else os.fsencode(text)


def _print_counters(counters: Sequence[int]) -> bytes:
    return " ".join(map(str, counters)).encode() + b"\n"
