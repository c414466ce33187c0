"""Scratch files and new files: filled, on disk, and never left behind."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest

from engine import _native
from engine.config import DEFAULT_SCRATCH_BYTES, SCRATCH_ENV, scratch_folder
from engine.errors import LunscopeError, RefusedError, StoppedError, UsageError
from engine.guard import TargetKind, fill_scratch, open_targets
from engine.job.spec import JobSpec, Knobs, Mode, Permissions, TargetSpec
from engine.running.control import LoadControl
from engine.running.status import LoadState
from tests import needs
from tests.kernel.conftest import Storage

MIB = 1 << 20


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "scratch"
    monkeypatch.setenv(SCRATCH_ENV, str(folder))
    return folder


def scratch_job(count: int = 1, size: int | None = 16 * MIB, mode: Mode = Mode.DIRECT) -> JobSpec:
    return JobSpec((TargetSpec(),) * count, Knobs(read_pct=50.0, mode=mode), size_bytes=size)


def ignore(_: float) -> None:
    """Take progress and do nothing."""


def test_scratch_files_are_filled_with_data_that_does_not_compress(scratch: Path) -> None:
    targets = open_targets(scratch_job(2), Permissions())
    seen: list[float] = []
    fill_scratch(targets, 7, seen.append, threading.Event())
    contents = []
    for target in targets:
        assert (target.kind, target.path, target.writable, target.size_bytes) == (
            TargetKind.SCRATCH,
            None,
            True,
            16 * MIB,
        )
        assert os.fstat(target.fd).st_nlink == 0
        contents.append(Path(f"/proc/self/fd/{target.fd}").read_bytes())
        target.recheck()
        target.close()
    assert len(zlib.compress(contents[0], 1)) > 0.99 * 16 * MIB
    assert contents[0] != contents[1]
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) >= 4
    assert targets[1].name == f"scratch 2 (16 MiB in {scratch})"


def test_the_same_seed_fills_the_same(scratch: Path) -> None:
    def content(seed: int) -> bytes:
        (target,) = open_targets(scratch_job(), Permissions())
        fill_scratch([target], seed, ignore, threading.Event())
        data = Path(f"/proc/self/fd/{target.fd}").read_bytes()
        target.close()
        return data

    assert content(3) == content(3) != content(4)


def test_the_default_size_and_the_folder_of_the_user(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (target,) = open_targets(scratch_job(size=None), Permissions())
    assert target.size_bytes == DEFAULT_SCRATCH_BYTES == 256 * MIB
    target.close()
    assert scratch.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv(SCRATCH_ENV)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert scratch_folder() == Path("/somewhere/lunscope")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert scratch_folder() == Path.home() / ".cache/lunscope"


def test_nothing_is_in_the_folder_at_any_time(scratch: Path) -> None:
    (target,) = open_targets(scratch_job(), Permissions())
    assert list(scratch.iterdir()) == []
    fill_scratch([target], 1, ignore, threading.Event())
    assert list(scratch.iterdir()) == []
    target.close()


_HOLD = """
import sys, threading
from engine.guard import fill_scratch, open_targets
from engine.job.spec import JobSpec, Permissions
targets = open_targets(JobSpec(size_bytes=64 << 20), Permissions())
def progress(share):
    if 0.2 < share < 0.5:
        print("filling", flush=True)
        threading.Event().wait()
