"""Regular files: what may be written, what never, and what shows when they change."""

from __future__ import annotations

import grp
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import LunscopeError, RefusedError, UsageError
from engine.guard import OpenTarget, TargetKind, open_targets
from engine.job.spec import BlockShare, JobSpec, Knobs, Mode, Permissions, TargetSpec
from tests import needs
from tests.kernel.conftest import Storage, run

MIB = 1 << 20


def job(*paths: Path | str, read_pct: float = 100.0, size: int | None = None, mode: Mode = Mode.BUFFERED) -> JobSpec:
    return JobSpec(tuple(TargetSpec(str(path)) for path in paths), Knobs(read_pct=read_pct, mode=mode), size_bytes=size)


def permit(*paths: Path, destroy: bool = False) -> Permissions:
    return Permissions(frozenset(map(str, paths)), destroy)


def refusal(path: Path, permissions: Permissions, read_pct: float = 50.0) -> str:
    with pytest.raises(RefusedError) as caught:
        open_targets(job(path, read_pct=read_pct), permissions)
    return str(caught.value)


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(MIB))
    return path


def open_one(job: JobSpec, permissions: Permissions | None = None) -> OpenTarget:
    (target,) = open_targets(job, permissions or Permissions())
    return target


def test_reading_opens_read_only(data_file: Path) -> None:
    target = open_one(job(data_file))
    assert (target.kind, target.size_bytes, target.align_bytes) == (TargetKind.FILE, MIB, 1)
    assert (target.name, target.path, target.writable, target.nr_requests) == (
        str(data_file),
        str(data_file),
        False,
        None,
    )
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.pwrite(target.fd, b"x", 0)
    target.close()
    target.close()
    assert target.fd == -1


def test_writing_needs_the_permission_for_exactly_this_name(data_file: Path) -> None:
    assert f"add --allow-write {data_file}" in refusal(data_file, Permissions())
    other = data_file.parent / "." / ".." / data_file.parent.name / data_file.name
    text = refusal(data_file, Permissions(frozenset({f"{data_file.parent}/./{data_file.name}"}), destroy_data=True))
    assert "is not exactly this name" in text
    assert other.exists()
    link = data_file.parent / "link"
    link.symlink_to(data_file)
    assert "writing is not allowed" in refusal(link, permit(data_file, destroy=True))


def test_an_existing_file_needs_destroy_data_too(data_file: Path) -> None:
    assert "is an existing file of 1 MiB: add --destroy-data" in refusal(data_file, permit(data_file))
    assert "is an existing file" in refusal(data_file, permit(data_file), read_pct=100.0)
    target = open_one(job(data_file, read_pct=0.0), permit(data_file, destroy=True))
    assert target.writable
    assert os.pwrite(target.fd, b"x", 0) == 1
    target.close()
    assert data_file.exists()


def test_hard_links_are_named(data_file: Path) -> None:
    (data_file.parent / "other").hardlink_to(data_file)
    assert "known under 2 names (hard links)" in refusal(data_file, permit(data_file))
    target = open_one(job(data_file), permit(data_file, destroy=True))
    assert "known under 2 names (hard links)" in target.notices
    target.close()


def test_a_file_that_is_open_for_writing_elsewhere(data_file: Path) -> None:
    with subprocess.Popen(["sleep", "60"], stdout=data_file.open("r+b")) as writer:
        text = refusal(data_file, permit(data_file, destroy=True))
        assert f"{data_file} is open for writing by sleep (pid {writer.pid})" in text
        writer.kill()
    open_one(job(data_file), permit(data_file, destroy=True)).close()


@needs.root
@needs.loop
def test_the_file_behind_a_loop_device(storage: Storage) -> None:
    image = storage.image()
    device = storage.loop(backing=image)
    assert f"{image} backs {device}: never written to: detach it first" in refusal(image, permit(image, destroy=True))
    link = image.with_name("hard")
    link.hardlink_to(image)
    assert f"{link} backs {device}" in refusal(link, permit(link, destroy=True))


