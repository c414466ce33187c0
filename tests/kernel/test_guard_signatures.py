"""Devices that carry something are written only with --destroy-data; every known place of every format counts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from engine.errors import RefusedError
from engine.guard import OpenTarget, open_targets
from engine.guard.signatures import HEAD, Magic, find_signatures, signatures_of
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from tests import needs
from tests.kernel.conftest import Storage, run

MIB = 1 << 20


def open_for_writing(path: str, *, destroy: bool = False) -> OpenTarget:
    job = JobSpec((TargetSpec(path),), Knobs(read_pct=0.0))
    (target,) = open_targets(job, Permissions(frozenset({path}), destroy))
    return target


def refusal(path: str) -> str:
    with pytest.raises(RefusedError) as caught:
        open_for_writing(path)
    return str(caught.value)


@needs.root
@needs.loop
def test_an_empty_device_and_one_full_of_unknown_data_need_no_second_flag(storage: Storage) -> None:
    device = storage.loop(8 * MIB)
    target = open_for_writing(device)
    assert (target.facts.samples, target.facts.zero_share) == (64, 1.0)
    assert target.writable
    target.close()
    Path(device).write_bytes(b"\xa7" * (8 * MIB))
    open_for_writing(device).close()


@needs.root
@needs.loop
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["mkfs.ext4", "-q"], "ext2/3/4 filesystem"),
        (["mkfs.xfs", "-q", "-f"], "xfs filesystem"),
        (["mkfs.btrfs", "-q"], "btrfs filesystem"),
        (["mkfs.vfat"], "vfat filesystem"),
        (["mkswap", "-q"], "swap"),
        (["pvcreate", "--quiet"], "LVM physical volume"),
    ],
)
def test_what_real_tools_make(storage: Storage, command: list[str], words: str) -> None:
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}: not installed")
    device = storage.loop(320 * MIB)
    try:
        run(*command, device)
    except AssertionError as error:
        pytest.skip(f"{command[0]} does not work here: {error}")
    assert f"{device} carries: " in refusal(device)
    assert words in refusal(device)
    assert "add --destroy-data" in refusal(device)
    open_for_writing(device, destroy=True).close()


@needs.root
@needs.loop
@pytest.mark.parametrize(
    ("offset", "data", "words"),
    [
        (0, b"LUKS\xba\xbe\x00\x02", "LUKS volume"),
        (0x4000, b"SKUL\xba\xbe\x00\x02", "LUKS volume"),
        (512, b"LABELONE", "LVM physical volume"),
        (510, b"\x55\xaa", "partition table or boot sector"),
        (512, b"EFI PART", "GPT partition table"),
        (-512, b"EFI PART", "GPT partition table (backup)"),
        (-65536, b"\xfc\x4e\x2b\xa9", "md RAID member (0.90)"),
        (-8192, b"\xfc\x4e\x2b\xa9", "md RAID member (1.0)"),
        (32, b"ORCLDISK", "Oracle ASM disk"),
        (0, b"bluestore block device\n", "Ceph BlueStore"),
        (-512 * 1024 + 128 * 1024, b"\x0c\xb1\xba\x00\0\0\0\0", "ZFS pool member"),
        (0x1018, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), "bcache device"),
    ],
)
def test_magics_on_a_device(storage: Storage, offset: int, data: bytes, words: str) -> None:
    device = storage.loop(8 * MIB)
    with Path(device).open("r+b") as file:
        file.seek(offset % (8 * MIB))
        file.write(data)
    assert words in refusal(device)


@needs.root
@needs.loop
@needs.mkfs_ext4
def test_a_disk_with_a_filesystem_in_a_partition_carries_the_table(storage: Storage) -> None:
    device = storage.loop(8 * MIB)
    with Path(device).open("r+b") as file:
        entry = bytes([0x80, 0, 2, 0, 0x83, 0, 3, 0]) + (2048).to_bytes(4, "little") + (8192).to_bytes(4, "little")
        file.seek(446)
        file.write(entry + bytes(48) + b"\x55\xaa")
    assert "partition table" in refusal(device)


SIZE = 512 * MIB


class Image:
    """A huge device in a few bytes."""

    def __init__(self, offset: int, data: bytes) -> None:
        self._offset, self._data = offset, data

    def __call__(self, offset: int, length: int) -> bytes:
        return bytes(self._at(position) for position in range(offset, offset + length))

    def _at(self, position: int) -> int:
        inside = 0 <= position - self._offset < len(self._data)
        return self._data[position - self._offset] if inside else 0


def test_zeros_carry_nothing() -> None:
    assert find_signatures(Image(0, b""), SIZE) == []


@pytest.mark.parametrize("magic", HEAD, ids=lambda magic: f"{magic.name} {magic.magic.hex()}")
def test_every_magic_is_found_at_each_of_its_places(magic: Magic) -> None:
    places = {*magic.offsets[:9], *magic.offsets[-3:]}
    for offset in places:
        size = max(SIZE, offset + 2 * MIB)
        assert magic.name in find_signatures(Image(offset, magic.magic), size), hex(offset)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 4096, 65536, 65537, 10**6])
def test_devices_of_any_size_are_read_within_their_bounds(size: int) -> None:
    def read(offset: int, length: int) -> bytes:
        assert offset >= 0
        assert offset + length <= size
        return bytes(length)

    assert find_signatures(read, size) == []


def test_agreement_with_libblkid(tmp_path: Path) -> None:
    """Whatever blkid recognises on images of real tools, we do too."""
    if not shutil.which("blkid"):
        pytest.skip("needs blkid: not installed")
    compared = 0
    for tool in (
        "mkfs.ext4",
        "mkfs.ext2",
        "mkfs.xfs",
        "mkfs.btrfs",
        "mkfs.vfat",
        "mkswap",
        "mkfs.minix",
        "mkfs.cramfs",
    ):
        path = tmp_path / tool
        with path.open("wb") as file:
            file.truncate(320 * MIB)
        if not shutil.which(tool):
            continue
        try:
            run(tool, str(path))
            kind = run("blkid", "--probe", "--output", "value", "--match-tag", "TYPE", str(path))
        except AssertionError:
            continue
        fd = os.open(path, os.O_RDONLY)
        names = signatures_of(fd, 320 * MIB)
        os.close(fd)
        assert names, f"blkid says {kind}"
        compared += 1
    assert compared, "none of the tools works here"
