"""A running load ends as soon as somebody begins to use what it writes to, by whatever way and in any namespace."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.guard import OpenTarget, UseMonitor, open_targets
from engine.guard.claim_check import ClaimCheck
from engine.guard.claims import is_claimed
from engine.guard.monitor import MountChanges
from engine.hostfs.sysblock import BlockDevice
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.job.target_text import parse_lun
from engine.running.control import LoadControl, LoadState
from tests import needs
from tests.kernel.conftest import Storage, run
from tests.kernel.test_guard_writers import MAPPED, THREAD, WAIT, process

pytestmark = [needs.root, needs.loop]
MIB = 1 << 20
HANG_S = 30.0


@pytest.fixture
def load() -> Iterator[LoadControl]:
    control = LoadControl()
    yield control
    control.close()


def begin(load: LoadControl, *paths: str) -> None:
    spec = TargetSpec(paths[0]) if len(paths) == 1 else parse_lun(",".join(paths))
    load.arm(JobSpec((spec,), Knobs(read_pct=50.0), size_bytes=4 * MIB), Permissions(frozenset(paths), True))
    load.start()
    assert load.status.state is LoadState.RUNNING


def end_of(load: LoadControl) -> str:
    """Why the load ended."""
    assert load.wait(HANG_S), "it writes on"
    assert load.status.state is LoadState.FAILED
    return load.status.message


def wait_until_free(path: str) -> None:
    """Wait for a claim to be given back, which the kernel does a moment after the last ring is gone."""
    deadline_s = time.monotonic() + HANG_S
    while time.monotonic() < deadline_s:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise AssertionError(f"{path} is never given back")


def two_loops(storage: Storage) -> tuple[str, str]:
    """Loop devices over one file, which has a partition beyond what the load writes, with a filesystem in it."""
    image = storage.image()
    return storage.loop(backing=image), storage.loop(backing=image)


@needs.mkfs_ext4
def test_a_mount_in_another_namespace(storage: Storage, load: LoadControl) -> None:
    written, other = two_loops(storage)
    partition = storage.mkfs(storage.partition(other, 1, 32, 30))
    begin(load, written)
    storage.mount_elsewhere(partition)
    text = end_of(load)
    assert f"{written} is in use: the same bytes by another loop device, {partition} is " in text
    # A mount on a busy machine may take longer than it takes to find its claim.
    assert "in the mount namespace of pid" in text or "is claimed by the kernel" in text


def test_a_claim_by_a_program(storage: Storage, load: LoadControl) -> None:
    written, other = two_loops(storage)
    begin(load, written)
    fd = os.open(other, os.O_RDONLY | os.O_EXCL)
    try:
        assert f"{other} is claimed by the kernel (O_EXCL: busy)" in end_of(load)
    finally:
        os.close(fd)
    wait_until_free(written)


def test_a_loop_device_that_is_attached_and_claimed_while_it_runs(storage: Storage, load: LoadControl) -> None:
    image = storage.image()
    written = storage.loop(backing=image)
    begin(load, written)
    other = storage.loop(backing=image)
    assert not load.wait(2.5), load.status.message
    fd = os.open(other, os.O_RDONLY | os.O_EXCL)
    try:
        assert f"{other} is claimed by the kernel (O_EXCL: busy)" in end_of(load)
    finally:
        os.close(fd)


def test_a_loop_device_that_grows_into_what_is_written(storage: Storage, load: LoadControl) -> None:
    image = storage.image(8 * MIB)
    other = storage.loop(backing=image)
    os.truncate(image, 64 * MIB)
    begin(load, storage.loop(backing=image, options=("--offset", str(8 * MIB))))
    fd = os.open(other, os.O_RDONLY | os.O_EXCL)
    try:
        assert not load.wait(1.5), load.status.message
        run("losetup", "--set-capacity", other)
        assert f"{other} is claimed by the kernel (O_EXCL: busy)" in end_of(load)
    finally:
        os.close(fd)


def test_a_loop_device_over_what_is_written(storage: Storage, load: LoadControl) -> None:
    written = storage.loop()
    begin(load, written)
    upper = storage.loop(backing=written)
    assert f"{written} is held by {upper}" in end_of(load)


@pytest.mark.parametrize("script", [MAPPED, THREAD], ids=["mapped", "thread"])
def test_a_writer_that_hides(storage: Storage, load: LoadControl, script: str) -> None:
    written, other = two_loops(storage)
    begin(load, written)
    with process(script + WAIT, other):
        assert f"the same bytes by another loop device, {other} is" in end_of(load)


def test_paths_of_one_lun_are_no_claim_by_others(storage: Storage, load: LoadControl) -> None:
    begin(load, *two_loops(storage))
    assert not load.wait(2.5), load.status.message


def test_mounts_elsewhere_do_not_end_it(storage: Storage, load: LoadControl) -> None:
    written, _ = two_loops(storage)
    begin(load, written)
    for _ in range(20):
        point = storage.mount("none", "-t", "tmpfs")
        run("umount", str(point))
    assert not load.wait(1.0), load.status.message


@pytest.mark.alone  # Who mounts anything meanwhile is heard, too.
def test_the_mount_table_is_heard_at_once_and_a_wake_ends_every_wait(tmp_path: Path) -> None:
    changes = MountChanges()
    try:
        assert not changes.wait(0.05)
        run("mount", "-t", "tmpfs", "none", str(tmp_path))
        run("umount", str(tmp_path))
        began_s = time.monotonic()
        assert changes.wait(HANG_S)
        assert not changes.wait(0.05)
        changes.wake()
        assert not changes.wait(HANG_S)
        assert time.monotonic() - began_s < HANG_S
    finally:
        changes.close()


def written_target(path: str) -> OpenTarget:
    return open_targets(
        JobSpec((TargetSpec(path),), Knobs(read_pct=50.0)), Permissions(frozenset({path}), destroy_data=True)
    )[0]


def test_a_device_that_does_not_answer_keeps_nobody_from_asking_the_others(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = storage.image()
    written, silent, other = (storage.loop(backing=image) for _ in range(3))
    answers = threading.Event()

    def stuck(device: BlockDevice, devices: Path) -> bool:
        if device.node == silent:
            answers.wait(HANG_S)
        return is_claimed(device, devices)

    target, monitor = written_target(written), UseMonitor()
    try:
        monkeypatch.setattr("engine.guard.claim_check.is_claimed", stuck)
        monitor.check([target])
        fd = os.open(other, os.O_RDONLY | os.O_EXCL)
        text = refusal_of(lambda: monitor.check([target]))
        os.close(fd)
        assert f"{other} is claimed by the kernel" in text
    finally:
        answers.set()
        monitor.stop()
        target.close()


def refusal_of(check: Callable[[], None]) -> str:
    deadline_s = time.monotonic() + HANG_S
    while time.monotonic() < deadline_s:
        try:
            check()
        except Exception as error:
            return str(error)
        time.sleep(0.05)
    raise AssertionError("never refused")


def test_a_watch_that_fails_ends_the_load(storage: Storage, load: LoadControl, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(check: ClaimCheck, *, mounts_changed: bool) -> None:
        raise ValueError("not foreseen")

    monkeypatch.setattr(ClaimCheck, "run", fail)
    begin(load, storage.loop())
    assert "who uses the targets can no longer be seen (not foreseen)" in end_of(load)


def test_the_threads_end_with_the_load(storage: Storage, load: LoadControl) -> None:
    begin(load, storage.loop())
    deadline_s = time.monotonic() + HANG_S
    while not watching() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert watching()
    load.stop()
    while watching() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not watching()


def watching() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lunscope-guard"]


@needs.mkfs_ext4
@pytest.mark.alone  # A process that is preempted holds the claim until it runs again.
def test_others_can_mount_what_is_only_asked_about(storage: Storage) -> None:
    """A question holds the claim for microseconds: of many mounts beside it, none fails."""
    written, other = two_loops(storage)
    partition = storage.mkfs(storage.partition(other, 1, 32, 30))
    point = storage.folder / "point"
    point.mkdir()
    target, monitor = written_target(written), UseMonitor()
    try:
        for _ in range(20):
            try:
                monitor.check([target])
            except Exception:
                monitor.stop()
                monitor = UseMonitor()
            done = subprocess.run(["mount", partition, str(point)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            run("umount", str(point))
    finally:
        monitor.stop()
        target.close()
