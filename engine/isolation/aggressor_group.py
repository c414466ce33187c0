"""The control group that the aggressor runs in: made and removed here, after kill -9 as well."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from engine.errors import LunscopeError, UsageError
from engine.helper_process import HelperProcess
from engine.hostfs.cgroups import blkio_root, unified_root
from engine.isolation.group_keeper import HASTY_S, remove_group

_MODULE = "engine.isolation.group_keeper"


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
        self._keeper = HelperProcess(_MODULE, [str(self.folder)])
        try:
            if not self._keeper.is_ready():
                self._keeper.end()
                raise LunscopeError(f"the process that removes the control group: {self._keeper.ending}")
            self._make()
        except BaseException:
            self._keeper.end()
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
        self._keeper.end()
        if not self.folder.exists():
            return
        failed = f"the process that removes it: {self._keeper.ending}"
        is_gone = remove_group(self.folder, HASTY_S)
        outcome = "it is removed" if is_gone else "a process in it does not end: remove it later with rmdir"
        if error is None:
            raise LunscopeError(f"{self.folder}: {failed}; {outcome}")
