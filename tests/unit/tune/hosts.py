"""Fake hosts whose tunables are regular files, and trees that refuse or round what is written."""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import LunscopeError
from engine.tune.change import TunableChange, make_change
from engine.tune.journal import Journal
from engine.tune.planned_writes import TunePlan, make_plan, parse_settings
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tests.fake_kernel import FakeDisk, FakeKernel

QUEUE = {
    "queue/nr_requests": "128\n",
    "queue/read_ahead_kb": "128\n",
    "queue/max_sectors_kb": "1280\n",
    "queue/max_hw_sectors_kb": "2048\n",
    "queue/scheduler": "[none] mq-deadline\n",
    "queue/nomerges": "0\n",
    "mq/0/nr_tags": "256\n",
}
WWID = "naa.600140500000000000000000000000aa"


def scsi(name: str, host: int, wwid: str = WWID, **more: str) -> FakeDisk:
    """One path of a LUN through a host."""
    attributes = {
        **QUEUE,
        "queue/rotational": "1\n",
        "device/queue_depth": "64\n",
        "device/timeout": "30\n",
        "device/vendor": "ACME    \n",
        "device/model": "Array 9000      \n",
        "device/wwid": f"{wwid}\n",
        **{key.replace("__", "/"): value for key, value in more.items()},
    }
    at = f"pci0000:00/0000:00:0{host}.0/host{host}/target{host}:0:0/{host}:0:0:{ord(name[-1])}/block/{name}"
    return FakeDisk(name, 8, ord(name[-1]) % 97 * 16, attributes=attributes, at=at)


def make_host(folder: Path) -> FakeKernel:
    """Two LUNs with two paths each by two hosts and a map over one, a loop device and an NVMe disk."""
    kernel = FakeKernel(folder)
    other = WWID[:-2] + "bb"
    kernel.add(scsi("sda", 0), scsi("sdb", 1), scsi("sdc", 0, other), scsi("sdd", 1, other))
    kernel.add(FakeDisk("loop0", 7, 0, attributes={**QUEUE, "queue/rotational": "0\n"}, at="virtual/block/loop0"))
    kernel.add(FakeDisk("nvme0n1", 259, 0, attributes=QUEUE, at="pci0000:00/0000:00:09.0/nvme/nvme0/nvme0n1"))
    mapped = {"dm/name": "mpatha\n", "dm/uuid": f"mpath-3{WWID[4:]}\n", "queue/read_ahead_kb": "128\n"}
    kernel.add(FakeDisk("dm-0", 252, 0, lean=True, attributes=mapped, at="virtual/block/dm-0"))
    for name in ("sda", "sdb"):
        (kernel.sysfs / "devices/virtual/block/dm-0/slaves" / name).symlink_to(f"../../../{kernel.disks[name].folder}")
    for host in (0, 1):
        kernel.add_class(
            "scsi_host", f"host{host}", f"pci0000:00/0000:00:0{host}.0/host{host}/scsi_host", can_queue=512
        )
        kernel.add_class("fc_host", f"host{host}", f"pci0000:00/0000:00:0{host}.0/host{host}/fc_host",
                         port_name=f"0x210000000000000{host}")  # fmt: skip
    return kernel


class OddTree(KernelTree):
    """Rounds down to multiples of four, as read_ahead_kb; refuses what ends with `refuse`."""

    def __init__(self, root: Path, refuse: str = "") -> None:
        super().__init__(root)
        self.refuse = refuse
        self.written: list[tuple[str, str]] = []

    def write(self, path: str, text: str) -> None:
        self.written.append((path, text))
        if self.refuse and path.endswith(self.refuse):
            raise LunscopeError(f"{path}: Input/output error")
        super().write(path, str(int(text) // 4 * 4) if text.isdigit() else text)


def plan_of(tree: KernelTree, settings: list[str], *scopes: str) -> TunePlan:
    host = Host(tree)
    return make_plan(host, parse_settings(settings), host.select(scopes))


def change(
    tree: KernelTree, journal: Journal, settings: list[str], *scopes: str, **options: bool | float
) -> TunableChange:
    plan = plan_of(tree, settings, *scopes)
    return make_change(tree, plan, parse_settings(settings), journal=journal, **options)  # type: ignore[arg-type]


def present(kernel: FakeKernel, file: str, *names: str) -> list[str]:
    return [(kernel.sysfs / kernel.disks[name].folder / file).read_text().strip() for name in names]


def contents(kernel: FakeKernel) -> dict[str, bytes]:
    """Every file of the tree, to see that nothing is left changed."""
    found = {}
    for folder, _, files in os.walk(kernel.sysfs):
        for file in files:
            path = Path(folder, file)
            if not path.is_symlink():
                found[str(path)] = path.read_bytes().strip()
    return found
