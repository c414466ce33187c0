"""Who devices are, read again only where somebody else may have come."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from collectors.kernel import device_instances
from collectors.kernel.device_instances import DeviceInstanceReader
from collectors.kernel.identity import DeviceInstance, read_device_instances
from tests.fake_kernel import FakeDisk, FakeKernel

needs_tmpfs = pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs /dev/shm, which numbers inodes once")


@pytest.fixture
def kernel() -> Iterator[FakeKernel]:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    kernel = FakeKernel(folder)
    kernel.add(*(FakeDisk(name, 8, place, diskseq=place + 1) for place, name in enumerate(NAMES)))
    yield kernel
    shutil.rmtree(folder)


NAMES = ("sda", "sdb", "nvme0c1n1", "loop0", "sdr")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names whose attributes were really read."""
    found: list[str] = []

    def read(sysfs: str, names: Sequence[str]) -> list[DeviceInstance]:
        found.extend(names)
        return read_device_instances(sysfs, names)

    monkeypatch.setattr(device_instances, "read_device_instances", read)
    return found


@needs_tmpfs
def test_only_what_may_be_another_is_read_again(kernel: FakeKernel, asked: list[str]) -> None:
    kernel.set("sdr", "removable", "1\n")
    reader = DeviceInstanceReader(str(kernel.sysfs), unique_inodes=True)
    first = reader.read(NAMES)
    assert [life.diskseq for life in first] == [1, 2, 3, 4, 5]
    asked.clear()
    assert reader.read(NAMES) == first
    assert asked == ["loop0", "sdr"]


@needs_tmpfs
def test_a_name_that_comes_back_is_read_again(kernel: FakeKernel, asked: list[str]) -> None:
    reader = DeviceInstanceReader(str(kernel.sysfs), unique_inodes=True)
    reader.read(NAMES)
    kernel.remove("sda")
    kernel.add(FakeDisk("sda", 8, 0, diskseq=77))
    asked.clear()
    assert reader.read(NAMES)[0].diskseq == 77
    assert "sda" in asked
    assert "sdb" not in asked


@needs_tmpfs
def test_a_disk_that_was_not_ready_is_asked_until_it_has_a_size(kernel: FakeKernel) -> None:
    kernel.set("sdb", "size", "0\n")
    reader = DeviceInstanceReader(str(kernel.sysfs), unique_inodes=True)
    assert reader.read(NAMES)[1].size_bytes == 0
    kernel.set("sdb", "size", "8\n")
    assert reader.read(NAMES)[1].size_bytes == 4096


@needs_tmpfs
def test_a_name_without_an_entry_has_no_facts(kernel: FakeKernel) -> None:
    reader = DeviceInstanceReader(str(kernel.sysfs), unique_inodes=True)
    assert reader.read(["sdz", "sda"]) == [DeviceInstance(None, None), DeviceInstance(1, 2048 * 512)]
    assert reader.read(["sdz"]) == [DeviceInstance(None, None)]


@needs_tmpfs
def test_a_tree_that_is_no_sysfs_is_read_whole_every_time(kernel: FakeKernel, asked: list[str]) -> None:
    reader = DeviceInstanceReader(str(kernel.sysfs))
    reader.read(NAMES)
    asked.clear()
    reader.read(NAMES)
    assert asked == list(NAMES)


@needs_tmpfs
def test_a_kernel_without_diskseq_is_read_whole_every_time(kernel: FakeKernel, asked: list[str]) -> None:
    for name in NAMES:
        kernel.set(name, "diskseq", None)
    reader = DeviceInstanceReader(str(kernel.sysfs), unique_inodes=True)
    reader.read(NAMES)
    asked.clear()
    reader.read(NAMES)
    assert asked == list(NAMES)
