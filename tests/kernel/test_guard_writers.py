"""Writers that hide: mappings without a descriptor, descriptors of one thread, descriptors in sockets, namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.backend.outstanding import Waits
from engine.errors import LunscopeError, RefusedError
from engine.guard import open_targets, recheck_targets
from engine.hostfs.kernel_files import Roots
from engine.hostfs.writers import Writers, read_writers
from engine.job.spec import JobSpec, Knobs, Mode, Permissions, TargetSpec
from tests import needs
from tests.fuzz.kernel_storage import attach_free
from tests.kernel.conftest import Storage, run

pytestmark = [needs.root, needs.loop]
MIB = 1 << 20

MAP = """import ctypes, mmap, os, sys
def map_and_close(prot=mmap.PROT_READ | mmap.PROT_WRITE, flags=mmap.MAP_SHARED, access=os.O_RDWR):
    fd = os.open(sys.argv[1], access)
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    assert libc.mmap(None, ctypes.c_size_t(4096), prot, flags, fd, ctypes.c_long(0)) != ctypes.c_void_p(-1).value
    os.close(fd)
"""
"""Maps the first page and closes the descriptor, which the mmap module keeps."""
MAPPED = MAP + "map_and_close()\n"
THREAD = """import ctypes, os, sys, threading
opened = threading.Event()
def hide():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    fd = os.open(sys.argv[1], os.O_RDWR)
    opened.set()
    threading.Event().wait()
threading.Thread(target=hide, daemon=True).start()
opened.wait()
"""
LEADERLESS = (
    MAP
    + """import threading
def hide():
    map_and_close()
    while "State:\\tZ" not in open(f"/proc/{os.getpid()}/status").read():
        pass
    print(flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=hide).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""
)
RING = """import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
ring = libc.syscall(425, 8, ctypes.byref((ctypes.c_char * 120)()))
def register(access=os.O_RDWR):
    fd = os.open(sys.argv[1], access)
    files = (ctypes.c_int * 1)(fd)
    assert libc.syscall(427, ring, 2, ctypes.byref(files), 1) == 0, ctypes.get_errno()
    return fd
"""
"""io_uring_setup(2), and IORING_REGISTER_FILES of io_uring_register(2)."""
ONLY_RING = RING + "os.close(register())\n"
HIDDEN_RING = (
    RING
    + """import mmap
libc.mmap.restype = ctypes.c_void_p
assert libc.mmap(None, ctypes.c_size_t(4096), 3, mmap.MAP_SHARED, ring, ctypes.c_long(0)) != ctypes.c_void_p(-1).value
os.close(register())
os.close(ring)
"""
)
IN_FLIGHT = """import os, socket, sys
left, right = socket.socketpair(socket.AF_UNIX, socket.{kind})
fd = os.open(sys.argv[1], os.O_RDWR)
socket.send_fds(left, [b"x"], [fd])
os.close(fd)
"""
WAIT = "print(flush=True)\nsys.stdin.read()\n"


@contextmanager
def process(script: str, path: str | Path) -> Iterator[int]:
    """Run Python beside the test until the block ends; its pid."""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "\n"
        yield running.pid
        running.communicate()


def notices(path: str | Path, mode: Mode = Mode.DIRECT, *, destroy_data: bool = True) -> tuple[str, ...]:
    """Open for writing; what the output says."""
    job = JobSpec((TargetSpec(str(path)),), Knobs(read_pct=50.0, mode=mode))
    (target,) = open_targets(job, Permissions(frozenset({str(path)}), destroy_data=destroy_data))
    target.close()
    return target.notices


def refusal(path: str | Path, mode: Mode = Mode.DIRECT, *, destroy_data: bool = True) -> str:
    with pytest.raises(RefusedError) as caught:
        notices(path, mode, destroy_data=destroy_data)
    return str(caught.value)


def test_a_mapping_whose_descriptor_is_closed(storage: Storage) -> None:
    device = storage.loop()
    with process(MAPPED + WAIT, device) as pid:
        assert f"{device} is mapped for writing by python" in refusal(device)
        assert f"(pid {pid})" in refusal(device)
    notices(device)


def test_a_mapping_of_the_file_behind_a_loop_device(storage: Storage) -> None:
    image = storage.image()
    device = storage.loop(backing=image)
    with process(MAPPED + WAIT, image):
        assert f"its backing file {image} is mapped for writing" in refusal(device)


def test_a_mapping_of_another_device_with_the_same_bytes(storage: Storage) -> None:
    image = storage.image()
    first, second = storage.loop(backing=image), storage.loop(backing=image)
    with process(MAPPED + WAIT, first):
        assert f"the same bytes by another loop device, {first} is mapped for writing" in refusal(second)


