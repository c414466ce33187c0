"""Mount namespaces, also those that no process lives in: kept by a bind mount, a descriptor or a single thread."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from engine.background_call import BackgroundCall
from engine.hostfs.kernel_files import names_in, process_ids, read_text, unescape_octal
from engine.syscalls import enter_mount_namespace, mount_namespace_beside

_PINNED = re.compile(r"^\S+ \S+ \S+ mnt:\[\d+\] (\S+) .* - nsfs ", re.MULTILINE)
"""Finds where a mount namespace is bound to a file (mountinfo in proc(5))."""


class Namespace(Struct, frozen=True, weakref=True):
    """A mount namespace as those of one root directory see it."""

    folder: Path
    """The folder of one of its processes or threads in /proc; ours where it has none."""
    root: str = ""
    """Path under which its files are reached; empty for our own."""
    label: str = ""
    """Words for the namespace, as in "of pid 812 (name)"; empty for our own."""
    mounts: str | None = None
    """The mountinfo of a namespace without a process."""

    def mountinfo(self) -> str:
        """Read its mounts; none where its process is gone."""
        return self.mounts if self.mounts is not None else read_text(self.folder / "mountinfo") or ""


class Namespaces(Struct, frozen=True):
    """The namespaces that were found."""

    seen: tuple[Namespace, ...]
    """Our own first; a namespace is there once more for each further root directory in it."""
    unseen: tuple[str, ...] = ()
    """Namespaces that may not be entered, in words."""


_View = tuple[int, int, int]
"""A mount namespace, and device and inode of a root directory in it."""


def _view_of(process: str) -> _View | None:
    try:
        namespace = os.stat(f"{process}/ns/mnt").st_ino  # noqa: PTH116 - as in kernel_files
        root = os.stat(f"{process}/root")  # noqa: PTH116 - as in kernel_files
    except OSError:
        return None
    return namespace, root.st_dev, root.st_ino


def _processes(procfs: Path) -> list[str]:
    return sorted(process_ids(procfs), key=int)


def _threads(procfs: Path, process: str) -> Iterator[str]:
    try:
        yield from (f"{process}/task/{name}" for name in names_in(f"{procfs}/{process}/task") if name != process)
    except PermissionError:
        return


def read_namespaces(procfs: Path) -> Namespaces:
    """Find all mount namespaces: from Linux 6.11 on, the kernel lists those without a process, too.

    Older kernels show them where they are bound to a file, and those of single threads; not one that is held by a
    descriptor only.
    """
    found, seen = [Namespace(procfs / "self")], {_view_of(f"{procfs}/self"), None}
    processes = _processes(procfs)
    _add_of_processes(procfs, found, seen, processes)
    known = {view[0] for view in seen if view is not None}
    unused = _listed(procfs, known)
    is_listed = unused is not None
    if unused is None:
        _add_of_processes(procfs, found, seen, [thread for name in processes for thread in _threads(procfs, name)])
        known = {view[0] for view in seen if view is not None}
        unused = _pinned(found)
    unseen = []
    while unused:
        fd = unused.pop()
        number = os.fstat(fd).st_ino
        if number not in known:
            known.add(number)
            namespace = _entered(procfs, fd, f"mnt:[{number}], which no process is in")
            if namespace is None:
                unseen.append(f"the mount namespace mnt:[{number}] cannot be entered: run as root")
            else:
                found.append(namespace)
                unused += [] if is_listed else _pinned([namespace])
        os.close(fd)
    return Namespaces(tuple(found), tuple(unseen))


def _add_of_processes(procfs: Path, found: list[Namespace], seen: set[_View | None], names: Iterable[str]) -> None:
    for name in names:
        view = _view_of(f"{procfs}/{name}")
        if view not in seen:
            seen.add(view)
            folder = procfs / name
            label = f"of pid {folder.name} ({read_text(folder / 'comm') or '?'})"
            found.append(Namespace(folder, f"{folder}/root", label))


def _listed(procfs: Path, known: set[int]) -> list[int] | None:
    """Open all mount namespaces that are not known and that we may enter; None where the kernel does not list them."""
    found: list[int] = []
    try:
        own = os.open(f"{procfs}/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        try:
            for is_before in (False, True):
                found += _beside(own, known, is_before=is_before)
        finally:
            os.close(own)
    except OSError:
        for fd in found:
            os.close(fd)
        return None
    return found


def _beside(own: int, known: set[int], *, is_before: bool) -> Iterator[int]:
    """Open those that are younger or older; only one that is known is open at a time, as there are thousands."""
    current = os.dup(own)
    try:
        while (beside := mount_namespace_beside(current, is_before=is_before)) is not None:
            os.close(current)
            current = beside
            if os.fstat(beside).st_ino not in known:
                yield os.dup(beside)
    finally:
        os.close(current)


def _pinned(namespaces: Sequence[Namespace]) -> list[int]:
    """Open the namespaces that are bound to files in others."""
    found = []
    for namespace in namespaces:
        for point in _PINNED.findall(namespace.mountinfo()):
            try:
                found.append(os.open(namespace.root + unescape_octal(point), os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                continue
    return found


def _entered(procfs: Path, fd: int, label: str) -> Namespace | None:
    """See a namespace from inside, by a thread that ends in it; None if we may not enter it."""
    proc = os.open(procfs, os.O_PATH | os.O_CLOEXEC)
    try:
        look = BackgroundCall(lambda: _look_inside(fd, proc), "lunscope-namespace")
        look.done.wait()
        mounts, root = look.result()
    except (OSError, RuntimeError):
        return None
    finally:
        os.close(proc)
    namespace = Namespace(procfs / "self", f"/proc/thread-self/fd/{root}", label, mounts)
    weakref.finalize(namespace, os.close, root)
    return namespace


def _look_inside(fd: int, proc: int) -> tuple[str, int]:
    """Move the calling thread there for ever; returns the mounts, and a descriptor of the root directory."""
    enter_mount_namespace(fd)
    with os.fdopen(os.open("thread-self/mountinfo", os.O_RDONLY, dir_fd=proc), errors="surrogateescape") as file:
        mounts = file.read()
    return mounts, os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