@needs.root
@needs.loop
@needs.mkfs_ext4
def test_the_file_behind_a_mounted_image_names_the_mount(storage: Storage) -> None:
    image = storage.image()
    device = storage.loop(backing=image)
    point = storage.mount(storage.mkfs(device))
    text = refusal(image, permit(image, destroy=True))
    assert f"{image} backs {device}, which is mounted on {point} (ext4)" in text


@needs.root
@needs.swap
def test_a_swap_file(storage: Storage) -> None:
    path = storage.folder / "swapfile"
    with path.open("wb") as file:
        file.write(bytes(16 * MIB))
        os.fsync(file.fileno())
    path.chmod(0o600)
    try:
        storage.swapon(str(path))
    except AssertionError as error:
        pytest.skip(f"this filesystem takes no swap file: {error}")
    assert "is an active swap file: never written to: run swapoff" in refusal(path, permit(path, destroy=True))


def test_a_running_program(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as process:
        with pytest.raises(LunscopeError, match="running program"):
            open_one(job(program), permit(program, destroy=True))
        process.kill()


@needs.root
def test_an_immutable_file(storage: Storage) -> None:
    path = storage.folder / "immutable"
    path.write_bytes(bytes(MIB))
    done = subprocess.run(["chattr", "+i", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"chattr +i: {done.stderr.strip()}")
    storage.undo("chattr", "-i", str(path))
    with pytest.raises(LunscopeError, match="immutable or append-only"):
        open_one(job(path), permit(path, destroy=True))
    run("chattr", "-i", str(path))


def test_a_file_replaced_after_opening(data_file: Path) -> None:
    target = open_one(job(data_file), permit(data_file, destroy=True))
    target.recheck()
    replacement = data_file.with_name("new")
    replacement.write_bytes(bytes(MIB))
    replacement.rename(data_file)
    with pytest.raises(RefusedError, match="its name leads to something else"):
        target.recheck()
    os.pwrite(target.fd, b"x", 0)
    target.close()
    assert data_file.read_bytes() == bytes(MIB)


def test_a_file_swapped_between_the_look_and_the_opening(data_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is resolved once: what is exchanged under it afterwards is never touched."""
    precious = data_file.with_name("precious")
    precious.write_bytes(b"keep")
    from engine.guard import permission

    def exchange(*_: object) -> None:
        data_file.unlink()
        data_file.symlink_to(precious)

    monkeypatch.setattr(permission, "refuse_file", exchange)
    target = open_one(job(data_file), permit(data_file, destroy=True))
    os.pwrite(target.fd, b"overwritten", 0)
    with pytest.raises(RefusedError):
        target.recheck()
    target.close()
    assert precious.read_bytes() == b"keep"


@pytest.mark.parametrize("change", ["truncate", "link", "hole", "remove"])
def test_changes_after_opening_are_refused(data_file: Path, change: str) -> None:
    target = open_one(job(data_file))
    target.recheck()
    if change == "truncate":
        os.truncate(data_file, 4096)
    elif change == "link":
        data_file.with_name("second").hardlink_to(data_file)
    elif change == "hole":
        os.fsync(target.fd)
        run("fallocate", "--punch-hole", "--offset", "0", "--length", "65536", str(data_file))
    else:
        data_file.unlink()
    words = {
        "truncate": "it shrank to 4096 bytes",
        "link": "another name",
        "hole": "holes",
        "remove": "its name is gone",
    }
    with pytest.raises(RefusedError, match=words[change]):
        target.recheck()
    target.close()


def test_never_written_space_is_announced(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(4 * MIB)
        file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    target = open_one(job(path))
    assert target.facts.unwritten_share == 0.75
    target.close()


def test_allocated_but_unwritten_space_is_announced(tmp_path: Path) -> None:
    path = tmp_path / "allocated"
    run("fallocate", "--length", str(MIB), str(path))
    target = open_one(job(path))
    assert target.facts.unwritten_share == 1.0
    target.close()


def test_zeros_are_announced(tmp_path: Path) -> None:
    path = tmp_path / "zeros"
    path.write_bytes(bytes(MIB))
    target = open_one(job(path))
    assert (target.facts.samples, target.facts.zero_share) == (64, 1.0)
    target.close()


def test_a_file_in_memory_is_announced() -> None:
    path = Path("/dev/shm") / f"lunscope-test-{os.getpid()}"
    path.write_bytes(os.urandom(MIB))
    try:
        target = open_one(job(path))
        assert "on tmpfs: measures memory, not storage" in target.notices
        target.close()
    finally:
        path.unlink()


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (2 * MIB, "has only 1 MiB"),
        (0, "at least one block"),
        (5000, "not a multiple of the block \\(4k\\): use 4k"),
        (-4096, "at least one block"),
    ],
)
def test_sizes_that_cannot_be(data_file: Path, size: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_one(job(data_file, size=size))


def test_an_empty_file_and_one_smaller_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.touch()
    with pytest.raises(UsageError, match="its size is 0"):
        open_one(job(path))
    path.write_bytes(b"abc")
    with pytest.raises(UsageError, match="less than one block of 4k"):
        open_one(job(path))


def test_direct_io_states_its_alignment_and_refuses_smaller_blocks(data_file: Path) -> None:
    target = open_one(job(data_file, mode=Mode.DIRECT))
    align = target.align_bytes
    assert align >= 512
    assert align & (align - 1) == 0
    assert target.size_bytes % align == 0
    target.close()
    bad = JobSpec((TargetSpec(str(data_file)),), Knobs(blocks=(BlockShare(align + 1),)))
    with pytest.raises(UsageError, match="needs multiples of"):
        open_one(bad)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/dev/null", "a character device"),
        ("/", "a folder"),
        ("/proc/self/status", "a file of the kernel \\(proc\\)"),
        ("/sys/kernel/uevent_seqnum", "a file of the kernel \\(sysfs\\)"),
        ("", "an empty name"),
        ("a\0b", "null"),
        ("/no/such/place", "no such file or device"),
        ("x" * 300, "too long"),
    ],
)
def test_what_is_no_storage(path: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_one(job(path))


def test_pipes_sockets_and_dangling_links_do_not_block(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match="a named pipe"):
        open_one(job(pipe))
    with pytest.raises(UsageError, match=r"leads to .*gone, which does not exist"):
        open_one(job(link))


def test_names_cannot_command_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_one(job(tmp_path / "evil\x1b]0;x\x07\u202e"))
    assert str(caught.value).isprintable()


def test_all_or_nothing(data_file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.bin"
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(UsageError, match="a character device"):
        open_targets(job(data_file, new, "/dev/null", size=MIB), Permissions(typed=frozenset({str(new)})))
    assert not new.exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


_AS_NOBODY = """
import os, sys
from engine.errors import LunscopeError
from engine.guard import open_targets
from engine.job.spec import JobSpec, Permissions, TargetSpec
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    open_targets(JobSpec((TargetSpec(sys.argv[1]),)), Permissions())
except LunscopeError as error:
    print(error.exit_code, error)
"""


@needs.root
@needs.loop
def test_a_missing_right_names_the_owner_and_the_fix(storage: Storage) -> None:
    node = Path("/dev") / f"lunscope-test-{os.getpid()}"
    os.mknod(node, 0o640 | stat.S_IFBLK, Path(storage.loop()).stat().st_rdev)
    try:
        os.chown(node, 0, 6)
        done = subprocess.run(
            [sys.executable, "-c", _AS_NOBODY, str(node)], capture_output=True, text=True, check=False
        )
    finally:
        node.unlink()
    group = grp.getgrgid(6).gr_name
    assert done.stdout.strip() == (
        f"2 {node}: no right to read it: it belongs to root:{group} with mode 0640: "
        f"run as root or join the group {group}"
    )
