"""Targets whose bytes are known by other names: files of the layers of overlays, here and in other namespaces."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.job.spec import Mode
from tests import needs
from tests.kernel.conftest import Storage, run
from tests.kernel.test_guard_attacks import accept, claim, refusal

pytestmark = [needs.root, needs.loop]
MIB = 1 << 20
MS_RDONLY = 1


@pytest.fixture
def layers(storage: Storage) -> Path:
    """A folder with those of an overlay that is not mounted yet."""
    whole = storage.folder / "layers"
    whole.mkdir()
    run("mount", "-t", "tmpfs", "layers", str(whole))
    storage.undo("umount", "--lazy", str(whole))
    for name in ("upper", "work", "lower", "merged"):
        (whole / name).mkdir()
    return whole


def mount_command(layers: Path) -> list[str]:
    options = f"lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work"
    return ["mount", "-t", "overlay", "o", "-o", options, f"{layers}/merged"]


@pytest.fixture
def overlay(storage: Storage, layers: Path) -> tuple[Path, Path]:
    """The upper folder of an overlay and where it is mounted."""
    run(*mount_command(layers))
    storage.undo("umount", "--lazy", str(layers / "merged"))
    return layers / "upper", layers / "merged"


def container_code(layers: Path, script: str) -> str:
    """Python that mounts the overlay, runs a script in its root, and prints what that told, or its pid."""
    return (
        "import mmap, os, subprocess, sys\nfrom tests.attaching import attach_one\n"
        f"subprocess.run({mount_command(layers)!r}, check=True)\nos.chdir({str(layers / 'merged')!r})\n"
        f"told = os.getpid()\n{script}\nprint(told, flush=True)\n"
    )


@contextmanager
def container(layers: Path, script: str) -> Iterator[str]:
    """Mount the overlay where nobody else sees it, run a script of Python there, and wait; what it told, or its pid."""
    code = f"{container_code(layers, script)}sys.stdin.read()\n"
    command = ["unshare", "--mount", "--propagation", "slave", sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        yield other.stdout.readline().strip()
        other.communicate()


@pytest.mark.parametrize("way", ["down", "up", "bound"])
def test_the_file_behind_a_loop_device_through_an_overlay(
    storage: Storage, overlay: tuple[Path, Path], way: str
) -> None:
    upper, merged = overlay
    (upper / "sub").mkdir()
    (upper / "sub/image").write_bytes(bytes(8 * MIB))
    attached, asked = upper / "sub/image", merged / "sub/image"
    if way == "down":
        attached, asked = asked, attached
    elif way == "bound":
        asked = storage.mount(str(merged / "sub"), "--bind") / "image"
    accept(asked, Mode.BUFFERED)
    device = storage.loop(backing=attached)
    assert refusal(asked, Mode.BUFFERED).startswith(f"{asked} backs {device}")


@needs.mkfs_ext4
def test_loop_devices_over_one_file_by_its_two_names_on_an_overlay(
    storage: Storage, overlay: tuple[Path, Path]
) -> None:
    upper, merged = overlay
    (upper / "image").write_bytes(bytes(16 * MIB))
    below, above = storage.loop(backing=upper / "image"), storage.loop(backing=merged / "image")
    point = storage.mount(storage.mkfs(above))
    assert f"the same bytes by another loop device, {above} is mounted on {point}" in refusal(below)


WRITES = "kept = os.open('image', os.O_RDWR)"
MAPS = "fd = os.open('image', os.O_RDWR); kept = mmap.mmap(fd, 4096); os.close(fd)"


@pytest.mark.parametrize("made_in", ["upper", "lower"])
@pytest.mark.parametrize("script", [WRITES, MAPS])
def test_who_writes_in_another_namespace_to_the_file_in_the_layer(
    storage: Storage, layers: Path, script: str, made_in: str
) -> None:
    """A file of the lower layer is copied up, and has the number of the original on the overlay."""
    (layers / made_in / "image").write_bytes(bytes(4 * MIB))
    with container(layers, script) as pid:
        device = storage.loop(backing=layers / "upper/image")
        text = refusal(device)
        assert f"{device} is in use: its backing file {layers}/upper/image is " in text
        assert f"for writing by {Path(sys.executable).name[:6]}" in text
        assert f"(pid {pid})" in text
    accept(device)


def test_who_writes_to_a_file_that_was_copied_up_to_a_layer_without_attributes(storage: Storage, layers: Path) -> None:
    """Neither the time of birth nor the attribute of the original says that they are the same."""
    bare = layers / "bare"
    bare.mkdir()
    run("mount", "-t", "ramfs", "bare", str(bare))
    storage.undo("umount", "--lazy", str(bare))
    for name in ("upper", "work"):
        (layers / name).rmdir()
        (bare / name).mkdir()
        (layers / name).symlink_to(bare / name)
    (layers / "lower/image").write_bytes(bytes(4 * MIB))
    (bare / "other").write_bytes(bytes(5 * MIB))
    with container(layers, WRITES) as pid:
        device = storage.loop(backing=bare / "upper/image")
        assert f"(pid {pid})" in refusal(device)
        accept(storage.loop(backing=bare / "other"))
    accept(device)


def test_files_made_at_the_same_time_are_not_taken_for_each_other(storage: Storage, layers: Path) -> None:
    try:
        os.setxattr(layers, "user.lunscope", b"x")
    except OSError:
        pytest.skip("tmpfs has no user attributes (Linux 6.6), so that a file may be one that was copied up")
    for name in ("image", *"abc"):
        with (layers / "upper" / name).open("wb") as file:
            file.truncate(4 * MIB)
    devices = [storage.loop(backing=layers / "upper" / name) for name in "abc"]
    with container(layers, WRITES):
        for device in devices:
            accept(device)


@needs.mkfs_ext4
@pytest.mark.parametrize("made_in", ["upper", "lower"])
def test_a_filesystem_that_a_container_has_on_a_file_in_its_overlay(
    storage: Storage, layers: Path, made_in: str
) -> None:
    image = layers / made_in / "image"
    image.write_bytes(bytes(16 * MIB))
    run("mkfs.ext4", "-q", "-F", str(image))
    point = storage.folder / "inner"
    point.mkdir()
    with container(layers, f"attach_one('mount', '-o', 'loop', 'image', {str(point)!r})"):
        device = storage.loop(backing=layers / "upper/image")
        text = refusal(device)
        assert "the same bytes by another loop device, /dev/loop" in text
        assert f" is mounted on {point} (ext4) in the mount namespace of pid " in text


@pytest.mark.parametrize("target", ["upper", "merged"])
def test_an_overlay_over_an_overlay(storage: Storage, overlay: tuple[Path, Path], target: str) -> None:
    upper, merged = overlay
    (upper / "image").write_bytes(bytes(4 * MIB))
    outer = storage.folder / "outer"
    outer.mkdir()
    run("mount", "-t", "overlay", "o", "-o", f"lowerdir={merged}:{storage.folder}", str(outer))
    storage.undo("umount", "--lazy", str(outer))
    device = storage.loop(backing=outer / "image", options=("--read-only",))
    asked = {"upper": upper, "merged": merged}[target] / "image"
    assert refusal(asked, Mode.BUFFERED).startswith(f"{asked} backs {device}")


def test_a_file_of_which_only_the_metadata_was_copied_up(storage: Storage, layers: Path) -> None:
    """Its attributes are those of a file in the upper layer, its bytes those of the lower one."""
    (layers / "lower/image").write_bytes(bytes(4 * MIB))
    *command, point = mount_command(layers)
    command[-1] += ",metacopy=on"
    run(*command, point)
    storage.undo("umount", "--lazy", point)
    (layers / "merged/image").chmod(0o600)
    reader = storage.loop(backing=layers / "merged/image", options=("--read-only",))
    device = storage.loop(backing=layers / "lower/image")
    text = refusal(device, destroy_data=False)
    assert f"the file behind {reader}, {layers}/merged/image, may be the same" in text
    accept(device)


LEFT = """told = attach_one('losetup', '--find', '--show', 'image')
merged = os.getcwd()
os.chdir('/')
subprocess.run(['umount', '--lazy', merged], check=True)
"""


@pytest.mark.parametrize("made_in", ["upper", "lower"])
def test_a_loop_device_over_a_file_that_no_namespace_shows(storage: Storage, layers: Path, made_in: str) -> None:
    """One that was copied up has the number of the original, so that nothing tells which file it is."""
    (layers / made_in / "image").write_bytes(bytes(4 * MIB))
    with container(layers, LEFT) as left:
        storage.undo("losetup", "--detach", left)
        device = storage.loop(backing=layers / "upper/image")
        with claim(left):
            text = refusal(device)
        if made_in == "upper":
            assert f"the same bytes by another loop device, {left} is claimed" in text
        else:
            assert f"what may be the same bytes by another loop device, {left} is claimed" in text
            assert f"the file behind {left}, /image, may be the same" in refusal(device, destroy_data=False)
        accept(device)


@needs.mkfs_erofs
def test_an_image_that_is_mounted_without_a_loop_device(storage: Storage) -> None:
    source, image, point = (storage.folder / name for name in ("source", "image", "point"))
    source.mkdir()
    point.mkdir()
    run("mkfs.erofs", str(image), str(source))
    mounted = ctypes.CDLL(None, use_errno=True).mount(bytes(image), bytes(point), b"erofs", MS_RDONLY, None)
    if mounted < 0:
        pytest.skip(f"the kernel mounts no images of EROFS: {os.strerror(ctypes.get_errno())}")
    storage.undo("umount", "--lazy", str(point))
    assert refusal(image, Mode.BUFFERED).startswith(f"{image} is mounted on {point} (erofs)")
