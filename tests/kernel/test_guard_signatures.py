"""Devices that carry something are written only with --destroy-data; every known place of every format counts."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from engine.errors import RefusedError
from engine.guard import OpenTarget, fill_scratch, open_targets, sampling
from engine.guard.content import CHUNK_BYTES, content_of_open, sampled_chunks
from engine.guard.finding import Found, find
from engine.guard.signatures import HEAD, Magic, find_signatures
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from tests import needs
from tests.attaching import attached, attached_instead
from tests.kernel.conftest import Storage, run
from tests.kernel.slow_file import slow_file

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
def test_a_blank_device_needs_no_second_flag(storage: Storage) -> None:
    device = storage.loop(8 * MIB)
    target = open_for_writing(device)
    assert (target.facts.samples, target.facts.zero_share) == (64, 1.0)
    assert target.writable
    target.close()


@needs.root
@needs.loop
@pytest.mark.parametrize(
    ("offset", "data", "words"),
    [
        (40960, b"\xa7", "holds data that is not zero at byte 40960 (in 1 of 128 sampled blocks); "),
        (8 * MIB - 1, b"x", f"holds data that is not zero at byte {8 * MIB - 1} (in 1 of "),
        (0, b"\xff" * (8 * MIB), "holds bytes of 0xFF only, as erased flash may, from byte 0 on (in 128 of 128 "),
        (512, b"LUNSCOP1", "holds data of an earlier load with --verify that is not zero at byte 512 "),
    ],
)
def test_content_that_nobody_knows_is_data(storage: Storage, offset: int, data: bytes, words: str) -> None:
    device = storage.loop(8 * MIB)
    with Path(device).open("r+b") as file:
        file.seek(offset)
        file.write(data)
    text = refusal(device)
    assert f"{device} {words}" in text
    assert text.endswith("what an earlier load wrote counts, too: add --destroy-data if all of it may be lost")
    open_for_writing(device, destroy=True).close()


def write(target: OpenTarget) -> None:
    page = mmap.mmap(-1, 4096)
    page[:] = b"\xa7" * 4096
    os.pwritev(target.fd, [page], 65536)


@needs.root
@needs.loop
def test_what_this_process_wrote_may_be_written_again_until_something_else_writes(storage: Storage) -> None:
    device = storage.loop(8 * MIB)
    for _ in range(3):
        target = open_for_writing(device)
        write(target)
        target.close()
    with Path(device).open("r+b") as file:
        file.write(b"y" * 4096)
    assert "holds data that is not zero at byte 0" in refusal(device)


@needs.root
@needs.loop
def test_a_write_between_the_look_at_it_and_the_first_write_is_seen(storage: Storage) -> None:
    device = storage.loop(8 * MIB)
    target = open_for_writing(device)
    target.recheck()
    with Path(device).open("r+b") as file:
        file.write(b"y" * 4096)
    with pytest.raises(RefusedError, match="something has written to it since it was opened"):
        target.recheck()
    target.close()


@needs.root
@needs.loop
@needs.fuse
def test_a_disk_that_is_too_slow_to_be_seen_is_not_taken_for_blank(tmp_path: Path) -> None:
    with (
        slow_file(tmp_path / "slow", 0.2) as file,
        attached("losetup", "--find", "--show", "--direct-io=on", "--read-only", str(file)) as device,
    ):
        fd = os.open(device, os.O_RDONLY | os.O_DIRECT)
        content = content_of_open(fd, 64 * MIB, patience_s=0.3)
        os.close(fd)
    assert not content.is_blank
    assert re.fullmatch(r"may hold data: only \d+ of 257 blocks were read in 0\.3 s", content.words)


@needs.root
@needs.loop
@needs.fuse
def test_disks_that_are_slow_keep_nobody_from_looking_at_the_others(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank = storage.loop(8 * MIB)
    with (
        slow_file(tmp_path / "slow", 0.2) as file,
        attached("losetup", "--find", "--show", "--direct-io=on", "--read-only", str(file)) as slow,
        opened_by_name(slow, blank) as devices,
    ):
        (first, second), sizes = devices, (64 * MIB, 8 * MIB)
        both = {found.status.st_rdev: (found, size) for found, size in zip(devices, sizes, strict=True)}
        seen = sampling.TargetSampling(both)
        assert seen.of(second.status.st_rdev).is_blank
        seen.close()
        monkeypatch.setattr(sampling, "AT_ONCE", 1)
        late = sampling.TargetSampling(both, patience_s=0.3)
        assert late.of(second.status.st_rdev).unseen == "it was not read in the 0.3 s in which 0 other devices were"
        assert not late.of(first.status.st_rdev).is_blank
        late.close()


@contextmanager
def opened_by_name(*paths: str) -> Iterator[list[Found]]:
    devices = [found for path in paths if (found := find(path))]
    yield devices
    for device in devices:
        device.close()


@needs.root
@needs.loop
def test_devices_that_were_refused_are_no_more_ours_than_before(storage: Storage) -> None:
    blank, full, other = storage.loop(8 * MIB), storage.loop(8 * MIB), storage.loop(8 * MIB)
    for device in (full, other):
        Path(device).write_bytes(b"x" * 4096)
    job = JobSpec(tuple(TargetSpec(path) for path in (blank, full, other)), Knobs(read_pct=0.0))
    for _ in range(2):
        with pytest.raises(RefusedError, match=f"{full} holds data"):
            open_targets(job, Permissions(frozenset({blank, full, other})))
    assert f"{other} holds data" in refusal(other)
    open_for_writing(blank).close()


@needs.root
@needs.loop
def test_another_disk_under_the_same_number_is_not_what_was_left(storage: Storage) -> None:
    device, other = storage.loop(8 * MIB), storage.image(8 * MIB)
    other.write_bytes(bytes(65536) + b"\xa7" * 4096 + bytes(8 * MIB - 65536 - 4096))
    target = open_for_writing(device)
    write(target)
    target.close()
    with attached_instead(device, other):
        assert "holds data that is not zero at byte 65536" in refusal(device)


@needs.root
@needs.loop
@needs.mkfs_ext4
def test_a_filesystem_that_was_made_since_counts(storage: Storage) -> None:
    device = storage.loop(8 * MIB)
    target = open_for_writing(device)
    write(target)
    target.close()
    assert "carries: ext2/3/4 filesystem" in refusal(storage.mkfs(device))


def test_a_file_of_this_process_may_be_written_again_until_something_else_writes(tmp_path: Path) -> None:
    path = tmp_path / "new"
    job = JobSpec((TargetSpec(str(path)),), Knobs(read_pct=0.0), size_bytes=MIB)
    permissions = Permissions(frozenset({str(path)}))
    (target,) = open_targets(job, permissions)
    fill_scratch([target], 1, lambda _: None, threading.Event())
    target.is_unused = False
    target.close()
    (target,) = open_targets(job, permissions)
    write(target)
    target.close()
    open_targets(job, permissions)[0].close()
    with path.open("r+b") as file:
        file.write(b"y")
    with pytest.raises(RefusedError, match="is an existing file of 1 MiB"):
        open_targets(job, permissions)


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
        (0, b"LUKS\xba\xbe\x00\x02", "LUKS2 volume"),
        (0x4000, b"SKUL\xba\xbe\x00\x02", "LUKS2 volume"),
        (0, b"QFI\xfb\0\0\0\x03", "qcow2 image"),
        (0, b"KDMV\x01\0\0\0", "VMDK image"),
        (0, b"vhdxfile", "VHDX image"),
        (257, b"ustar  ", "tar archive"),
        (0, b"\x1f\x8b\x08\0", "gzip data"),
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


@pytest.mark.parametrize("size", [1, 4096, 8 * MIB, 10**10 + 512, 20 << 40])
def test_samples_cover_both_ends_and_every_stretch_of_a_128th(size: int) -> None:
    chunks = sorted(sampled_chunks(size))
    last = (size - 1) // CHUNK_BYTES
    assert chunks[: min(4, last + 1)] == list(range(min(4, last + 1)))
    assert chunks[-min(4, last + 1) :] == list(range(max(last - 3, 0), last + 1))
    assert len(chunks) < 400
    widest = max((after - before for before, after in pairwise(chunks)), default=1)
    assert widest <= max(1, -(-(last + 1) // 128))


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
        names = content_of_open(fd, 320 * MIB).formats
        os.close(fd)
        assert names, f"blkid says {kind}"
        compared += 1
    assert compared, "none of the tools works here"
