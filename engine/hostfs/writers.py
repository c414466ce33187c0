"""Other processes that can write to a device or file, and whether every process of the host can be seen.

They hold no exclusive claim, so O_EXCL does not see them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field

from engine.hostfs.in_flight import in_flight
from engine.hostfs.kernel_files import Roots, link_target, process_ids, start_of
from engine.hostfs.mounts import MountEntry
from engine.hostfs.processes import (
    Descriptor,
    WritableFile,
    descriptors_of,
    writable_files,
)
from engine.hostfs.rings import registered_files
from engine.hostfs.stored_file import found_by_name
from engine.hostfs.users import Users, process_words
from engine.syscalls import Statx, statx

_READ_AGAIN_S, _BETWEEN_READS_S = 1.0, 0.02
"""How long the list of a ring is read again that the kernel did not show, or that named what is gone."""
_FEWEST_READS, _MOST_READING_S = 50, 5.0
"""Reads in that time; on a host whose processors are busy they take longer, and so does whoever has the ring's lock."""


class _Patience:
    """Waits between two reads until they have taken long enough."""

    def __init__(self) -> None:
        self._begun_s = time.monotonic()
        self._reads = 1

    def wait(self) -> bool:
        """Wait for the next read; whether there is to be one."""
        waited_s = time.monotonic() - self._begun_s
        if waited_s > (_READ_AGAIN_S if self._reads >= _FEWEST_READS else _MOST_READING_S):
            return False
        time.sleep(_BETWEEN_READS_S)
        self._reads += 1
        return True


class Writers(Struct):
    """Who writes to what: words such as "is open for writing by qemu (pid 812)"."""

    certain: Users = field(default_factory=Users)
    possible: Users = field(default_factory=Users)
    """Files that are registered with a ring of a process that has them open for reading: nothing says which it is."""
    unreadable: int = 0
    """Processes of others that show nothing."""
    in_flight: dict[str, int] = field(default_factory=dict)
    """How many descriptors on their way to processes could not be looked at, by their folders."""
    unlisted: set[str] = field(default_factory=set)
    """Folders in /proc of processes that have rings whose files are not all known."""


def read_writers(roots: Roots, pause: Callable[[], None] = lambda: None) -> Writers:
    """Scan the descriptors, mappings and rings of every process but our own.

    `pause` is called after each process, by who wants it to take its time.
    """
    writers, rings = Writers(), []
    own = _own_name(roots)
    for name in process_ids(roots.procfs):
        if name != own:
            rings += _add_process(writers, f"{roots.procfs}/{name}")
            pause()
    _add_rings(writers, rings, pause)
    return writers


def _own_name(roots: Roots) -> str:
    """Return our number as /proc counts, which may be that of a pid namespace above ours."""
    return link_target(roots.procfs / "self") or str(os.getpid())


class _Ring(Struct, frozen=True):
    """A ring of a process, given by its folder; without a file in fdinfo if it has no descriptor."""

    process: str
    fdinfo: str


def _add_process(writers: Writers, process: str) -> list[_Ring]:
    rings: list[str] = []
    try:
        for written in writable_files(process, rings):
            status = _inode_of(written)
            if status is not None:
                writers.certain.add(status, written.path, f"is {written.how} by", process, written.protected)
    except PermissionError:
        writers.unreadable += not _is_kernel_thread(process)
    return [_Ring(process, ring) for ring in rings]


_FLAGS_FIELD = 6
"""Position of the flags after the name, which may contain blanks (proc_pid_stat(5))."""
_PF_KTHREAD = 0x00200000


def _is_kernel_thread(process: str) -> bool:
    """Whether it is a thread of the kernel, which has no descriptors."""
    fields = start_of(f"{process}/stat").rpartition(b")")[2].split()
    return len(fields) > _FLAGS_FIELD and bool(int(fields[_FLAGS_FIELD]) & _PF_KTHREAD)


def _inode_of(written: WritableFile) -> Statx | None:
    try:
        return statx(written.path)
    except PermissionError:
        # map_files is for CAP_CHECKPOINT_RESTORE only.
        return _inode_named(written)
    except OSError:
        return None


def _inode_named(written: WritableFile) -> Statx | None:
    status = _status_of(written.name) if written.name else None
    return status if status is not None and status.inode == written.inode else None


def _add_rings(writers: Writers, rings: Sequence[_Ring], pause: Callable[[], None]) -> None:
    """Add what is registered with rings; those that are not shown are read again for a moment."""
    patience, waiting = _Patience(), list(rings)
    while waiting := [ring for ring in waiting if not _add_ring(writers, ring)]:
        if not any(ring.fdinfo for ring in waiting) or not patience.wait():
            break
        pause()
    writers.unlisted |= {ring.process for ring in waiting}


def _add_ring(writers: Writers, ring: _Ring) -> bool:
    """Add the files of one ring; whether they are all known, or the ring is gone."""
    files = registered_files(ring.fdinfo) if ring.fdinfo else None
    if files is None:
        return bool(ring.fdinfo)
    try:
        open_files = list(descriptors_of(ring.process)) if files.names else []
    except PermissionError:
        return False
    is_known = files.is_complete
    for name in files.names:
        found = list(_named(ring.process, name, open_files))
        is_known &= name.startswith("/") and any(_is_sure(ring.process, path) for _, path in found)
        for status, path in found:
            users = writers.possible if _reads(open_files, status) else writers.certain
            users.add(status, path, "is registered with an io_uring of", ring.process)
    return is_known


