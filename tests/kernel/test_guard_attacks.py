"""Ways around the guard: other names, other processes' claims, other moments. Each is refused with what was found."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import LunscopeError
from engine.guard import open_targets, permission
from engine.guard.usage_snapshot import UsageSnapshot
from engine.job.spec import JobSpec, Knobs, Mode, Permissions, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl, LoadState
from tests import needs
from tests.kernel.conftest import Storage, run

pytestmark = [needs.root, needs.loop]
MIB = 1 << 20


def job(path: str | Path, mode: Mode = Mode.DIRECT) -> JobSpec:
    return JobSpec((TargetSpec(str(path)),), Knobs(read_pct=50.0, mode=mode))


def everything_allowed(path: str | Path, *, destroy_data: bool = True) -> Permissions:
    return Permissions(frozenset({str(path)}), destroy_data=destroy_data)


def refusal(path: str | Path, mode: Mode = Mode.DIRECT, *, destroy_data: bool = True) -> str:
    """The words with which a target is refused, by default although every flag is given."""
    with pytest.raises(LunscopeError) as caught:
        open_targets(job(path, mode), everything_allowed(path, destroy_data=destroy_data))
    return str(caught.value)


def accept(path: str | Path, mode: Mode = Mode.DIRECT) -> None:
    (target,) = open_targets(job(path, mode), everything_allowed(path))
    assert target.writable
    target.close()


@contextmanager
def claim(device: str) -> Iterator[None]:
    """Hold a device as a volume manager does, without a mount anybody could see."""
    fd = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        yield
    finally:
        os.close(fd)


@contextmanager
def another_namespace(*script: str) -> Iterator[int]:
    """Run a shell in namespaces of its own for as long as the block lasts; its pid."""
    lines = " && ".join((*script, "echo ready", "exec cat"))
    command = ["unshare", "--mount", "--net", "--propagation", "slave", "sh", "-c", lines]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
        process.communicate()


@needs.mkfs_ext4
def test_a_mounted_device_through_the_root_of_another_process(storage: Storage) -> None:
    device = storage.mkfs(storage.loop())
    point = storage.mount(device)
    with another_namespace() as pid:
        name = f"/proc/{pid}/root{device}"
        assert refusal(name).startswith(f"{name} ({device}) is mounted on {point} (ext4)")


@needs.mkfs_ext4
def test_a_mounted_device_whose_node_is_bound_over_a_file(storage: Storage) -> None:
    device = storage.mkfs(storage.loop())
    storage.mount(device)
    bound = storage.folder / "bound"
    bound.touch()
    run("mount", "--bind", device, str(bound))
    storage.undo("umount", str(bound))
    assert f"{bound} ({device}) is mounted on" in refusal(bound)


def test_claims_of_others_reach_from_disk_to_partition_and_back(storage: Storage) -> None:
    disk = storage.loop()
    first, second = storage.partition(disk, 1, 1, 30), storage.partition(disk, 2, 32, 30)
    with claim(disk):
        assert f"{first} is claimed by the kernel" in refusal(first)
        assert f"{disk} is claimed by the kernel" in refusal(disk)
    with claim(first):
        assert f"{disk} is claimed by the kernel" in refusal(disk)
        accept(second)


def test_what_takes_no_writes_is_refused_before_the_run(storage: Storage) -> None:
    attached, switched = storage.loop(options=("--read-only",)), storage.loop()
    assert f"{attached}: it is read-only" in refusal(attached)
    run("blockdev", "--setro", switched)
    assert f"{switched}: it is read-only: make it writable (blockdev --setrw)" in refusal(switched)
    run("blockdev", "--setrw", switched)
    accept(switched)


@needs.swap
def test_swap_on_zram(storage: Storage) -> None:
    control = Path("/sys/class/zram-control")
    if not control.exists():
        pytest.skip("the kernel has no zram")
    number = (control / "hot_add").read_text().strip()
    device = f"/dev/zram{number}"
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(str(32 * MIB))
        storage.swapon(device)
        assert refusal(device) == f"{device} is active swap: never written to: run swapoff on it first"
        run("swapoff", device)
        with pytest.raises(LunscopeError, match="carries: swap"):
            open_targets(job(device), Permissions(frozenset({device})))
    finally:
        Path(f"/sys/block/zram{number}/reset").write_text("1")
        (control / "hot_remove").write_text(number)


@needs.swap
def test_a_hard_link_to_a_swap_file(storage: Storage) -> None:
    path = storage.folder / "swapfile"
    with path.open("wb") as file:
        file.write(bytes(16 * MIB))
        file.flush()
        os.fsync(file.fileno())
    path.chmod(0o600)
    link = storage.folder / "harmless"
    link.hardlink_to(path)
    try:
        storage.swapon(str(path))
    except AssertionError as error:
        pytest.skip(f"this filesystem takes no swap file: {error}")
    assert f"{link} is an active swap file" in refusal(link)


@pytest.mark.parametrize(
    ("kind", "number", "words"),
    [
        (stat.S_IFCHR, os.makedev(1, 1), "a character device, not storage"),
        (stat.S_IFCHR, os.makedev(1, 5), "a character device, not storage"),
        (stat.S_IFBLK, os.makedev(240, 77), "sysfs does not show device 240:77"),
    ],
    ids=["memory", "zeros", "nothing"],
)
def test_nodes_made_elsewhere(storage: Storage, kind: int, number: int, words: str) -> None:
    node = storage.folder / "node"
    os.mknod(node, 0o600 | kind, number)
    assert words in refusal(node)


def test_a_file_of_the_kernel_in_another_namespace() -> None:
    disk = next(Path("/sys/block").iterdir()).name
    with another_namespace("mount -t sysfs other /sys") as pid:
        path = f"/proc/{pid}/root/sys/block/{disk}/queue/nr_requests"
        assert "a file of the kernel (sysfs), not storage" in refusal(path, Mode.BUFFERED)


@needs.mkfs_ext4
def test_a_device_mounted_between_the_look_and_the_opening(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    device = storage.mkfs(storage.loop())
    look = permission.refuse_used

    def mount_after(usage: UsageSnapshot, name: str, fd: int) -> None:
        look(usage, name, fd)
        storage.mount(device)

    monkeypatch.setattr(permission, "refuse_used", mount_after)
    text = refusal(device)
    assert f"{device} is claimed by the kernel (O_EXCL: busy)" in text
    assert "it carries: ext2/3/4 filesystem" in text


@pytest.fixture
def load() -> Iterator[LoadControl]:
    control = LoadControl()
    yield control
    control.close()


def _ends_when(load: LoadControl, target: str, happens: Callable[[], object]) -> str:
    """Write to a target, let something happen, and return why the load ended."""
    load.arm(replace(job(target), size_bytes=4 * MIB), everything_allowed(target))
    load.start()
    assert load.status.state is LoadState.RUNNING
    happens()
    assert load.wait(20.0), "it writes on"
    status = load.status
    assert status.state is LoadState.FAILED
    return status.message


@needs.mkfs_ext4
def test_a_load_ends_when_what_it_writes_is_mounted_by_another_way(storage: Storage, load: LoadControl) -> None:
    image = storage.image()
    first, second = storage.loop(backing=image), storage.loop(backing=image)
    # Beyond what the load writes, so that there is something to mount.
    partition = storage.mkfs(storage.partition(second, 1, 32, 30))
    text = _ends_when(load, first, lambda: storage.mount(partition))
    assert f"{first} is in use: the same bytes by another loop device, {partition} is mounted on" in text


def test_a_load_ends_when_the_file_it_writes_is_attached(storage: Storage, load: LoadControl) -> None:
    image = storage.image()
    image.write_bytes(os.urandom(4 * MIB))
    text = _ends_when(load, str(image), lambda: storage.loop(backing=image))
    assert f"{image} backs /dev/loop" in text
