"""Devices in use are never opened for writing, by whatever name and flags; each refusal names what was found."""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
from pathlib import Path

import pytest

from engine.errors import RefusedError
from engine.guard import OpenTarget, open_targets
from engine.hostfs.kernel_files import Roots
from engine.hostfs.loops_swaps import read_loops
from engine.job.spec import JobSpec, Knobs, Mode, Permissions, TargetSpec
from tests import needs
from tests.kernel.conftest import Storage, run
from tests.kernel.test_guard_attacks import claim

pytestmark = [needs.root, needs.loop]
MIB = 1 << 20


def write_job(*paths: str, mode: Mode = Mode.DIRECT) -> JobSpec:
    return JobSpec(tuple(TargetSpec(path) for path in paths), Knobs(read_pct=50.0, mode=mode))


def everything_allowed(*paths: str) -> Permissions:
    return Permissions(frozenset(paths), destroy_data=True)


def refusal(path: str) -> str:
    """The words with which a target is refused although every flag is given."""
    with pytest.raises(RefusedError) as caught:
        close_all(open_targets(write_job(path), everything_allowed(path)))
    return str(caught.value)


def close_all(targets: list[OpenTarget]) -> None:
    for target in targets:
        target.close()


def opened(path: str) -> OpenTarget:
    return open_targets(write_job(path), everything_allowed(path))[0]


@pytest.fixture
def mounted(storage: Storage) -> tuple[str, Path]:
    device = storage.mkfs(storage.loop())
    return device, storage.mount(device)


@needs.mkfs_ext4
def test_a_mounted_device(mounted: tuple[str, Path]) -> None:
    device, point = mounted
    text = refusal(device)
    assert text == f"{device} is mounted on {point} (ext4): never written to: unmount it first"


@needs.mkfs_ext4
@pytest.mark.parametrize("kind", ["symlink", "proc root", "by-id", "descriptor", "own node", "chain"])
def test_a_mounted_device_by_another_name(mounted: tuple[str, Path], tmp_path: Path, kind: str) -> None:
    device, _ = mounted
    by_id = tmp_path / "by-id"
    by_id.mkdir()
    link = by_id / "ata-DISK_123"
    link.symlink_to(os.path.relpath(device, by_id))
    chain = tmp_path / "second"
    chain.symlink_to(link)
    node = tmp_path / "node"
    os.mknod(node, 0o600 | 0o060000, Path(device).stat().st_rdev)
    fd = os.open(device, os.O_PATH)
    names = {
        "symlink": str(link),
        "by-id": str(link),
        "chain": str(chain),
        "proc root": f"/proc/self/root{device}",
        "descriptor": f"/proc/self/fd/{fd}",
        "own node": str(node),
    }
    text = refusal(names[kind])
    os.close(fd)
    assert f"{names[kind]} ({device}) is mounted on" in text


@needs.mkfs_ext4
def test_a_bind_mount_counts_as_mounted(mounted: tuple[str, Path], storage: Storage) -> None:
    device, point = mounted
    (point / "sub").mkdir()
    bind = storage.mount(str(point / "sub"), "--bind")
    run("umount", "--lazy", str(point))
    assert f"is mounted on {bind} (ext4)" in refusal(device)


@needs.mkfs_ext4
def test_a_device_mounted_in_another_namespace_is_found_and_named(storage: Storage) -> None:
    device = storage.mkfs(storage.loop())
    pid = storage.mount_elsewhere(device)
    text = refusal(device)
    assert f"{device} is mounted on {storage.folder}/hidden" in text
    assert f"in the mount namespace of pid {pid} (" in text


@needs.mkfs_ext4
def test_a_lazily_unmounted_device_still_busy_is_refused_by_the_kernel_claim(mounted: tuple[str, Path]) -> None:
    device, point = mounted
    held = os.open(point / "lost+found", os.O_RDONLY)
    run("umount", "--lazy", str(point))
    text = refusal(device)
    os.close(held)
    assert f"{device} is claimed by the kernel (O_EXCL: busy)" in text
    assert "it carries: ext2/3/4 filesystem" in text


@needs.mkfs_ext4
def test_disk_and_partition_relations(storage: Storage) -> None:
    disk = storage.loop()
    first, second = storage.partition(disk, 1, 1, 30), storage.partition(disk, 2, 32, 30)
    point = storage.mount(storage.mkfs(first))
    assert refusal(disk) == (
        f"{disk} is in use: its partition {first} is mounted on {point} (ext4): never written to: unmount it first"
    )
    assert f"{first} is mounted on {point}" in refusal(first)
    with_sibling_mounted = opened(second)
    assert with_sibling_mounted.writable
    assert with_sibling_mounted.size_bytes == 30 << 20
    with_sibling_mounted.close()