def test_a_node_under_another_name_that_was_removed(storage: Storage, tmp_path: Path) -> None:
    device = storage.loop()
    node = tmp_path / "nullnode"
    os.mknod(node, 0o600 | 0o060000, Path(device).stat().st_rdev)
    with process(MAPPED + f"os.unlink({str(node)!r})\n" + WAIT, node):
        assert f"{device} is mapped for writing" in refusal(device)


def test_a_mapping_that_is_not_written_back_is_no_writer(storage: Storage) -> None:
    device = storage.loop()
    for how in ("flags=mmap.MAP_PRIVATE", "prot=mmap.PROT_READ, access=os.O_RDONLY"):
        with process(f"{MAP}map_and_close({how})\n{WAIT}", device):
            notices(device)


def test_a_mapping_that_mprotect_can_make_writable(storage: Storage) -> None:
    device = storage.loop()
    with process(f"{MAP}map_and_close(prot=mmap.PROT_READ)\n{WAIT}", device) as pid:
        assert f"{device} is mapped for writing by python" in (text := refusal(device))
        assert f"(pid {pid})" in text
    notices(device)


def test_a_descriptor_that_one_thread_keeps_for_itself(storage: Storage) -> None:
    device = storage.loop()
    with process(THREAD + WAIT, device) as pid:
        text = refusal(device)
        assert f"{device} is open for writing in a thread of its own by python" in text
        assert f"(pid {pid})" in text


def test_a_mapping_of_a_process_whose_first_thread_has_ended(storage: Storage) -> None:
    device = storage.loop()
    with process(LEADERLESS, device):
        assert f"{device} is mapped for writing" in refusal(device)


@needs.io_uring
def test_a_file_that_only_an_io_uring_has_open(storage: Storage) -> None:
    image = storage.image()
    device = storage.loop(backing=image)
    with process(ONLY_RING + WAIT, device) as pid:
        assert f"{device} is registered with an io_uring of python" in (text := refusal(device))
        assert f"(pid {pid})" in text
    with process(ONLY_RING + WAIT, image):
        assert f"its backing file {image} is registered with an io_uring of python" in refusal(device)
    notices(device)


