"""Multipath storage in a fake tree: SCSI and FC hosts with LUNs behind them, NVMe subsystems."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.fake_kernel import FakeDisk, FakeKernel

SD_MAJOR, DM_MAJOR, NVME_MAJOR = 8, 253, 259


def sd_name(index: int) -> str:
    """The kernel's name of the n-th SCSI disk: sda, ..., sdz, sdaa, ... (sd_format_disk_name)."""
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        name = string.ascii_lowercase[letter] + name
    return f"sd{name}"


@dataclass
class FakeScsi:
    """SCSI hosts on PCI, each seeing the same LUNs through each of its targets; device mapper maps over them."""

    kernel: FakeKernel
    hosts: int = 2
    targets: int = 1
    luns: int = 1
    maps: bool = True
    access: Sequence[str] = ()
    """ALUA state by host, none if empty."""
    names: dict[tuple[int, int, int], str] = field(default_factory=dict)
    """Disk names by host, target and LUN."""

    def build(self) -> FakeScsi:
        for host in range(self.hosts):
            self.kernel.add_class("scsi_host", f"host{host}", f"{_host_folder(host)}/scsi_host/host{host}",
                                  proc_name="fake", can_queue=256, state="running", host_busy=0)  # fmt: skip
        self.kernel.add(*self._paths(), *(self._maps() if self.maps else ()))
        return self

    def _paths(self) -> Iterator[FakeDisk]:
        for host in range(self.hosts):
            for target in range(self.targets):
                for lun in range(self.luns):
                    yield self._path(host, target, lun)

    def _path(self, host: int, target: int, lun: int) -> FakeDisk:
        number = len(self.names)
        name = self.names[host, target, lun] = sd_name(number)
        address = f"{host}:0:{target}:{lun}"
        attributes: dict[str, str | bytes | None] = {
            "device/state": "running\n",
            "device/queue_depth": "32\n",
            "device/wwid": f"naa.6000{lun:08x}\n",
        }
        if self.access:
            attributes |= {"device/access_state": f"{self.access[host]}\n", "device/preferred_path": "0\n"}
        at = f"{_host_folder(host)}/target{host}:0:{target}/{address}/block/{name}"
        return FakeDisk(
            name, SD_MAJOR + number // 16, number % 16 * 16, diskseq=number + 1, attributes=attributes, at=at
        )

    def _maps(self) -> Iterator[FakeDisk]:
        for lun in range(self.luns):
            slaves = [name for (_, _, its_lun), name in self.names.items() if its_lun == lun]
            attributes: dict[str, str | bytes | None] = {
                "dm/name": f"mpath{lun}\n",
                "dm/uuid": f"mpath-36000{lun:08x}\n",
            }
            name = f"dm-{lun}"
            yield FakeDisk(name, DM_MAJOR, lun, diskseq=100_000 + lun, attributes=attributes,
                           at=f"virtual/block/{name}", slaves=slaves)  # fmt: skip


def add_fc_host(kernel: FakeKernel, host: int, wwpn: str, *, below: str = "") -> str:
    """An FC host; `below` is the folder of the physical host for a virtual one (NPIV). Returns its folder."""
    folder = f"{below}/vport-0:0-0/host{host}" if below else _host_folder(host)
    kernel.add_class("scsi_host", f"host{host}", f"{folder}/scsi_host/host{host}",
                     proc_name="lpfc", can_queue=512, state="running", host_busy=0)  # fmt: skip
    kernel.add_class("fc_host", f"host{host}", f"{folder}/fc_host/host{host}",
                     port_name=wwpn, port_state="Online", speed="32 Gbit")  # fmt: skip
    return folder


