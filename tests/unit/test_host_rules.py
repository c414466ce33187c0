"""What is not the storage: where paging and limits of processor time are said, and where not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind, in_order
from collectors.advice.host_rules import host_findings
from collectors.kernel.cpu_limits import CpuLimit, LimitKind
from collectors.model import Device, FrameTable, Rows, Topology
from collectors.reports.run_devices import RunDevices

MIB = float(1 << 20)
KEY = "sda:8:0"


def devices(
    paged: float = 0.0,
    waited: float = 0.0,
    *,
    moved: float = 100 * MIB,
    swaps: dict[str, list[str]] | None = None,
    areas: int = 1,
    limits: tuple[CpuLimit, ...] = (),
) -> RunDevices:
    figures = {"swap_in_bytes_per_s": paged / 2, "swap_out_bytes_per_s": paged / 2, "psi_memory_some_pct": waited}
    host = FrameTable(Rows(("host",), ("host",)), {name: np.array([value]) for name, value in figures.items()})
    disks = FrameTable(Rows((KEY,), ("sda",)), {"bytes_per_s": np.array([moved])})
    topology = Topology({KEY: Device(KEY, "sda", "disk", 8, 0)})
    tables = {"disks": disks}
    return RunDevices(
        1.0, 2, topology, tables, {"disks": {}}, host=host, cpu_limits=limits, swap_areas=areas, swaps=swaps or {}
    )


def test_paging_to_a_disk_of_the_load_has_its_share() -> None:
    (found,) = host_findings(devices(25 * MIB, swaps={KEY: ["/dev/sda3"]}))
    assert (found.kind, found.section, found.about) == (FindingKind.PAGING, "limit", ("sda",))
    assert "pages to /dev/sda3 on sda, which the load uses: 25 % of its bytes" in found.text
    assert Evidence("its share of the bytes of the disk", 25.0, "%", "kernel") in found.evidence


def test_with_areas_on_several_disks_the_share_is_not_known() -> None:
    (found,) = host_findings(devices(2 * MIB, swaps={KEY: ["/swap"]}, areas=2))
    assert "on sda, which the load uses; free memory" in found.text


def test_paging_elsewhere_counts_where_tasks_wait_for_memory() -> None:
    (found,) = host_findings(devices(25 * MIB, waited=30.0))
    assert "tasks wait for memory 30 % of the time" in found.text
    assert found.about == ()


@pytest.mark.parametrize(
    "calm",
    [
        devices(),
        devices(25 * MIB),
        devices(math.nan, waited=90.0),
        devices(0.5 * MIB, waited=90.0, swaps={KEY: ["/dev/sda3"]}),
        devices(2 * MIB, swaps={KEY: ["/dev/sda3"]}),
        devices(limits=(CpuLimit(LimitKind.GROUP, "/a", 0.2, 3.0), CpuLimit(LimitKind.INTERRUPTS, "cpu0", 1.0, 30.0))),
        devices(limits=(CpuLimit(LimitKind.PARTITION, "", 2.0, 80.0),)),
    ],
    ids=["none", "elsewhere", "not counted", "little", "small share", "seldom stopped", "partition with room"],
)
def test_without_evidence_nothing_is_said(calm: RunDevices) -> None:
    assert list(host_findings(calm)) == []


def test_a_group_without_quota_left_and_a_capped_partition() -> None:
    (group,) = host_findings(devices(limits=(CpuLimit(LimitKind.GROUP, "/a", 0.2, 98.0, 55.0),)))
    assert (group.kind, group.confidence, group.about) == (FindingKind.CPU_LIMIT, Confidence.LIKELY, ("/a",))
    assert (
        "/a may use 0.2 processors (cpu.max; cpu.cfs_quota_us in cgroup v1) and is stopped in 98 % of the periods"
        in group.text
    )
    assert Evidence("busiest processor", 55.0, "%", "kernel") in group.evidence
    limits = (CpuLimit(LimitKind.PARTITION, "", 1.0, 99.0), CpuLimit(LimitKind.INTERRUPTS, "cpu3", 1.0, 92.0))
    partition, interrupts = host_findings(devices(limits=limits))
    assert "capped at an entitlement of 1 processor and uses 99 % of it" in partition.text
    assert (partition.about, interrupts.about) == (("partition",), ("cpu3",))
    assert "cpu3 spends 92 % of its time in interrupts" in interrupts.text


def test_who_has_used_up_a_quota_does_not_wait_for_other_work() -> None:
    host, limit = (Finding(kind, Confidence.LIKELY, "", ()) for kind in (FindingKind.HOST_CPU, FindingKind.CPU_LIMIT))
    assert in_order((host, limit)) == (limit,)
    assert in_order((host,)) == (host,)
