"""Tunables that vary in a sweep: checked on its targets before it begins, set between points, restored at its end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.errors import LunscopeError, RefusedError, UsageError
from engine.hostfs.mounts import MountEntry
from engine.hostfs.storage import mount_of
from engine.job.spec import JobSpec
from engine.job.target_text import format_target
from engine.sweep.plan import Curve, SweepPlan
from engine.sweep.tuned_axis import TuneKnob
from engine.text import safe_text
from engine.tune.held import HeldChanges
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from engine.tune.tunable import Tunable, TunedKind

_OF_DISKS = {TunedKind.DISK, TunedKind.SUBSYSTEM}
_OF_TARGETS = {*_OF_DISKS, TunedKind.NFS_CLIENT}
_OF_HOST = "host"
"""Scope of the tunables of the host."""


class SweepTuning:
    """The tunables of a plan; without such axes it does nothing."""

    def __init__(self, plan: SweepPlan, root: Path = Path("/sys"), held: HeldChanges | None = None) -> None:
        self._plan, self._root = plan, root
        self._given = held
        self._held: HeldChanges | None = None
        self._scopes: tuple[str, ...] = ()
        self._now: dict[Tunable, str] = {}

    def check(self) -> None:
        """Check every value on all targets.

        Raises:
            UsageError: a value is not legal, or a target has no such tunable.
            LunscopeError: one may not be written, or another lunscope holds it.
        """
        for tunable, value in _values(self._plan):
            if tunable.subject not in {*_OF_TARGETS, TunedKind.HOST}:
                raise UsageError(f"--vary tune.{tunable.id}: it is of a {tunable.subject}, not of targets: tune set it")
            try:
                held = self._open()
            except LunscopeError as error:
                raise type(error)(f"--vary tune.{tunable.id}: {error}") from None
            try:
                held.plan(self._scopes, {tunable: value})
            except LunscopeError as error:
                raise type(error)(f"--vary tune.{error}") from None

    def set(self, curve: Curve) -> None:
        """Set the tunables of a curve; those of the one before are restored first.

        Raises:
            LunscopeError: a value is refused; then all values are as before the sweep.
        """
        wanted = {knob.tunable: value for knob, value in curve.values if isinstance(knob, TuneKnob)}
        if wanted == self._now:
            return
        held = self._open()
        self._now = {}
        while held.in_force:
            record = held.undo()
            if record is not None and record.problems:
                raise LunscopeError(record.problems[0])
        for record in held.take_troubled():
            raise LunscopeError(record.problems[0])
        held.make(held.plan(self._scopes, wanted), wanted, None)
        self._now = wanted

    def close(self) -> Iterator[str]:
        """Restore everything; yields what could not be."""
        held, self._held, self._now = self._held, None, {}
        for record in () if held is None else held.close():
            yield from record.problems

    def _open(self) -> HeldChanges:
        if self._held is None:
            with KernelTree(self._root) as tree:
                self._scopes = (_OF_HOST, *_scopes(Host(tree), self._plan))
            self._held = HeldChanges(self._root) if self._given is None else self._given
        return self._held


def check_tuning(plan: SweepPlan) -> None:
    """Refuse a plan whose tunables cannot be set.

    Raises:
        LunscopeError: as of `SweepTuning.check`.
    """
    if any(isinstance(axis.knob, TuneKnob) for axis in plan.axes):
        tuning = SweepTuning(plan)
        tuning.check()
        list(tuning.close())


def _values(plan: SweepPlan) -> Iterator[tuple[Tunable, str]]:
    for axis in plan.axes:
        if isinstance(axis.knob, TuneKnob):
            yield from ((axis.knob.tunable, value) for value in axis.values)


def _scopes(host: Host, plan: SweepPlan) -> Sequence[str]:
    """Name what the tunables of a plan are of, among the disks and mounts of its targets."""
    kinds = {tunable.subject for tunable, _ in _values(plan)}
    mounts = _mounts(plan.job) if TunedKind.NFS_CLIENT in kinds else []
    return list(dict.fromkeys([*mounts, *(_disks(host, plan.job) if kinds & _OF_DISKS else [])]))


def _mounts(job: JobSpec) -> list[str]:
    """Name the NFS mounts of the targets."""
    found = []
    for target in job.targets:
        for node in target.nodes or (None,):
            mount = None if node is None else _mount_at(node)
            if mount is None or not mount.filesystem.startswith("nfs"):
                shown = format_target(target) if node is None else safe_text(node)
                raise RefusedError(f"{shown} is not on NFS: name files of an NFS mount with --target")
            found.append(f"nfs:{mount.point}")
    return found


def _mount_at(path: str) -> MountEntry | None:
    """Find the mount of a file, or of the folder in which it will be."""
    for each in (Path(path), Path(path).parent):
        try:
            fd = os.open(each, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            return mount_of(fd)
        finally:
            os.close(fd)
    return None


def _disks(host: Host, job: JobSpec) -> list[str]:
    """Name the disks of the targets; a map with all its paths."""
    found: list[str] = []
    for target in job.targets:
        if not target.nodes:
            raise RefusedError(f"{format_target(target)} is a scratch file: name disks with --target")
        for node in target.nodes:
            if not node.startswith("/dev/"):
                raise RefusedError(f"{safe_text(node)} is no device: name the disk that it is on")
            disk = host.disk(node)
            found.append(f"lun:{disk.name}" if disk.is_map(host.tree) else disk.name)
    return found
