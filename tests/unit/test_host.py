"""The HOST table and host facts from files of several kernels."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from collectors.model import MISSING, Tier
from collectors.tables.host.facts import kernel_notices, read_host_facts, right_notices
from collectors.tables.host.reader import HostCollector
from tests.fake_kernel import FakeKernel

STAT = "cpu  100 20 30 4000 50 6 7 8 5 0\ncpu0 50 10 15 2000 25 3 3 4 0 0\ncpu1 50 10 15 2000 25 3 4 4 0 0\nintr 1\n"
MEMINFO = (
    "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  600 kB\nDirty:  12 kB\nWriteback:  3 kB\nHugePages_Total: 0\n"
)
PAGE = mmap.PAGESIZE
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=567\n"


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def read(kernel: FakeKernel) -> dict[str, int]:
    table = HostCollector(str(kernel.procfs)).read().tables["host"]
    return dict(zip([column.id for column in table.schema.columns], table.values[0].tolist(), strict=True))


def test_a_current_kernel_has_everything(kernel: FakeKernel) -> None:
    vmstat = "nr_free_pages 7\npswpin 3\npswpout 5\npswpout_x 9\n"
    meminfo = f"{MEMINFO}SwapTotal: 1000 kB\nSwapFree:  700 kB\n"
    for name, text in {"stat": STAT, "meminfo": meminfo, "vmstat": vmstat}.items():
        kernel.write_proc(name, text)
    for resource in ("io", "cpu", "memory"):
        kernel.write_proc(f"pressure/{resource}", PRESSURE)
    found = read(kernel)
    tick_us = 10_000
    assert found == {
        "cpu_user_us": 120 * tick_us,
        "cpu_system_us": 30 * tick_us,
        "cpu_idle_us": 4000 * tick_us,
        "cpu_iowait_us": 50 * tick_us,
        "cpu_irq_us": 13 * tick_us,
        "cpu_steal_us": 8 * tick_us,
        "cpus": 2,
        "memory_total_bytes": 1000 * 1024,
        "memory_available_bytes": 600 * 1024,
        "dirty_bytes": 12 * 1024,
        "writeback_bytes": 3 * 1024,
        "psi_io_some_us": 1234,
        "psi_io_full_us": 567,
        "psi_cpu_some_us": 1234,
        "psi_memory_some_us": 1234,
        "swap_in_bytes": 3 * PAGE,
        "swap_out_bytes": 5 * PAGE,
        "swap_used_bytes": 300 * 1024,
    }


def test_what_a_kernel_does_not_have_is_missing(kernel: FakeKernel) -> None:
    assert set(read(kernel).values()) == {int(MISSING)}
    kernel.write_proc("stat", "rubbish\n\xff")
    kernel.write_proc("meminfo", "MemTotal: many kB\nDirty:\n")
    kernel.write_proc("pressure/io", "some total=x\n")
    assert set(read(kernel).values()) == {int(MISSING)}


def test_a_host_without_swap_pages_nothing_that_is_read(kernel: FakeKernel) -> None:
    kernel.write_proc("meminfo", MEMINFO + "SwapTotal: 0 kB\nSwapFree: 0 kB\n")
    kernel.write_proc("vmstat", "pswpin 3\npswpout 5\n")
    assert {read(kernel)[name] for name in ("swap_in_bytes", "swap_out_bytes", "swap_used_bytes")} == {int(MISSING)}


def test_host_facts_come_from_the_root_given(kernel: FakeKernel) -> None:
    kernel.write_proc("sys/kernel/osrelease", "6.1.0-18-amd64\n")
    kernel.write_proc("sys/kernel/hostname", b"st\xffor\n")
    kernel.write_proc("sys/kernel/arch", "x86_64\n")
    kernel.write_proc("stat", STAT)
    facts = read_host_facts(str(kernel.procfs), Tier.SAMPLED, ["no libudev"])
    assert (facts.hostname, facts.kernel, facts.cpus, facts.long_bits) == ("st\\xffor", "6.1.0-18-amd64", 2, 64)
    assert facts.memory_bytes is None
    assert facts.notices[-1] == "no libudev"


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("4.18.0-553.el8", []),
        ("5.10.0", ["busy time"]),
        ("6.8.0-41-generic", ["busy time", "io_uring"]),
        ("6.18.44", ["io_uring"]),
        ("", []),
    ],
)
def test_each_kernel_has_its_caveats(release: str, words: list[str]) -> None:
    notices = kernel_notices(release)
    assert len(notices) == len(words)
    assert all(word in notice for word, notice in zip(words, notices, strict=True))


def test_root_lacks_nothing() -> None:
    assert right_notices(0) == ()
    assert "not root" in right_notices(1000)[0]
