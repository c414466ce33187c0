"""What a change would write: every target with its value before and after, checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from engine.errors import LunscopeError, UsageError
from engine.text import safe_text, short_text
from engine.tune.legal import Legal, read_value
from engine.tune.registry import find_tunable
from engine.tune.scope import Host, TargetSelection
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind


class Write(Struct, frozen=True):
    """One value of one target to change."""

    tunable: Tunable
    target: Target
    inode: int
    """Inode of the target's folder: another device of the same name has another one."""
    before: str
    """Empty where its file is made by this change."""
    after: str
    kept: str = ""
    """What restoring needs beside the value before."""


class SideEffect(Struct, frozen=True):
    """A file that the kernel sets anew because of a change."""

    target: Target
    inode: int
    path: str
    before: str
    after: str = ""
    """Content of the file once the change was made; empty before that, or if it was gone."""


class TunePlan(Struct, frozen=True):
    """The writes of a change in their order; targets that have the value already are not among them."""

    writes: tuple[Write, ...]
    effects: tuple[SideEffect, ...] = ()
    unchanged: int = 0

    @property
    def keys(self) -> frozenset[str]:
        """The targets that it changes."""
        return frozenset(write.target.key for write in self.writes)


def parse_settings(texts: Sequence[str]) -> dict[Tunable, str]:
    """Read `NAME=VALUE` texts.

    Raises:
        UsageError: one is not, has an unknown name, or a name comes twice with different values.
    """
    settings: dict[Tunable, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"'{safe_text(short_text(text, 80))}' is no setting: write NAME=VALUE, as nr_requests=64")
        tunable = find_tunable(name.strip())
        if tunable in settings:
            raise UsageError(f"{tunable.id} is given twice: give it once")
        settings[tunable] = read_value(value, tunable.unit)
    return settings


def make_plan(host: Host, settings: Mapping[Tunable, str], selection: TargetSelection) -> TunePlan:
    """Check values and permissions on every target, and read what is there.

    Raises:
        UsageError: a value is not legal on a target, or no target has the tunable.
        LunscopeError: a target is gone or may not be written.
    """
    writes: list[Write] = []
    unchanged = 0
    for tunable, value in sorted(settings.items(), key=lambda item: item[0].phase):
        checker = _Checker(host.tree, tunable, tunable.canonical(value), {other.id for other in settings})
        found = [write for target in _targets(host, tunable, selection) for write in checker.writes(target)]
        if not found:
            raise UsageError(f"{tunable.id}: {_no_target(tunable, selection)}")
        changing = [write for write in found if write.before != write.after]
        unchanged += len(found) - len(changing)
        writes += changing
    return TunePlan(tuple(writes), tuple(_effects(host.tree, writes)), unchanged)


def _targets(host: Host, tunable: Tunable, selection: TargetSelection) -> list[Target]:
    if tunable.subject is TunedKind.GROUP_DEVICE:
        for scope, group in selection.groups.items():
            if not group.named_disks:
                raise UsageError(f"{tunable.id} is a limit on a device: name it, as {safe_text(scope)}@sda")
    return host.targets(tunable, selection)


def _no_target(tunable: Tunable, selection: TargetSelection) -> str:
    match tunable.subject:
        case TunedKind.GROUP | TunedKind.GROUP_DEVICE:
            if not selection.groups:
                return "belongs to a control group: name one, as cgroup:/system.slice@sda"
            return "the control group does not have it: enable the io controller, or use the names of its version"
        case TunedKind.NFS_CLIENT:
            return "belongs to an NFS client: name its mount, as nfs:/mnt"
        case TunedKind.HOST:
            return "belongs to the host: --on all" if not selection.whole_host else "this host does not have it"
        case _:
            return "nothing in this scope has it"


class _Checker:
    """Checks one setting on its targets."""

    def __init__(self, tree: KernelTree, tunable: Tunable, value: str, together: set[str]) -> None:
        self._tree = tree
        self._tunable = tunable
        self._value = value
        self._made_here = tunable.made_by in together
        self._legal: dict[str, Legal] = {}

    def writes(self, target: Target) -> list[Write]:
        """Return the write to a target; none where it does not have the tunable."""
        tree, tunable = self._tree, self._tunable
        before = tunable.present(tree, target)
        if before is None and not self._made_here:
            return self._why_missing(target)
        inode = tree.inode(target.folder)
        if inode is None:
            raise LunscopeError(f"{target.name}: it is gone")
        if before is not None:
            self._check(target, before)
        elif not self._may_appear(target):
            return []
        return [Write(tunable, target, inode, before or "", self._value, tunable.kept(tree, target))]

    def _may_appear(self, target: Target) -> bool:
        """Whether the change of another tunable makes the file, as a scheduler its own."""
        return self._tunable.phase > 1 and self._tree.read(f"{target.folder}/queue/scheduler") is not None

    def _why_missing(self, target: Target) -> list[Write]:
        path = self._tunable.path(target)
        if self._tunable.computed is not None and (reason := self._tunable.refusal(self._tree, target)):
            raise LunscopeError(f"{target.name} {self._tunable.id}: {reason}")
        if path.rpartition("/")[2] in self._tree.names(path.rpartition("/")[0]):
            reason = self._tree.refusal(path) or "it cannot be read"
            raise LunscopeError(f"{target.name} {self._tunable.id}: {reason}")
        return []

    def _check(self, target: Target, before: str) -> None:
        if before == self._value:
            return
        legal = self._tunable.legal(self._tree, target)
        wrong = "" if self._made_here else legal.refusal(self._value)
        if wrong:
            raise UsageError(f"{self._tunable.id} of {target.name}: {wrong}")
        refusal = self._tunable.refusal(self._tree, target)
        if refusal:
            raise LunscopeError(f"{self._tunable.id} of {target.name}: {refusal}")


def _effects(tree: KernelTree, writes: Sequence[Write]) -> list[SideEffect]:
    own = {write.tunable.path(write.target) for write in writes}
    return [
        SideEffect(write.target, write.inode, path, before)
        for write in writes
        for file in write.tunable.resets
        for path in _files(tree, f"{write.target.folder}/{file}")
        if path not in own and (before := tree.read(path)) is not None
    ]


def _files(tree: KernelTree, path: str) -> list[str]:
    below = tree.names(path)
    return [f"{path}/{name}" for name in below] if below else [path]