def _named(process: str, name: str, open_files: Sequence[Descriptor]) -> Iterator[tuple[Statx, str]]:
    """Find what is registered under a name.

    A path is that from our root or, where that does not lead there, from the root of the namespace. A file that was
    removed, as temporary ones are, is found if the process has it open.
    """
    path = name if name.startswith("/") else f"/dev/{name}"
    yield from found_by_name(path, ("", f"{process}/root"))
    for each in open_files:
        if each.target == name and (status := _status_of(each.path)):
            yield status, each.path


def _is_sure(process: str, path: str) -> bool:
    """Whether a path leads to what a process means: in our namespace its name may be that of another file."""
    if path.startswith(f"{process}/"):
        return True
    own = f"{process.rpartition('/')[0]}/self/ns/mnt"
    return (ours := _status_of(own)) is not None and _status_of(f"{process}/ns/mnt") == ours


def _reads(open_files: Sequence[Descriptor], status: Statx) -> bool:
    """Whether a process has a file open for reading."""
    return any(each.is_for_reading and _same_inode(status, each.path) for each in open_files)


def _same_inode(status: Statx, path: str) -> bool:
    other = _status_of(path)
    if other is None or not stat.S_ISBLK(status.mode):
        return other is not None and (other.device, other.inode) == (status.device, status.inode)
    return stat.S_ISBLK(other.mode) and other.rdev == status.rdev


def _status_of(path: str) -> Statx | None:
    try:
        return statx(path)
    except OSError:
        return None


def add_in_flight(writers: Writers, roots: Roots) -> None:
    """Add descriptors on their way through unix sockets; those that cannot be looked at are waited for a moment."""
    own = _own_name(roots)
    processes = [f"{roots.procfs}/{name}" for name in process_ids(roots.procfs) if name != own]
    patience = _Patience()
    while waiting := {process: count for process in processes if (count := _add_sent(writers, process))}:
        if not patience.wait():
            break
        processes = list(waiting)
    writers.in_flight |= waiting


def _add_sent(writers: Writers, process: str) -> int:
    """Add the descriptors on their way to a process, and count those that cannot be looked at."""
    try:
        found = in_flight(process)
    except PermissionError:
        return 0
    for status in found.writable:
        writers.certain.add(status, "", "is on its way through a unix socket to", process)
    return found.unknown


def has_unseen_writer(fd: int) -> bool | None:
    """Whether anything at all, kernel and hidden processes included, has a file open for writing; None where unknown.

    A read lease is refused while a writer exists (fcntl(2), F_SETLEASE). It is released at once; SIGURG, which is
    ignored by default, replaces the SIGIO that would end the process if someone opened the file just then.
    Needs a descriptor open for reading only, of a file of ours or CAP_LEASE, and a filesystem with leases.
    """
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    return False


_FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""PROC_PID_INIT_INO in linux/proc_ns.h."""
_CAP_SYS_PTRACE = 19


def unseen_writers(roots: Roots, mounts: Sequence[MountEntry], writers: Writers) -> tuple[str, ...]:
    """Say why writers may go unseen, with what helps; nothing where all of them are seen."""
    return (*hidden_processes(roots, mounts), *_uninspected(writers))


def hidden_processes(roots: Roots, mounts: Sequence[MountEntry]) -> Iterator[str]:
    """Say why processes of the host may go unseen, with what helps; nothing where all are seen."""
    procfs = roots.procfs
    try:
        if (procfs / "self/ns/pid").stat().st_ino != _FIRST_PID_NAMESPACE:
            yield "this is a pid namespace of its own: run on the host"
    except OSError:
        yield "/proc shows other processes than ours: mount the /proc of this namespace"
    if _hides_processes(mounts) and not _may_see_all(procfs.joinpath("self/status").read_text()):
        yield "/proc is mounted with hidepid: run as root"


def _uninspected(writers: Writers) -> Iterator[str]:
    if count := writers.unreadable:
        who = "1 process of another user" if count == 1 else f"{count} processes of other users"
        yield f"{who} cannot be inspected: run as root"
    for process in sorted(writers.unlisted):
        yield f"the files of an io_uring of {process_words(process)} cannot be inspected"
    for process, count in sorted(writers.in_flight.items()):
        what = "1 descriptor is" if count == 1 else f"{count} descriptors are"
        yield f"{what} on the way to {process_words(process)} in a unix socket"


def _hides_processes(mounts: Sequence[MountEntry]) -> bool:
    options = [mount.options for mount in mounts if mount.point == "/proc" and not mount.namespace]
    return any(
        option.startswith("hidepid=") and option not in ("hidepid=0", "hidepid=off")
        for text in options
        for option in text.split(",")
    )


def _may_see_all(status: str) -> bool:
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> _CAP_SYS_PTRACE & 1)