def add_fc_disk(kernel: FakeKernel, name: str, folder: str, host: int, *, target_wwpn: str, minor: int = 0) -> None:
    """A disk behind a remote port of an FC host."""
    target = f"{folder}/rport-{host}:0-0/target{host}:0:0"
    if not (kernel.sysfs / "class/fc_transport" / f"target{host}:0:0").exists():
        kernel.add_class("fc_transport", f"target{host}:0:0", f"{target}/fc_transport/target{host}:0:0",
                         port_name=target_wwpn, node_name="0x5000000000000001")  # fmt: skip
    attributes: dict[str, str | bytes | None] = {"device/state": "running\n", "device/queue_depth": "64\n"}
    kernel.add(FakeDisk(name, SD_MAJOR, minor, diskseq=500 + minor, attributes=attributes,
                        at=f"{target}/{host}:0:0:{minor}/block/{name}"))  # fmt: skip


def add_nvme_controller(kernel: FakeKernel, number: int, transport: str = "pcie", address: str = "") -> str:
    """An NVMe controller of subsystem 0; returns its folder."""
    pci = f"0000:00:{number + 3:02x}.0"
    folder = f"pci0000:00/{pci}/nvme/nvme{number}" if transport == "pcie" else f"virtual/nvme-fabrics/ctl/nvme{number}"
    kernel.add_class("nvme", f"nvme{number}", folder, transport=transport, address=address or pci, state="live",
                     queue_count=5, sqsize=127, subsysnqn="nqn.test")  # fmt: skip
    return folder


def add_nvme_namespace(
    kernel: FakeKernel, namespace: int, folders: Sequence[str], access: Sequence[str] = (), *, iopolicy: str = "numa"
) -> str:
    """A namespace with one hidden path below each controller folder; returns the head's name."""
    subsystem = "virtual/nvme-subsystem/nvme-subsys0"
    if not (kernel.sysfs / "class/nvme-subsystem").exists():
        kernel.add_class("nvme-subsystem", "nvme-subsys0", subsystem, iopolicy=iopolicy, subsysnqn="nqn.test")
    head = f"nvme0n{namespace}"
    wwid = f"uuid.0000-{namespace}\n"
    facts: dict[str, str | bytes | None] = {"wwid": wwid, "nsid": f"{namespace}\n"}
    minor = len(kernel.disks)
    disks = [FakeDisk(head, NVME_MAJOR, minor, diskseq=800 + minor, at=f"{subsystem}/{head}",
                      attributes={**facts, "mq/0/nr_tags": None, "queue/scheduler": "none\n"})]  # fmt: skip
    for place, folder in enumerate(folders):
        controller = folder.rpartition("nvme")[2]
        name = f"nvme0c{controller}n{namespace}"
        state = {"ana_state": f"{access[place]}\n", "ana_grpid": "1\n"} if access else {}
        disks.append(FakeDisk(name, NVME_MAJOR, minor + place + 1, diskseq=801 + minor + place,
                              at=f"{folder}/{name}", attributes={**facts, **state, "hidden": "1\n"}))  # fmt: skip
    kernel.add(*disks)
    return head


def add_tape(kernel: FakeKernel, number: int, host: int = 0, **stats: int) -> None:
    """A tape drive behind a SCSI host, with its nodes for each mode; statistics not given are 0."""
    folder = f"{_host_folder(host)}/target{host}:0:9/{host}:0:9:{number}"
    names = ("read_cnt", "write_cnt", "other_cnt", "read_byte_cnt", "write_byte_cnt", "read_ns", "write_ns", "io_ns",
             "resid_cnt", "in_flight")  # fmt: skip
    for entry in (f"st{number}", f"nst{number}", f"st{number}l"):
        at = f"{folder}/scsi_tape/{entry}"
        kernel.add_class("scsi_tape", entry, at)
        (kernel.sysfs / "devices" / at / "stats").mkdir()
        for name in names:
            kernel.set_class("scsi_tape", entry, f"stats/{name}", str(stats.get(name, 0)))
        (kernel.sysfs / "devices" / at / "device").symlink_to("../..")
    facts = {"vendor": "IBM", "model": "ULT3580-TD8", "wwid": f"naa.5000{number:012x}", "state": "running"}
    for name, value in facts.items():
        (kernel.sysfs / "devices" / folder / name).write_text(f"{value}\n")


def _host_folder(host: int) -> str:
    return f"pci0000:00/0000:00:{host + 3:02x}.0/host{host}"
