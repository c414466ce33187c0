"""Samples of a host with multipath storage: two FC ports, two target ports, LUNs with a sick and a failed path."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from collectors.graph import Graph, Layer, Lun, MountedFilesystem, Path, Port, TargetPort
from collectors.model import Device, HostFacts, Rows, Sample, Table, Tier, Topology
from collectors.tables.block.schema import DISK
from tests.app.sources import SECOND_NS, START_NS, table

PORTS, TARGETS = 2, 2
SICK, FAILED, IDLE_LUN = "sdc", "sdf", 3
"""A path that takes four times as long as its peers, one that the map has failed, and a LUN that nobody uses."""


def sd(number: int) -> str:
    return f"sd{chr(ord('a') + number)}"


def key(name: str) -> str:
    return f"{name}@key"


@functools.cache
def names(luns: int = 4) -> tuple[str, ...]:
    """LUNs, their paths in turn, LVM on the first two, and a local disk."""
    maps = tuple(f"dm-{lun}" for lun in range(luns))
    paths = tuple(sd(number) for number in range(luns * PORTS * TARGETS))
    return (*maps, *paths, f"dm-{luns}", "nvme0n1")


@functools.cache
def make_graph(luns: int = 4) -> Graph:
    ports = tuple(
        Port(f"fc:{host}", f"host{host}", "fc", "lpfc", f"0x10000090fa00000{host}", f"0000:03:00.{host}", "Online",
             "32 Gbit", 64, (f"host{host}",), (f"host{host}",))
        for host in range(PORTS)
    )  # fmt: skip
    nvme = Port("nvme0@0000:01:00.0", "nvme0", "nvme-pcie", "nvme", "0000:01:00.0", state="live", members=("nvme0",))
    targets = tuple(
        TargetPort(f"fc:t{target}", f"0x50060160{target:08x}", "fc", "0x5006016000000000") for target in range(TARGETS)
    )
    here = TargetPort("nvme:nvme0", "nvme0", "nvme-pcie", "nqn.2014.org:disk")
    local = Path(key("nvme0n1"), "nvme0n1", key("nvme0n1"), nvme.key, here.key, "nvme0 nsid 1", "live")
    return Graph(
        ports=(*ports, nvme),
        targets=(*targets, here),
        luns=(
            *(Lun(key(f"dm-{lun}"), f"dm-{lun}", "dm", "queue-length 0") for lun in range(luns)),
            Lun(local.key, "nvme0n1"),
        ),
        paths=(*(_path(number) for number in range(luns * PORTS * TARGETS)), local),
        layers=(
            Layer(key(f"dm-{luns}"), f"dm-{luns}", "lvm", "data-oracle", 2 << 40, (key("dm-0"), key("dm-1"))),
            Layer(key("nvme0n1p1"), "nvme0n1p1", "partition", "", 1 << 39, (local.key,)),
        ),
        mounts=(
            MountedFilesystem(key(f"dm-{luns}"), "/oracle", "xfs"),
            MountedFilesystem(key("nvme0n1p1"), "/", "ext4"),
        ),
    )


def _path(number: int) -> Path:
    lun, way = divmod(number, PORTS * TARGETS)
    host, target = divmod(way, TARGETS)
    failed = sd(number) == FAILED
    return Path(
        key(sd(number)), sd(number), key(f"dm-{lun}"), f"fc:{host}", f"fc:t{target}", f"{host}:0:{target}:{lun}",
        "running", "active/optimized", False, "failed" if failed else "active", 3 if failed else 0, 0, 1, 32,
    )  # fmt: skip


@functools.cache
def make_topology(luns: int = 4) -> Topology:
    devices = {
        key(name): Device(
            key(name), name, "dm" if name.startswith("dm") else "disk", 8, number, number,
            size_bytes=1 << 40, model="VRAID", vendor="ACME",
            friendly_name="data-oracle" if name == f"dm-{luns}" else f"mpath{name[3:]}" if name[:2] == "dm" else "",
        )
        for number, name in enumerate(names(luns))
    }  # fmt: skip
    return Topology(devices, HostFacts("db-host-01", "6.12.0", "x86_64", 8, tier=Tier.SAMPLED), make_graph(luns))


@functools.cache
def multipath_samples(count: int = 30, luns: int = 4, topology: Topology | None = None) -> tuple[Sample, ...]:
    """Samples a second apart."""
    about = topology or make_topology(luns)
    rows = Rows(tuple(key(name) for name in names(luns)), names(luns))
    return tuple(_sample(tick, about, rows, luns) for tick in range(count))


def _sample(tick: int, topology: Topology, rows: Rows, luns: int) -> Sample:
    rate = {sd(number): _rate(number) for number in range(luns * PORTS * TARGETS)} | {"nvme0n1": (900, 0.2)}
    per_lun = PORTS * TARGETS
    for lun in range(luns):
        mine = [rate[sd(lun * per_lun + way)] for way in range(per_lun)]
        ios = sum(each for each, _ in mine)
        rate[f"dm-{lun}"] = ios, sum(each * ms for each, ms in mine) / ios if ios else 0.0
    rate[f"dm-{luns}"] = rate["dm-0"][0] + rate["dm-1"][0], rate["dm-0"][1]
    ios_per_s = np.array([rate[name][0] for name in rows.names], np.int64)
    ms = np.array([rate[name][1] for name in rows.names], np.float64)
    tables = {"disk": _disk(rows, tick, ios_per_s, ms)}
    return Sample(START_NS + tick * SECOND_NS, tick * SECOND_NS, topology, tables, cost_ns=8_000_000)


def _disk(rows: Rows, tick: int, ios: NDArray[np.int64], ms: NDArray[np.float64]) -> Table:
    sample_count, in_flight = 500 * tick, np.minimum(ios * ms / 1000, 30)
    return table(
        DISK, rows,
        reads=ios * tick, reads_merged=0, read_sectors=ios * tick * 16, read_ms=(ios * ms).astype(int) * tick,
        writes=ios // 4 * tick, writes_merged=0, write_sectors=ios * tick * 8,
        write_ms=(ios * ms / 4).astype(int) * tick,
        in_flight_now=in_flight.astype(int), busy_ms=np.minimum(in_flight * 400, 990).astype(int) * tick,
        weighted_ms=(ios * ms * 1.25).astype(int) * tick,
        driver_in_flight_sum=(sample_count * in_flight * 1.1).astype(int), driver_in_flight_samples=sample_count,
        driver_busy_samples=np.minimum(sample_count * in_flight * 0.4, sample_count).astype(int),
        driver_in_flight_peak=(in_flight * 3).astype(int),
    )  # fmt: skip


def _rate(number: int) -> tuple[int, float]:
    """I/Os per second and milliseconds each."""
    lun = number // (PORTS * TARGETS)
    if sd(number) == FAILED or lun == IDLE_LUN:
        return 0, 0.0
    return 400 + 50 * (number % 3), 4.2 if sd(number) == SICK else 1.0


def laptop_samples(count: int) -> tuple[Sample, ...]:
    """One NVMe disk on PCIe and nothing else."""
    port = Port("nvme0@0000:01:00.0", "nvme0", "nvme-pcie", "nvme", "0000:01:00.0", state="live", members=("nvme0",))
    disk = key("nvme0n1")
    path = Path(disk, "nvme0n1", disk, port.key, "", "nvme0 nsid 1", "live")
    part = Layer(key("nvme0n1p1"), "nvme0n1p1", "partition", "", 1 << 39, (disk,))
    graph = Graph((port,), (), (Lun(disk, "nvme0n1"),), (path,), (part,), (MountedFilesystem(part.key, "/", "ext4"),))
    device = Device(disk, "nvme0n1", "disk", 259, 0, 1, size_bytes=1 << 39, model="Laptop SSD")
    topology = Topology({disk: device}, HostFacts("laptop", "6.12.0", "x86_64", 8, tier=Tier.SAMPLED), graph)
    return tuple(_alone(sample, topology) for sample in multipath_samples(count))


def _alone(sample: Sample, topology: Topology) -> Sample:
    disks = sample.tables["disk"]
    row = disks.rows.positions[key("nvme0n1")]
    only = Table(disks.schema, Rows((key("nvme0n1"),), ("nvme0n1",)), disks.values[row : row + 1])
    return Sample(sample.time_ns, sample.monotonic_ns, topology, {"disk": only}, cost_ns=sample.cost_ns)