def test_a_partition_is_not_held_by_its_own_disk(storage: Storage) -> None:
    disk = storage.loop(backing=storage.loop())
    partition = storage.partition(disk, 1, 1, 30)
    opened(partition).close()
    opened(storage.loop(backing=partition)).close()


@needs.mkfs_ext4
def test_a_partition_of_a_mounted_disk(storage: Storage) -> None:
    disk = storage.mkfs(storage.loop())
    partition = storage.partition(disk, 1, 1, 30)
    point = storage.mount(disk)
    assert f"{partition} is in use: its disk {disk} is mounted on {point} (ext4)" in refusal(partition)


@needs.swap
def test_active_swap_and_the_disk_of_a_swap_partition(storage: Storage) -> None:
    disk = storage.loop()
    partition = storage.swapon(storage.partition(disk, 1, 1, 30))
    assert refusal(partition) == f"{partition} is active swap: never written to: run swapoff on it first"
    assert f"{disk} is in use: its partition {partition} is active swap" in refusal(disk)


@needs.swap
@pytest.mark.alone  # Loop devices over files are refused to all others meanwhile.
def test_a_swap_file_whose_namespace_is_gone(storage: Storage, tmp_path: Path) -> None:
    image, other, folder = storage.image(), storage.image(1 << 20), tmp_path / "elsewhere"
    image.write_bytes(bytes(8 << 20))
    folder.mkdir()
    device, beside = storage.loop(backing=image), storage.loop(backing=other)
    mounting = f"mount --bind {tmp_path} {folder} && mkswap {folder}/{image.name} && swapon {folder}/{image.name}"
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", mounting], check=False)
    if done.returncode:
        pytest.skip("the filesystem of the tests does not take swap files")
    storage.undo("swapoff", str(image))
    assert f"its backing file {image} may be the active swap file /{image.name}" in refusal(device)
    with pytest.raises(RefusedError, match=f"the active swap file /{image.name} is in no namespace"):
        open_targets(write_job(beside), Permissions(frozenset({beside})))
    opened(beside).close()


@needs.mkfs_ext4
def test_another_loop_device_over_the_file_of_a_mounted_one(storage: Storage) -> None:
    image = storage.image()
    first, second = storage.loop(backing=image), storage.loop(backing=image)
    point = storage.mount(storage.mkfs(first))
    text = refusal(second)
    assert f"{second} is in use: the same bytes by another loop device, {first} is mounted on {point} (ext4)" in text


@needs.mkfs_ext4
def test_a_loop_device_over_a_mounted_device_and_a_device_under_a_loop(storage: Storage) -> None:
    lower = storage.mkfs(storage.loop())
    upper = storage.loop(backing=lower)
    assert f"{lower} is held by {upper}" in refusal(lower)
    free = opened(upper)
    free.close()
    point = storage.mount(lower)
    assert f"{upper} is in use: the device under it, {lower} is mounted on {point} (ext4)" in refusal(upper)


@needs.mkfs_ext4
def test_a_device_under_a_mounted_loop_names_the_mount(storage: Storage) -> None:
    lower = storage.mkfs(storage.loop())
    upper = storage.loop(backing=lower)
    point = storage.mount(upper)
    assert f"{lower} is held by {upper}, which is mounted on {point} (ext4)" in refusal(lower)


def test_a_loop_device_whose_file_is_written_by_a_process(storage: Storage) -> None:
    image = storage.image()
    device = storage.loop(backing=image)
    with subprocess.Popen(["sleep", "60"], stdout=image.open("r+b")) as writer:
        text = refusal(device)
        writer.kill()
    assert f"its backing file {image} is open for writing by sleep (pid {writer.pid})" in text


@pytest.mark.alone  # There is one file of process accounting, to which every process that ends is added.
def test_a_loop_device_whose_file_the_kernel_writes_to(storage: Storage) -> None:
    image = storage.image(MIB)
    account = ctypes.CDLL(None, use_errno=True).acct
    if account(bytes(image)):
        pytest.skip(f"the kernel keeps no account of processes: {os.strerror(ctypes.get_errno())}")
    try:
        device = storage.loop(backing=image)
        words = f"{device} is in use: its backing file {image} grows whenever a process ends"
        assert refusal(device).startswith(words)
    finally:
        account(None)
    close_all([opened(device)])


