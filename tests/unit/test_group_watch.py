"""Which ports and heads are sampled as wholes, and what is seen of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from collectors.graph import Graph
from collectors.model import Rows, Table
from collectors.tables.block.counters import BlockCollector
from collectors.tables.block.group_watch import KEEP_TICKS, MAX_FILES, GroupWatch, start_group_watch
from collectors.tables.block.schema import DISK
from collectors.topology.scanner import TopologyScanner
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi, add_fc_disk, add_fc_host, add_nvme_controller, add_nvme_namespace

_WEIGHTED = DISK.index("weighted_ms")


class Host:
    """A fake host whose disks do as much I/O as told before each tick, under a real sampler."""

    def __init__(self, kernel: FakeKernel) -> None:
        self.kernel = kernel
        self.graph = Graph()
        self.table: Table | None = None
        self.values = np.empty(0, np.uint64)
        self.scan()
        self.watch: GroupWatch = start_group_watch(str(kernel.sysfs), lambda: self.table, lambda: self.graph)

    def scan(self) -> None:
        collector = BlockCollector(str(self.kernel.procfs), str(self.kernel.sysfs))
        self.table = collector.read().tables["disk"]
        collector.close()
        self.graph = TopologyScanner(str(self.kernel.procfs), str(self.kernel.sysfs)).scan(self.table.rows)[1]
        self.values = self.table.values.copy()

    def tick(self, **io_ms: int) -> dict[str, list[int]]:
        """Columns of the GROUP table by the names of ports or keys of heads."""
        assert self.table is not None
        for name, amount in io_ms.items():
            self.values[self.table.rows.names.index(name), _WEIGHTED] += np.uint64(amount)
        self.table = Table(DISK, self.table.rows, self.values.copy())
        table = self.watch.read().tables.get("group")
        names = {port.key: port.name for port in self.graph.ports}
        if table is None:
            return {}
        return {names.get(key, key): row for key, row in zip(table.rows.keys, table.values.tolist(), strict=True)}

    def tick_until_sampled(self, name: str, sample_count: int = 20) -> list[int]:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            found = self.tick()
            if found.get(name, [0, 0])[1] >= sample_count:
                return found[name]
            time.sleep(0.1)  # a group that is idle for five ticks is given up
        raise AssertionError(f"{name} was not sampled")


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


@pytest.fixture
def scsi(kernel: FakeKernel) -> Iterator[Host]:
    FakeScsi(kernel, hosts=3, luns=2).build()
    host = Host(kernel)
    yield host
    host.watch.close()


def test_nothing_is_watched_while_nothing_happens(scsi: Host) -> None:
    for _ in range(3):
        assert scsi.tick() == {}


def test_a_host_that_is_used_is_asked_for_its_commands(scsi: Host) -> None:
    scsi.kernel.set_class("scsi_host", "host1", "host_busy", "3")
    scsi.tick()
    scsi.tick(sdc=10)
    total, sample_count, busy, peak = scsi.tick_until_sampled("host1")
    assert (total, busy, peak) == (3 * sample_count, sample_count, 3)
    assert set(scsi.tick()) == {"host1"}


def test_a_group_without_io_is_given_up(scsi: Host) -> None:
    scsi.tick()
    scsi.tick(sda=10)
    assert set(scsi.tick()) == {"host0"}
    for _ in range(KEEP_TICKS + 1):
        scsi.tick()
    assert scsi.tick() == {}


def test_a_host_that_vanishes_is_left_out_and_found_again(scsi: Host) -> None:
    scsi.tick()
    scsi.tick(sda=10)
    assert set(scsi.tick(sda=1)) == {"host0"}
    busy = scsi.kernel.sysfs / "class/scsi_host/host0/host_busy"
    busy.write_text("gone\n")
    end = time.monotonic() + 10
    while scsi.tick(sda=1) and time.monotonic() < end:
        time.sleep(0.01)
    busy.write_text("1\n")
    assert scsi.tick_until_sampled("host0")[3] == 1


def test_what_shares_a_wwpn_is_one_sample(kernel: FakeKernel) -> None:
    folder = add_fc_host(kernel, 3, "0x10000090fa000001")
    add_fc_disk(kernel, "sda", folder, 3, target_wwpn="0x5000000000000aaa")
    address = "traddr=nn-0x5000:pn-0x5000000000000ccc,host_traddr=nn-0x2000:pn-0x10000090fa000001"
    add_nvme_namespace(kernel, 1, [add_nvme_controller(kernel, 0, "fc", address)])
    kernel.set_class("scsi_host", "host3", "host_busy", "2")
    kernel.set("nvme0c0n1", "inflight", "       4        1\n")
    host = Host(kernel)
    host.tick()
    host.tick(sda=5)
    total, sample_count, busy, peak = host.tick_until_sampled("host3")
    host.watch.close()
    assert (total, busy, peak) == (7 * sample_count, sample_count, 7)


def test_a_head_is_its_paths(kernel: FakeKernel) -> None:
    folders = [add_nvme_controller(kernel, number) for number in range(2)]
    add_nvme_namespace(kernel, 1, folders)
    kernel.set("nvme0c1n1", "inflight", "       0        6\n")
    host = Host(kernel)
    host.tick()
    host.tick(nvme0c0n1=5)
    (lun,) = host.graph.luns
    total, sample_count, busy, _ = host.tick_until_sampled(lun.key)
    assert (total, busy) == (6 * sample_count, sample_count)
    assert set(host.tick()) == {"nvme0", lun.key}
    host.watch.close()


def test_the_busiest_are_taken_while_their_files_fit(kernel: FakeKernel) -> None:
    big, small = add_nvme_controller(kernel, 0), add_nvme_controller(kernel, 1)
    for namespace in range(1, MAX_FILES // 2 + 2):
        add_nvme_namespace(kernel, namespace, [big, small] if namespace == 1 else [big])
    host = Host(kernel)
    host.tick()
    host.tick(nvme0c0n1=50, nvme0c1n1=10)
    found = set(host.tick())
    host.watch.close()
    assert {"nvme0", "nvme1"} <= found
    heads = found - {"nvme0", "nvme1"}
    assert len(heads) == 1


def test_a_port_of_too_many_disks_is_not_sampled(kernel: FakeKernel) -> None:
    controller = add_nvme_controller(kernel, 0)
    for namespace in range(1, MAX_FILES + 2):
        add_nvme_namespace(kernel, namespace, [controller])
    host = Host(kernel)
    host.tick()
    host.tick(nvme0c0n1=50)
    found = set(host.tick())
    host.watch.close()
    assert "nvme0" not in found


def test_rows_are_one_object_while_the_same_are_watched(scsi: Host) -> None:
    scsi.tick()
    scsi.tick(sda=10)
    tables = [scsi.watch.read().tables["group"] for _ in range(2)]
    rows: list[Rows] = [table.rows for table in tables]
    assert rows[0] is rows[1]
