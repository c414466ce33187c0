"""What only the host itself knows when a sheet is made: links to disks, the NUMA node and interrupts of a port."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from collectors.graph import Port
from collectors.model import Device
from engine.hostfs.kernel_files import names_in, read_number, read_text
from engine.job.cpu_list import cpus_of, format_cpus
from engine.text import whole_number

_CLASSES = ("class/scsi_host", "class/nvme", "bus/virtio/devices", "bus/pci/devices")


class PortPlace(Struct, frozen=True):
    """Where a port is on the host's buses."""

    numa_node: int | None = None
    """None where the platform gives none."""
    interrupts: tuple[tuple[int, str], ...] = ()
    """Each interrupt with the CPUs that take it, as `0-3`."""

    @property
    def cpus(self) -> str:
        """CPUs that take its interrupts, as `0-3,8`; empty where that is not known."""
        return format_cpus(cpu for _, text in self.interrupts for cpu in cpus_of(text))


def udev_links(sysfs: Path, device: Device) -> tuple[str, ...]:
    """Return the links to a disk below /dev/disk/by-id, from the database of udev beside sysfs; none without one."""
    text = read_text(sysfs.parent / "run/udev/data" / f"b{device.major}:{device.minor}") or ""
    links = (line.removeprefix("S:") for line in text.split("\n") if line.startswith("S:disk/by-id/"))
    return tuple(sorted(f"/dev/{link}" for link in links))


def no_links(_device: Device) -> tuple[str, ...]:
    """Return none: the sheet is of a recording."""
    return ()


def port_place(procfs: Path, sysfs: Path, port: Port) -> PortPlace:
    """Look for the nearest bus device above a port that has a NUMA node, and the one that has interrupts."""
    node, interrupts = None, tuple[int, ...]()
    for folder in _above(sysfs, port.members or (port.name,)):
        found = read_number(folder / "numa_node")
        node = found if node is None and found is not None and found >= 0 else node
        interrupts = interrupts or tuple(_interrupts(folder))
    taken = ((number, read_text(procfs / "irq" / str(number) / "effective_affinity_list")) for number in interrupts)
    return PortPlace(node, tuple((number, text) for number, text in taken if text))


def _above(sysfs: Path, members: Sequence[str]) -> Iterator[Path]:
    """Yield the folder of a member of a port, and those above it up to the devices of the host."""
    links = (sysfs / base / name for name in members for base in _CLASSES)
    link = next((link for link in links if link.exists()), None)
    if link is None:
        return
    folder = link.resolve()
    root = (sysfs / "devices").resolve()
    while root in folder.parents:
        yield folder
        folder = folder.parent


def _interrupts(folder: Path) -> Iterator[int]:
    numbers = [whole_number(name) for name in names_in(str(folder / "msi_irqs"))]
    legacy = read_number(folder / "irq")
    yield from sorted(number for number in numbers if number is not None)
    if not numbers and legacy:
        yield legacy