def test_a_part_of_a_file_beside_one_that_is_in_use(storage: Storage) -> None:
    """Loop devices over one file share no bytes if neither page nor block of it is in both."""
    image = storage.image(32 * MIB)
    first = storage.loop(backing=image, options=("--sizelimit", str(16 * MIB)))
    second = storage.loop(backing=image, options=("--offset", str(16 * MIB)))
    with claim(first):
        close_all([opened(second)])
        for offset in (16 * MIB - 512, 12 * MIB):
            assert f"another loop device, {first} is claimed" in refusal(
                storage.loop(backing=image, options=("--offset", str(offset)))
            )
    with claim(second):
        unaligned = storage.loop(backing=image, options=("--sizelimit", str(16 * MIB + 512)))
        assert f"another loop device, {second} is claimed" in refusal(unaligned)
        close_all([opened(first)])


def test_a_device_another_process_writes_to(storage: Storage) -> None:
    device = storage.loop()
    with subprocess.Popen(["sleep", "60"], stdout=Path(device).open("r+b", buffering=0)) as writer:
        text = refusal(device)
        writer.kill()
    assert f"{device} is open for writing by sleep (pid {writer.pid}): never written to: stop that process" in text


@needs.mkfs_ext4
def test_the_claim_keeps_mounts_away_while_the_target_is_open(storage: Storage) -> None:
    device = storage.mkfs(storage.loop())
    target = opened(device)
    point = storage.folder / "late"
    point.mkdir()
    late = subprocess.run(["mount", device, str(point)], capture_output=True, text=True, check=False)
    target.recheck()
    target.close()
    assert late.returncode != 0
    assert "busy" in late.stderr.lower() or "already mounted" in late.stderr.lower()


@needs.mkfs_ext4
def test_recheck_finds_the_other_loop_device_mounted_after_opening(storage: Storage) -> None:
    image = storage.image()
    first, second = storage.loop(backing=image), storage.loop(backing=image)
    storage.mkfs(first)
    target = opened(first)
    target.recheck()
    point = storage.mount(second)
    with pytest.raises(RefusedError, match=f"{second} is mounted on {point}"):
        target.recheck()
    target.close()


def test_recheck_finds_another_file_attached_under_the_same_number(storage: Storage) -> None:
    device = storage.loop()
    target = open_targets(JobSpec((TargetSpec(device),)), Permissions())[0]
    os.close(os.open(device, os.O_RDONLY))
    run("losetup", "--set-capacity", device)
    target.recheck()
    image = Path(run("losetup", "--noheadings", "--output", "BACK-FILE", device))
    os.truncate(image, 1 << 20)
    run("losetup", "--set-capacity", device)
    with pytest.raises(RefusedError, match="it shrank to 1048576 bytes"):
        target.recheck()
    target.close()


@needs.mkfs_ext4
def test_a_refused_target_leaves_no_descriptor_open(mounted: tuple[str, Path]) -> None:
    device, _ = mounted
    before = len(list(Path("/proc/self/fd").iterdir()))
    refusal(device)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@needs.mkfs_ext4
def test_reading_a_mounted_device_is_allowed_and_says_so(mounted: tuple[str, Path]) -> None:
    device, point = mounted
    target = open_targets(JobSpec((TargetSpec(device),)), Permissions())[0]
    assert not target.writable
    assert any(f"is mounted on {point} (ext4)" in notice for notice in target.notices)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.pwrite(target.fd, bytes(4096), 0)
    target.recheck()
    target.close()


def test_the_root_disk_is_never_writable() -> None:
    """Relies on the refusal alone: were it missing, opening for writing would still write nothing."""
    number = Path("/").stat().st_dev
    node = Path("/sys/dev/block") / f"{os.major(number)}:{os.minor(number)}"
    if not node.exists():
        pytest.skip("the root filesystem is on no single block device")
    path = "/dev/" + node.resolve().name
    assert "never written to" in refusal(path)
    disk = node.resolve().parent.name
    if Path(f"/dev/{disk}").is_block_device():
        assert "never written to" in refusal(f"/dev/{disk}")


def test_loops_that_come_and_go_hide_nothing(tmp_path: Path) -> None:
    """While one is attached or detached it does not answer, and is asked again."""
    image, done = tmp_path / "image", threading.Event()
    image.write_bytes(bytes(1 << 20))

    def come_and_go() -> None:
        while not done.is_set():
            attached = subprocess.run(
                ["losetup", "--find", "--show", str(image)], check=True, capture_output=True, text=True
            )
            subprocess.run(["losetup", "--detach", attached.stdout.strip()], check=True)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        found = [loop for _ in range(300) for loop in read_loops(Roots(), ["/"])]
    finally:
        done.set()
        thread.join()
    assert [loop for loop in found if not loop.is_certain] == []
