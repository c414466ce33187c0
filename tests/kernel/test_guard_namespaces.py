"""What is used in mount namespaces that no process lives in: bound to a file, or of a single thread."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.hostfs import namespaces
from engine.job.spec import Mode
from tests import needs
from tests.attaching import backing_of
from tests.kernel.conftest import Storage, run
from tests.kernel.test_guard_attacks import accept, claim, refusal
from tests.kernel.test_guard_overlays import LEFT, MIB, container_code, layers

pytestmark = [needs.root, needs.loop]
PATIENCE_S = 30.0
__all__ = ["layers"]


@pytest.fixture(params=["listed by the kernel", "found where they are bound"])
def lists(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels since and before 6.11."""
    if request.param == "found where they are bound":
        monkeypatch.setattr(namespaces, "mount_namespace_beside", _not_listed)


def _not_listed(_: int | None, *, is_before: bool) -> None:
    raise OSError(25, f"Inappropriate ioctl for device ({is_before})")


@contextmanager
def left_namespace(storage: Storage, code: str) -> Iterator[str]:
    """Run a script of Python in a mount namespace that is bound to a file and has no process then; what it told."""
    folder = storage.folder / "bound"
    folder.mkdir()
    run("mount", "-t", "tmpfs", "bound", str(folder))
    run("mount", "--make-private", str(folder))
    pin = folder / "namespace"
    pin.touch()
    try:
        yield run("unshare", f"--mount={pin}", "--propagation", "slave", sys.executable, "-c", code)
    finally:
        subprocess.run(["umount", str(pin)], check=False)
        run("umount", str(folder))


@needs.mkfs_ext4
@pytest.mark.usefixtures("lists")
@pytest.mark.parametrize("made_in", ["upper", "lower"])
def test_a_filesystem_on_a_file_in_the_overlay_of_a_namespace_without_processes(
    storage: Storage, layers: Path, made_in: str
) -> None:
    image, point = layers / made_in / "image", storage.folder / "inner"
    image.write_bytes(bytes(16 * MIB))
    run("mkfs.ext4", "-q", "-F", str(image))
    point.mkdir()
    script = f"attach_one('mount', '-o', 'loop', 'image', {str(point)!r})"
    with left_namespace(storage, container_code(layers, script)):
        device = storage.loop(backing=layers / "upper/image")
        text = refusal(device)
        assert f"{device} is in use: the same bytes by another loop device, /dev/loop" in text
        assert f" is mounted on {point} (ext4) in the mount namespace mnt:[" in text
        assert "], which no process is in: never written to: unmount it first" in text
    (inner,) = set(re.findall(r"/dev/loop\d+", text)) - {device}
    deadline_s = time.monotonic() + PATIENCE_S
    while backing_of(inner) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    accept(device)


@pytest.mark.usefixtures("lists")
def test_a_claimed_loop_device_of_a_namespace_without_processes(storage: Storage, layers: Path) -> None:
    (layers / "lower/image").write_bytes(bytes(4 * MIB))
    script = "told = attach_one('losetup', '--find', '--show', 'image')"
    with left_namespace(storage, container_code(layers, script)) as left:
        storage.undo("losetup", "--detach", left)
        device = storage.loop(backing=layers / "upper/image")
        with claim(left):
            text = refusal(device)
            assert f"{device} is in use: the same bytes by another loop device, {left} is claimed by the kernel" in text
        accept(device)


def test_a_look_into_a_namespace_leaves_no_descriptor_behind(storage: Storage, layers: Path) -> None:
    device = storage.loop()
    with left_namespace(storage, container_code(layers, "")):
        gc.collect()
        before = len([*Path("/proc/self/fd").iterdir()])
        accept(device)
        assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_claimed_loop_device_over_a_file_that_may_be_the_target(storage: Storage, layers: Path) -> None:
    """The overlay is gone: nothing tells which file it is, but that something uses it is known."""
    (layers / "lower/image").write_bytes(bytes(4 * MIB))
    with left_namespace(storage, container_code(layers, LEFT)) as left:
        storage.undo("losetup", "--detach", left)
        device, image = storage.loop(backing=layers / "upper/image"), layers / "upper/image"
        with claim(left):
            text = refusal(device)
            assert f"what may be the same bytes by another loop device, {left} is claimed by the kernel" in text
        accept(device)
        run("losetup", "--detach", device)
        with claim(left):
            assert refusal(image, Mode.BUFFERED).startswith(f"{image} may back {left}, which is claimed by the kernel")


SWAPS = """import ctypes, os, subprocess, sys, threading
libc, told, (device, point) = ctypes.CDLL(None, use_errno=True), [], sys.argv[1:]
def swap():
    if libc.unshare(0x20000):
        told.append(os.strerror(ctypes.get_errno()))
    else:
        for command in (['mount', '--make-rprivate', '/'], ['mount', device, point], ['swapon', f'{point}/swap']):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                told.append(done.stderr)
    told.append(threading.get_native_id())
    ready.set()
    stop.wait()
    subprocess.run(['swapoff', f'{point}/swap'])
ready, stop = threading.Event(), threading.Event()
thread = threading.Thread(target=swap)
thread.start()
ready.wait()
print(*told, flush=True)
sys.stdin.read()
stop.set()
thread.join()
"""


@needs.mkfs_ext4
@needs.swap
@pytest.mark.usefixtures("lists")
def test_a_swap_file_in_the_namespace_of_one_thread(storage: Storage) -> None:
    """Its first thread is in our namespace, so that neither /proc/PID/root nor ours leads to the file."""
    device = storage.mkfs(storage.loop(size_bytes=128 * MIB))
    point = storage.mount(device)
    swap = point / "swap"
    swap.write_bytes(bytes(16 * MIB))
    swap.chmod(0o600)
    run("mkswap", str(swap))
    (point / "other").write_bytes(bytes(16 * MIB))
    run("umount", str(point))
    command = [sys.executable, "-c", SWAPS, device, str(point)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        thread = process.stdout.readline().strip()
        assert thread.isdigit(), thread
        inside = Path(f"/proc/{process.pid}/task/{thread}/root{point}")
        assert f"{inside}/swap is an active swap file" in refusal(inside / "swap", Mode.BUFFERED)
        accept(inside / "other", Mode.BUFFERED)
        process.communicate()