fill_scratch(targets, 1, progress, threading.Event())
"""


@needs.loop
@needs.mkfs_ext4
def test_kill_while_filling_leaves_nothing(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file system of its own, whose free space nobody else changes."""
    folder = storage.mount(storage.mkfs(storage.loop(1024 * MIB))) / "scratch"
    folder.mkdir(0o700)
    monkeypatch.setenv(SCRATCH_ENV, str(folder))

    def free_bytes() -> int:
        found = os.statvfs(folder)
        return found.f_bfree * found.f_frsize

    before = free_bytes()
    with subprocess.Popen([sys.executable, "-c", _HOLD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "filling\n"
        assert before - free_bytes() > 10 * MIB
        process.send_signal(signal.SIGKILL)
    assert list(folder.iterdir()) == []
    assert before - free_bytes() < MIB


def test_a_fill_ends_with_the_lease_although_nobody_stops_it(scratch: Path) -> None:
    asked = itertools.count()
    control = LoadControl(may_write=lambda: next(asked) < 3)
    with pytest.raises(StoppedError, match="nothing was heard any more"):
        control.arm(scratch_job(size=64 * MIB), Permissions())
    assert control.status.progress is None
    assert control.status.state is LoadState.IDLE
    assert next(asked) == 4, "it was asked after each step and not again"
    assert list(scratch.iterdir()) == []


def named(path: Path) -> Permissions:
    """What the operator allows by the name of a target."""
    return Permissions(typed=frozenset({str(path)}))


def test_a_stop_while_filling_ends_it_and_removes_what_was_made(tmp_path: Path) -> None:
    new = tmp_path / "new.bin"
    job = JobSpec((TargetSpec(), TargetSpec(str(new))), size_bytes=64 * MIB)
    targets = open_targets(job, named(new))
    assert new.exists()
    stop = threading.Event()
    with pytest.raises(StoppedError, match="stopped while it was filled"):
        fill_scratch(targets, 1, lambda _: stop.set(), stop)
    assert not new.exists()
    assert [target.fd for target in targets] == [-1, -1]


def test_a_new_file_is_filled_kept_and_writable(tmp_path: Path) -> None:
    new = tmp_path / "new.bin"
    job = JobSpec((TargetSpec(str(new)),), Knobs(read_pct=50.0), size_bytes=9 * MIB + 4096)
    (target,) = open_targets(job, named(new))
    assert (target.kind, target.writable, target.size_bytes) == (TargetKind.FILE, True, 9 * MIB + 4096)
    fill_scratch([target], 1, ignore, threading.Event())
    target.recheck()
    target.is_unused = False
    target.close()
    assert new.stat().st_size == 9 * MIB + 4096
    assert new.stat().st_mode & 0o777 == 0o600
    assert new.read_bytes().count(0) < new.stat().st_size // 100
    with pytest.raises(RefusedError, match="add --allow-write"):
        open_targets(job, Permissions())


@pytest.mark.parametrize("filled", [False, True])
def test_a_new_file_on_which_no_load_began_is_removed(tmp_path: Path, filled: bool) -> None:
    new = tmp_path / "new.bin"
    (target,) = open_targets(JobSpec((TargetSpec(str(new)),), size_bytes=MIB), named(new))
    if filled:
        fill_scratch([target], 1, ignore, threading.Event())
    target.close()
    assert not new.exists()


def test_a_job_file_makes_files_in_the_scratch_folder_only(scratch: Path, tmp_path: Path) -> None:
    scratch.mkdir()
    (scratch / "out").symlink_to(tmp_path)
    in_scratch = Permissions(make_in=scratch)
    for path in (tmp_path / "new", scratch / ".." / "new", scratch / "out" / "new"):
        job = JobSpec((TargetSpec(str(path)),), size_bytes=MIB)
        for permissions in (Permissions(), in_scratch, Permissions(destroy_data=True), named(tmp_path / "other")):
            with pytest.raises(RefusedError, match="a job file or fleet makes files in the scratch folder only"):
                open_targets(job, permissions)
        for permissions in (named(path), Permissions(frozenset({str(path)}))):
            open_targets(job, permissions)[0].close()
        assert not (tmp_path / "new").exists()
    open_targets(JobSpec((TargetSpec(str(scratch / "new")),), size_bytes=MIB), in_scratch)[0].close()


def test_only_our_own_file_is_removed(tmp_path: Path) -> None:
    new = tmp_path / "new.bin"
    (target,) = open_targets(JobSpec((TargetSpec(str(new)),), size_bytes=MIB), named(new))
    new.unlink()
    new.write_text("of somebody else")
    target.close()
    assert new.read_text() == "of somebody else"


def test_no_new_file_among_the_devices() -> None:
    path = Path("/dev/lunscope-no-such-disk")
    with pytest.raises(UsageError, match="no such file or device"):
        open_targets(JobSpec((TargetSpec(str(path)),), size_bytes=MIB), Permissions())
    assert not path.exists()


def test_a_new_file_in_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(LunscopeError, match="give a folder that exists"):
        open_targets(JobSpec((TargetSpec(f"{tmp_path}/no/new"),), size_bytes=MIB), named(tmp_path / "no" / "new"))


def test_a_reserve_stays_free(scratch: Path, tmp_path: Path) -> None:
    status = os.statvfs(tmp_path)
    too_much = status.f_bavail * status.f_frsize // (4 * MIB) * (4 * MIB)
    with pytest.raises(LunscopeError) as caught:
        open_targets(scratch_job(size=too_much), Permissions())
    text = str(caught.value)
    assert "not enough space" in text
    assert "stay free" in text
    assert "--size" in text
    assert SCRATCH_ENV in text
    assert not scratch.exists()
    new = tmp_path / "new"
    with pytest.raises(LunscopeError, match="not enough space"):
        open_targets(JobSpec((TargetSpec(str(new)),), size_bytes=too_much), named(new))
    assert not new.exists()


@pytest.fixture
def small_disk(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A filesystem of 96 MiB that cannot allocate, with hardly any reserve."""
    point = storage.mount(storage.mkfs(storage.loop(96 * MIB), "ext2"))
    monkeypatch.setenv(SCRATCH_ENV, str(point))
    monkeypatch.setattr("engine.guard.scratch._RESERVE_BYTES", 0)
    return point


@needs.root
@needs.loop
@needs.mkfs_ext4
def test_a_disk_too_small_to_allocate(small_disk: Path) -> None:
    free = os.statvfs(small_disk).f_bfree
    with pytest.raises(LunscopeError, match="not enough space: 128 MiB needed"):
        open_targets(scratch_job(size=128 * MIB), Permissions())
    assert os.statvfs(small_disk).f_bfree == free


@needs.root
@needs.loop
@needs.mkfs_ext4
def test_a_disk_that_somebody_else_fills_meanwhile(small_disk: Path) -> None:
    free = os.statvfs(small_disk).f_bfree
    new = small_disk / "new"
    targets = open_targets(JobSpec((TargetSpec(), TargetSpec(str(new))), size_bytes=32 * MIB), named(new))
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (free * os.statvfs(small_disk).f_frsize - 50 * MIB))
    with pytest.raises(LunscopeError, match="not enough space: 32 MiB needed") as caught:
        fill_scratch(targets, 1, ignore, threading.Event())
    assert str(small_disk) in str(caught.value)
    ballast.unlink()
    assert not new.exists()
    assert os.statvfs(small_disk).f_bfree >= free - 16


def test_a_device_error_while_filling_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(_native, "fill", fail)
    targets = open_targets(scratch_job(), Permissions())
    with pytest.raises(LunscopeError, match=r"scratch 1 .* cannot be filled: Input/output error"):
        fill_scratch(targets, 1, ignore, threading.Event())
    assert targets[0].fd == -1


def test_scratch_in_memory_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/dev/shm") / f"lunscope-test-{os.getpid()}"
    monkeypatch.setenv(SCRATCH_ENV, str(folder))
    try:
        (target,) = open_targets(scratch_job(mode=Mode.BUFFERED), Permissions())
        assert "on tmpfs: measures memory, not storage" in target.notices
        target.close()
    finally:
        folder.rmdir()


def test_a_folder_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SCRATCH_ENV, "/proc/lunscope")
    with pytest.raises(LunscopeError, match="/proc/lunscope: "):
        open_targets(scratch_job(), Permissions())


def test_filesystems_without_nameless_files_get_a_name_for_a_moment(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def no_tmpfile(path: object, flags: int, *rest: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return real_open(path, flags, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", no_tmpfile)
    (target,) = open_targets(scratch_job(), Permissions())
    assert list(scratch.iterdir()) == []
    fill_scratch([target], 1, ignore, threading.Event())
    target.recheck()
    target.close()