@needs.io_uring
@pytest.mark.parametrize("root", ["", "folder", pytest.param("elsewhere", marks=pytest.mark.alone)])
def test_a_ring_of_a_process_whose_names_are_not_ours(root: str, tmp_path: Path) -> None:
    for name in ("folder", "elsewhere"):
        (tmp_path / name).mkdir()
    disk = tmp_path / "folder" / "disk"
    disk.write_bytes(bytes(MIB))
    mounting = f'mount -t tmpfs none {disk.parent} && truncate -s 4M {disk} && echo && read line && exec $0 "$@"'
    script = f"{ONLY_RING}os.chroot({str(tmp_path / root)!r})\n{WAIT}" if root else ONLY_RING + WAIT
    words = ["unshare", "--mount", "--propagation", "private", "bash", "-c", mounting, sys.executable, "-c", script]
    with subprocess.Popen([*words, disk], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin
        assert running.stdout
        running.stdout.readline()
        device, held = attach_free(f"/proc/{running.pid}/root{disk}")
        running.stdin.write("\n")
        running.stdin.flush()
        running.stdout.readline()
        if root == "elsewhere":
            assert "the files of an io_uring of python" in refusal(device, destroy_data=False)
        else:
            assert "is registered with an io_uring of python" in refusal(device)
        os.close(held)
        running.communicate()


@needs.io_uring
def test_a_file_of_an_io_uring_whose_process_reads_it(storage: Storage) -> None:
    device = storage.loop()
    with process(f"{RING}kept = register(os.O_RDONLY)\n{WAIT}", device):
        words = f"{device} is registered with an io_uring of python"
        assert words in refusal(device, destroy_data=False)
        (notice,) = notices(device)
        assert words in notice
    assert words not in "".join(notices(device))


@needs.io_uring
@pytest.mark.alone  # Its files may be any, so that devices are refused to all others.
def test_an_io_uring_without_a_descriptor(storage: Storage) -> None:
    device = storage.loop()
    with process(HIDDEN_RING + WAIT, device) as pid:
        text = refusal(device, destroy_data=False)
        assert "the files of an io_uring of python" in text
        assert f"(pid {pid}) cannot be inspected" in text
    notices(device)


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_SEQPACKET"])
def test_a_descriptor_on_its_way_through_a_socket(storage: Storage, kind: str) -> None:
    device = storage.loop()
    script = IN_FLIGHT.format(kind=kind)
    with process(script + WAIT, device) as pid:
        assert f"{device} is on its way through a unix socket to python" in (text := refusal(device))
        assert f"(pid {pid})" in text
    with process(script.replace("O_RDWR", "O_RDONLY") + WAIT, device):
        assert not notices(device, destroy_data=False)


@pytest.mark.alone  # While it holds some back, devices are refused to all others.
def test_descriptors_on_their_way_behind_others_are_unknown(storage: Storage) -> None:
    device = storage.loop()
    script = IN_FLIGHT.format(kind="SOCK_STREAM") + "socket.send_fds(left, [b'x'], [0, 0])\n"
    with process(script.replace("O_RDWR", "O_RDONLY") + WAIT, device) as pid:
        (notice,) = notices(device)
        assert "2 descriptors are on the way to python" in notice
        assert f"(pid {pid}) in a unix socket" in notice
        assert notice.endswith("make sure that nothing does")
        refused = refusal(device, destroy_data=False)
        assert f"{device}: whether anything else writes to it cannot be found out (2 descriptors are on the" in refused
        assert refused.endswith(": add --destroy-data if all of it may be lost")
    notices(device, destroy_data=False)


def test_a_pid_namespace_of_its_own_is_said_to_hide_writers(storage: Storage) -> None:
    device = storage.loop()
    script = f"from tests.kernel.test_guard_writers import notices; print(notices({device!r}))"
    output = run("unshare", "--pid", "--fork", "--mount", "--mount-proc", sys.executable, "-c", script)
    assert "not everything that may write to it is visible" in output
    assert "this is a pid namespace of its own: run on the host" in output
    output = run("unshare", "--pid", "--fork", sys.executable, "-c", script)
    assert "not everything that may write to it is visible" in output


def test_processes_of_others_are_counted(storage: Storage) -> None:
    device = storage.loop()
    owner = Path(device).owner()
    run("chown", "nobody", device)
    storage.undo("chown", owner, device)
    script = (
        "import os; from tests.kernel.test_guard_writers import notices\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"print(notices({device!r}))"
    )
    output = run(sys.executable, "-c", script)
    assert "processes of other users cannot be inspected: run as root" in output


def test_a_reader_gets_no_report_of_writers(storage: Storage) -> None:
    device = storage.loop()
    script = (
        "from engine.guard import open_targets; from engine.job.spec import *\n"
        f"print(open_targets(JobSpec((TargetSpec({device!r}),)), Permissions())[0].notices)"
    )
    output = run("unshare", "--pid", "--fork", "--mount", "--mount-proc", sys.executable, "-c", script)
    assert "is visible" not in output


@pytest.mark.parametrize("way", ["fd", "map_files"])
@pytest.mark.parametrize("read_pct", [100.0, 50.0])
def test_memory_of_another_process(way: str, read_pct: float) -> None:
    script = (
        "import mmap, os, sys\nfd = os.memfd_create('disk')\nos.truncate(fd, 8 << 20)\nkept = mmap.mmap(fd, 8 << 20)\n"
        "where = next(line.split()[0] for line in open('/proc/self/maps') if '/memfd:disk' in line)\n"
        "print(fd, where, flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        fd, where = other.stdout.readline().split()
        name = f"/proc/{other.pid}/" + {"fd": f"fd/{fd}", "map_files": f"map_files/{where}"}[way]
        job = JobSpec((TargetSpec(name),), Knobs(read_pct=read_pct, mode=Mode.BUFFERED))
        with pytest.raises(LunscopeError, match="memory of a process"):
            open_targets(job, Permissions(frozenset({name}), destroy_data=True))
        other.communicate()


def test_a_file_in_memory_that_has_a_name_is_one_like_others() -> None:
    path = Path("/dev/shm") / f"lunscope-{os.getpid()}"
    try:
        path.write_bytes(os.urandom(MIB))
        notices(path, Mode.BUFFERED)
    finally:
        path.unlink()


def test_a_scan_of_processes_is_named_as_that(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    device, waits, named = storage.loop(), Waits(), []

    def watched(roots: Roots) -> Writers:
        named.append([each.what for each in waits.outstanding()])
        return read_writers(roots)

    monkeypatch.setattr("engine.guard.usage_snapshot.read_writers", watched)
    job = JobSpec((TargetSpec(device),), Knobs(read_pct=50.0))
    targets = open_targets(job, Permissions(frozenset({device}), destroy_data=True), waits=waits)
    recheck_targets(targets, waits)
    targets[0].close()
    assert named == [["scan of the processes that may use the targets"]] * 2
