"""The control group that the aggressor runs in: made and removed here, after kill -9 as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

import engine
from engine.errors import LunscopeError, UsageError
from engine.hostfs.cgroups import blkio_root, unified_root
from engine.isolation.group_keeper import READY

_START = (
    "import sys; sys.path.insert(0, sys.argv.pop()); from engine.isolation.group_keeper import main; sys.exit(main())"
)


class LimitHierarchy(Struct, frozen=True):
    """Where groups with limits on I/O can be made."""

    root: Path
    unified: bool
    """Whether it is of cgroup v2."""


def find_hierarchy(sysfs: Path = Path("/sys")) -> LimitHierarchy:
    """Find the hierarchy that limits I/O here.

    Raises:
        UsageError: there is none, or groups may not be made in it; the message has the fix.
    """
    unified, legacy = unified_root(sysfs), blkio_root(sysfs)
    if unified is not None:
        found = LimitHierarchy(unified, unified=True)
    elif (legacy / "blkio.throttle.read_iops_device").exists():
        found = LimitHierarchy(legacy, unified=False)
    else:
        raise UsageError("--preset isolation: no control groups that limit I/O: mount cgroup2, or blkio of cgroup v1")
    if os.geteuid() or not os.access(found.root, os.W_OK):
        raise UsageError(f"--preset isolation: no permission to make a control group in {found.root}: run as root")
    if found.unified and "io" not in (found.root / "cgroup.subtree_control").read_text().split():
        path = found.root / "cgroup.subtree_control"
        raise UsageError(f"--preset isolation: groups have no io controller: echo +io > {path}")
    return found


class AggressorGroup:
    """One group while it is entered; a process of its own removes it at the end, whatever ends this one."""

    def __init__(self, hierarchy: LimitHierarchy) -> None:
        self.name = f"/lunscope-isolation-{os.getpid()}"
        self.folder = hierarchy.root / self.name.lstrip("/")

    def __enter__(self) -> Self:
        """Make the group.

        Raises:
            LunscopeError: it cannot be made.
        """
        if self.folder.exists():
            raise LunscopeError(f"{self.folder}: it is there already: end its processes and remove it with rmdir")
        package = Path(engine.__file__).parent.parent
        self._keeper = subprocess.Popen(
            [sys.executable, "-c", _START, str(self.folder), str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        try:
            assert self._keeper.stdout is not None
            if self._keeper.stdout.readline() != READY:
                raise LunscopeError("the process that removes the control group did not start: nothing was made")
            self._make()
        except BaseException:
            self._end()
            raise
        return self

    def _make(self) -> None:
        try:
            self.folder.mkdir()
        except OSError as error:
            raise LunscopeError(f"{self.folder}: {error.strerror}: no control group was made") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if self.folder.exists() and error is None:
            raise LunscopeError(f"{self.folder}: a process in it does not end: remove it later with rmdir")

    def _end(self) -> None:
        for stream in (self._keeper.stdin, self._keeper.stdout):
            if stream is not None:
                stream.close()
        self._keeper.wait()
