"""Other processes that can write to a device or file, and whether every process of the host can be seen.

They hold no exclusive claim, so O_EXCL does not see them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field

from engine.hostfs.kernel_files import Roots
from engine.hostfs.mounts import MountEntry
from engine.hostfs.processes import WritableFile, descriptors_in_flight, writable_files
from engine.hostfs.sysblock import read_text
from engine.syscalls import Statx, statx


class Writers(Struct):
    """Who writes to what: words such as "is open for writing by qemu (pid 812)"."""

    devices: dict[int, str] = field(default_factory=dict)
    files: dict[tuple[int, int], str] = field(default_factory=dict)
    unreadable: int = 0
    """Processes of others, of which nothing is known."""


def read_writers(roots: Roots, pause: Callable[[], None] = lambda: None) -> Writers:
    """Scan the descriptors and mappings of every process but our own.

    `pause` is called after each process, by who wants it to take its time.
    """
    writers = Writers()
    own = _own_name(roots)
    for name in os.listdir(roots.procfs):  # noqa: PTH208 - as in kernel_files
        if name.isdigit() and name != own:
            _add_process(writers, roots, name)
            pause()
    return writers


def _own_name(roots: Roots) -> str:
    """Return our number as /proc counts, which may be that of a pid namespace above ours."""
    try:
        return str((roots.procfs / "self").readlink())
    except OSError:
        return str(os.getpid())


def _add_process(writers: Writers, roots: Roots, name: str) -> None:
    try:
        for written in writable_files(f"{roots.procfs}/{name}"):
            _add(writers, roots, name, written)
    except PermissionError:
        writers.unreadable += 1


def _add(writers: Writers, roots: Roots, name: str, written: WritableFile) -> None:
    status = _inode_of(written)
    if status is None:
        return
    if stat.S_ISBLK(status.mode) and status.rdev not in writers.devices:
        writers.devices[status.rdev] = _words(roots, name, written)
    elif stat.S_ISREG(status.mode) and (status.device, status.inode) not in writers.files:
        writers.files[status.device, status.inode] = _words(roots, name, written)


def _inode_of(written: WritableFile) -> Statx | None:
    try:
        return statx(written.path)
    except PermissionError:
        # map_files is for CAP_CHECKPOINT_RESTORE only.
        return _inode_named(written)
    except OSError:
        return None


def _inode_named(written: WritableFile) -> Statx | None:
    try:
        status = statx(written.name) if written.name else None
    except OSError:
        return None
    return status if status is not None and status.inode == written.inode else None


def _words(roots: Roots, name: str, written: WritableFile) -> str:
    return f"is {written.how} by {read_text(roots.procfs / name / 'comm') or '?'} (pid {name})"


def has_unseen_writer(fd: int) -> bool:
    """Whether anything at all, kernel and hidden processes included, has a file open for writing.

    A read lease is refused while a writer exists (fcntl(2), F_SETLEASE). It is released at once; SIGURG, which is
    ignored by default, replaces the SIGIO that would end the process if someone opened the file just then.
    Needs a descriptor open for reading only; where leases do not work the answer is False.
    """
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


_FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""PROC_PID_INIT_INO in linux/proc_ns.h."""
_CAP_SYS_PTRACE = 19


def writer_notices(roots: Roots, mounts: Sequence[MountEntry], writers: Writers) -> tuple[str, ...]:
    """Say why writers may go unseen; for targets that are to be written."""
    reasons = [*_reasons(roots, mounts, writers), *_in_flight(roots)]
    if not reasons:
        return ()
    return (f"not every process that may write to it is visible ({'; '.join(reasons)}): make sure that none does",)


def _reasons(roots: Roots, mounts: Sequence[MountEntry], writers: Writers) -> Iterator[str]:
    procfs = roots.procfs
    try:
        if (procfs / "self/ns/pid").stat().st_ino != _FIRST_PID_NAMESPACE:
            yield "this is a pid namespace of its own: run on the host"
    except OSError:
        yield "/proc shows other processes than ours: mount the /proc of this namespace"
    if _hides_processes(mounts) and not _may_see_all(procfs.joinpath("self/status").read_text()):
        yield "/proc is mounted with hidepid: run as root"
    if writers.unreadable:
        yield f"{writers.unreadable} processes belong to others: run as root"


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


def _in_flight(roots: Roots) -> Iterator[str]:
    for name in os.listdir(roots.procfs):  # noqa: PTH208 - as in kernel_files
        if not name.isdigit():
            continue
        try:
            count = descriptors_in_flight(f"{roots.procfs}/{name}")
        except PermissionError:
            continue
        if count:
            process = f"{read_text(roots.procfs / name / 'comm') or '?'} (pid {name})"
            yield f"{count} descriptors are on their way to {process} in a unix socket"
