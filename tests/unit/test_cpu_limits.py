"""Limits of processor time: quotas of groups of both versions, a capped partition, the busiest processor."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from collectors.kernel.cpu_limits import CpuLimit, CpuLimits, LimitKind
from engine.replacing import replace

LPARCFG = """lparcfg 1.9
serial_number=IBM,02ABCDEF
system_type=IBM,9009-42A
partition_id=3
R4=0x32
R5=0x0
partition_entitled_capacity=50
group=32771
system_active_processors=20
pool=0
pool_capacity=2000
pool_idle_time=0
unallocated_capacity_weight=0
capacity_weight=128
capped={capped}
unallocated_capacity=0
purr={purr}
partition_active_processors=4
partition_potential_processors=8
shared_processor_mode=1
"""
CPUINFO = "processor\t: 0\ncpu\t\t: POWER9 (architected)\n\ntimebase\t: 512000000\nplatform\t: pSeries\n"


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def read(folder: Path, at_s: float = 0.0) -> CpuLimits:
    return replace(CpuLimits.now(str(folder / "proc"), str(folder / "sys")), taken_ns=round(at_s * 1e9))


def test_the_group_that_is_stopped_most_of_the_time_is_the_limit(tmp_path: Path) -> None:
    put(tmp_path / "proc/self/cgroup", "0::/a.slice/b.service\n")
    root = tmp_path / "sys/fs/cgroup"
    put(root / "a.slice/cpu.max", "max 100000\n")
    put(root / "a.slice/cpu.stat", "usage_usec 9\nnr_periods 0\nnr_throttled 0\n")
    put(root / "a.slice/b.service/cpu.max", "20000 100000\n")
    put(root / "a.slice/b.service/cpu.stat", "usage_usec 1\nnr_periods 100\nnr_throttled 40\nthrottled_usec 7\n")
    before = read(tmp_path)
    assert before.since(before) == ()
    put(root / "a.slice/b.service/cpu.stat", "usage_usec 1\nnr_periods 200\nnr_throttled 130\nthrottled_usec 7\n")
    (limit,) = read(tmp_path).since(before)
    assert (limit.name, limit.cpus, limit.share_pct) == ("/a.slice/b.service", 0.2, 90.0)
    assert math.isnan(limit.busiest_pct)


@pytest.mark.parametrize("folder", ["cpu", "cpu,cpuacct"])
def test_a_quota_of_cgroup_v1(tmp_path: Path, folder: str) -> None:
    put(tmp_path / "proc/self/cgroup", "3:memory:/m\n2:cpu,cpuacct:/g\n0::/\n")
    group = tmp_path / "sys/fs/cgroup" / folder / "g"
    put(group / "cpu.cfs_quota_us", "150000\n")
    put(group / "cpu.cfs_period_us", "100000\n")
    put(group / "cpu.stat", "nr_periods 10\nnr_throttled 0\nthrottled_time 0\n")
    before = read(tmp_path)
    put(group / "cpu.stat", "nr_periods 20\nnr_throttled 1\nthrottled_time 5\n")
    (found,) = read(tmp_path).since(before)
    assert (found.name, found.cpus, found.share_pct) == ("/g", 1.5, 10.0)
    put(group / "cpu.cfs_quota_us", "-1\n")
    assert read(tmp_path).since(before) == ()


@pytest.mark.parametrize("text", ["", "0::", "x", "0::/../..", "0::/\ud800"])
def test_groups_that_are_not_there_are_no_limit(tmp_path: Path, text: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(text, errors="surrogateescape" if text.isascii() else "surrogatepass")
    assert read(tmp_path).since(read(tmp_path)) == ()


def test_a_capped_partition_that_uses_its_entitlement(tmp_path: Path) -> None:
    put(tmp_path / "proc/cpuinfo", CPUINFO)
    put(tmp_path / "proc/stat", "cpu  9 9\ncpu0 100 0 0 100 0 0 0 0 0 0\ncpu1 0 0 0 200 0 0 0 0 0 0\nintr 7\n")
    put(tmp_path / "proc/ppc64/lparcfg", LPARCFG.format(capped=1, purr=1_000))
    before = read(tmp_path)
    put(tmp_path / "proc/stat", "cpu  9 9\ncpu0 120 0 0 110 0 10 60 0 0 0\ncpu1 0 0 0 300 0 0 0 0 0 0\n")
    put(tmp_path / "proc/ppc64/lparcfg", LPARCFG.format(capped=1, purr=1_000 + 2 * 512_000_000 * 49 // 100))
    interrupts = CpuLimit(LimitKind.INTERRUPTS, "cpu0", 1.0, 70.0, 90.0)
    assert read(tmp_path, 2.0).since(before) == (CpuLimit(LimitKind.PARTITION, "", 0.5, 98.0, 90.0), interrupts)
    put(tmp_path / "proc/ppc64/lparcfg", LPARCFG.format(capped=0, purr=9_000_000_000))
    assert read(tmp_path, 2.0).since(before) == (interrupts,)
