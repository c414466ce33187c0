"""Claims of other devices with the same bytes: found by asking the kernel, wherever the one who holds them lives."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import RefusedError
from engine.guard import OpenTarget, open_targets
from engine.guard.claims import is_claimed
from engine.hostfs.sysblock import look_up
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.job.target_text import parse_lun
from tests import needs
from tests.kernel.conftest import Storage, run

pytestmark = [needs.root, needs.loop]
MIB = 1 << 20


def opened(*targets: str | TargetSpec, destroy_data: bool = True) -> list[OpenTarget]:
    specs = tuple(TargetSpec(target) if isinstance(target, str) else target for target in targets)
    allowed = frozenset(node for spec in specs for node in spec.nodes)
    job = JobSpec(specs, Knobs(read_pct=50.0, stripe_width=len(specs)))
    return open_targets(job, Permissions(allowed, destroy_data=destroy_data))


def accept(*targets: str | TargetSpec) -> None:
    for target in opened(*targets):
        assert target.writable
        target.recheck()
        target.close()


def refusal(*targets: str | TargetSpec, destroy_data: bool = True) -> str:
    with pytest.raises(RefusedError) as caught:
        opened(*targets, destroy_data=destroy_data)
    return str(caught.value)


@contextmanager
def claim(device: str) -> Iterator[None]:
    fd = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        yield
    finally:
        os.close(fd)


def two_loops(storage: Storage) -> tuple[str, str]:
    image = storage.image()
    return storage.loop(backing=image), storage.loop(backing=image)


def claimed_beside(second: str, first: str) -> str:
    return f"{second} is in use: the same bytes by another loop device, {first} is claimed by the kernel (O_EXCL: busy)"


@needs.mkfs_ext4
def test_a_filesystem_unmounted_lazily_while_a_file_in_it_is_open(storage: Storage) -> None:
    first, second = two_loops(storage)
    point = storage.mount(storage.mkfs(first))
    with (point / "kept").open("w"):
        run("umount", "--lazy", str(point))
        assert claimed_beside(second, first) in refusal(second)
    accept(second)


@needs.mkfs_ext4
def test_the_external_journal_of_a_mounted_filesystem(storage: Storage) -> None:
    journal, same_journal = two_loops(storage)
    run("mke2fs", "-q", "-F", "-b", "4096", "-O", "journal_dev", journal)
    data = storage.loop()
    run("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", f"device={journal}", data)
    storage.mount(data)
    assert claimed_beside(same_journal, journal) in refusal(same_journal)
    assert f"{journal} is claimed by the kernel" in refusal(journal)


@needs.mkfs_ext4
def test_a_mount_in_a_namespace_that_cannot_be_seen(storage: Storage) -> None:
    first, second = two_loops(storage)
    storage.mount_elsewhere(storage.mkfs(first))
    script = (
        "from tests.kernel.test_guard_claims import refusal\n"
        f"print(refusal({second!r}))"
    )  # fmt: skip
    command = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", sys.executable, "-c", script]
    assert claimed_beside(second, first) in run(*command)


@pytest.mark.parametrize("destroy_data", [True, False])
def test_any_program_that_holds_the_other_device_exclusively(storage: Storage, destroy_data: bool) -> None:
    first, second = two_loops(storage)
    with claim(first):
        text = refusal(second, destroy_data=destroy_data)
        assert claimed_beside(second, first) in text
        assert text.endswith(": never written to: release it first")
    accept(second)


def test_a_program_that_claims_only_for_a_moment_is_no_reason_to_refuse(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_loops(storage)
    monkeypatch.setattr("engine.guard.claims._BETWEEN_TRIES_S", 5.0)
    script = f"import os, time; fd = os.open({first!r}, os.O_EXCL); print(flush=True); time.sleep(2)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        accept(second)


def test_claims_of_partitions_count_by_every_way_to_their_bytes(storage: Storage) -> None:
    first, second = two_loops(storage)
    parts = [storage.partition(first, number, start, 30) for number, start in ((1, 1), (2, 32))]
    with claim(parts[1]):
        text = refusal(second)
        assert f"{second} is in use: the same bytes by another loop device, {parts[1]} is claimed" in text
    with claim(first):
        assert claimed_beside(second, first) in refusal(second)
    accept(second)


def test_a_partition_that_overlaps_the_target_on_its_own_disk(storage: Storage) -> None:
    image, ranges = storage.image(), ((2048, 40960), (65536, 40960), (20480, 40960))
    entries = b"".join(struct.pack("<8BII", 0, 0, 0, 0, 0x83, 0, 0, 0, *span) for span in ranges)
    with image.open("r+b") as file:
        file.seek(446)
        file.write(entries.ljust(64, b"\0") + b"\x55\xaa")
    disk = storage.loop(backing=image)
    first, second, overlapping = (f"{disk}p{number}" for number in (1, 2, 3))
    if not Path(overlapping).is_block_device():
        pytest.skip("the kernel makes no partitions that overlap")
    with claim(overlapping):
        assert f"an overlapping partition, {overlapping} is claimed by the kernel" in refusal(first)
        accept(second)


def test_the_device_under_a_loop_device(storage: Storage) -> None:
    lower = storage.loop()
    upper = storage.loop(backing=lower)
    with claim(lower):
        text = refusal(upper)
        assert f"{upper} is in use: the device under it, {lower} is claimed by the kernel" in text
    accept(upper)


def test_what_stands_under_the_target_by_another_way(storage: Storage) -> None:
    lower, same_as_lower = two_loops(storage)
    upper = storage.loop(backing=lower)
    with claim(same_as_lower):
        assert f"the same bytes by another loop device, {same_as_lower} is claimed" in refusal(upper)
    accept(upper)


def test_our_own_claims_are_no_use_by_others(storage: Storage) -> None:
    first, second = two_loops(storage)
    accept(parse_lun(f"{first},{second}"))
    disk = storage.loop()
    parts = [storage.partition(disk, number, start, 20) for number, start in ((1, 1), (2, 30))]
    accept(*parts)
    accept(disk)


def test_the_claims_of_paths_that_are_ours_and_of_one_that_is_not(storage: Storage) -> None:
    image = storage.image()
    first, second, third = (storage.loop(backing=image) for _ in range(3))
    with claim(third):
        assert f"{third} is claimed by the kernel" in refusal(parse_lun(f"{first},{second}"))
    accept(parse_lun(f"{first},{second}"))


def test_recheck_finds_a_claim_that_is_younger_than_the_opening(storage: Storage) -> None:
    first, second = two_loops(storage)
    (target,) = opened(second)
    target.recheck()
    with claim(first), pytest.raises(RefusedError, match=f"{first} is claimed by the kernel"):
        target.recheck()
    target.recheck()
    target.close()


def test_a_device_whose_node_is_missing_cannot_be_asked(storage: Storage, tmp_path: Path) -> None:
    first, second = two_loops(storage)
    hidden = tmp_path / "empty"
    hidden.touch()
    script = (
        f"import subprocess; subprocess.run(['mount', '--bind', {str(hidden)!r}, {first!r}], check=True)\n"
        "from tests.kernel.test_guard_claims import refusal\n"
        f"print(refusal({second!r}))"
    )
    text = run("unshare", "--mount", sys.executable, "-c", script)
    assert f"{second}: the kernel cannot be asked whether {first}, which shares its bytes, is in use" in text


def test_asking_leaves_no_claim_behind(storage: Storage) -> None:
    path = storage.loop()
    device = look_up(Path("/sys"), Path(path).stat().st_rdev)
    assert device is not None
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        assert not is_claimed(device)
    with claim(path):
        assert is_claimed(device)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
