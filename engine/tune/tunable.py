"""What a tunable is: described once, for all verbs, screens and checks."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from engine.tune.forms import PLAIN, ValueForm
from engine.tune.legal import Legal
from engine.tune.tree import KernelTree


class TunedKind(StrEnum):
    """What a tunable belongs to."""

    DISK = "disk"
    """A whole disk or a path."""
    SUBSYSTEM = "nvme subsystem"
    CONTROLLER = "nvme controller"
    REMOTE_PORT = "fc remote port"
    GROUP = "cgroup"
    GROUP_DEVICE = "cgroup and device"
    NFS_CLIENT = "nfs client"
    """The transports of a client to a server."""
    HOST = "host"


class Target(Struct, frozen=True):
    """One thing whose tunables are read and written."""

    subject: TunedKind
    name: str
    """sda, nvme-subsys0, "/lab sda"."""
    folder: str
    """Folder of the target below the root of the tree."""
    device: str = ""
    """Device number of a line in the files of a group, as `8:16`."""
    holder: str = ""
    """Name of the device, for a group with a device."""

    @property
    def key(self) -> str:
        """What only one lunscope may change at a time: equal for all tunables of the target."""
        return f"{self.folder or 'host'} {self.device}".rstrip()


def anything(_tree: KernelTree, _target: Target) -> Legal:
    """Nothing is known of the legal values: the kernel decides."""
    return Legal()


def no_default(_tree: KernelTree, _target: Target) -> str:
    """Neither the kernel nor its documentation gives a default."""
    return ""


def fixed(value: str) -> Callable[[KernelTree, Target], str]:
    """Return the same default for each target."""
    return lambda _tree, _target: value


def between(least: int | None = None, most: int | None = None, *words: str) -> Callable[[KernelTree, Target], Legal]:
    """Return the same legal values for each target."""
    legal = Legal(words, least, most)
    return lambda _tree, _target: legal


def one_of(*words: str) -> Callable[[KernelTree, Target], Legal]:
    """Return the same words for each target."""
    return between(None, None, *words)


class ComputedValue(Protocol):
    """How a value is read and set that is not the content of one file, as those of maps of the device mapper."""

    def read(self, tree: KernelTree, target: Target) -> str | None:
        """Return it; None where the target does not have it."""

    def write(self, tree: KernelTree, target: Target, value: str) -> None:
        """Set it; LunscopeError if that fails."""

    def refusal(self, tree: KernelTree, target: Target) -> str:
        """Say why it cannot be set; empty if it can."""

    def tidy(self, tree: KernelTree, target: Target) -> None:
        """Remove what a change has left behind that was killed halfway."""


class RestoredValue(Protocol):
    """How a value is restored where that takes more than setting it to what it was."""

    def kept(self, tree: KernelTree, target: Target) -> str:
        """Return what restoring needs beside the value, before that is changed."""

    def restore(self, tree: KernelTree, target: Target, before: str, kept: str) -> None:
        """Restore it; LunscopeError if that fails."""


def as_given(value: str) -> str:
    """Return a value that the kernel shows as it was written."""
    return value


class Tunable(Struct, frozen=True):
    """One value of the kernel that can be changed."""

    id: str
    subject: TunedKind
    file: str
    """File below the folder of the target; a target without it does not have the tunable."""
    help: str
    """One line."""
    unit: str = ""
    form: ValueForm = PLAIN
    legal: Callable[[KernelTree, Target], Legal] = anything
    default: Callable[[KernelTree, Target], str] = no_default
    phase: int = 1
    """Order within a change: 0 before what it resets, 2 after what makes it exist."""
    resets: tuple[str, ...] = ()
    """Files below the folder of the target that the kernel sets anew when this changes; a folder means all in it."""
    falls_by_itself: bool = False
    """Whether the kernel lowers it at run time."""
    made_by: str = ""
    """Tunable whose change makes and removes its file, and decides what is legal."""
    computed: ComputedValue | None = None
    """Then `file` is no file, only a name."""
    restored: RestoredValue | None = None
    """None: by setting the value of before."""
    canonical: Callable[[str], str] = as_given
    """Makes the value that the kernel shows of one that means the same."""

    def path(self, target: Target) -> str:
        """Return the path of its file for a target."""
        return f"{target.folder}/{self.file}" if target.folder else self.file

    def present(self, tree: KernelTree, target: Target) -> str | None:
        """Read its value; None where the target does not have it."""
        if self.computed is not None:
            return self.computed.read(tree, target)
        text = tree.read(self.path(target))
        return None if text is None else self.form.value(text, target.device)

    def set(self, tree: KernelTree, target: Target, value: str) -> None:
        """Write a value.

        Raises:
            LunscopeError: the kernel refuses it.
        """
        if self.computed is not None:
            self.computed.write(tree, target, value)
            return
        tree.write(self.path(target), self.form.line(value, target.device))

    def kept(self, tree: KernelTree, target: Target) -> str:
        """Return what restoring needs beside the value."""
        return "" if self.restored is None else self.restored.kept(tree, target)

    def restore(self, tree: KernelTree, target: Target, before: str, kept: str) -> None:
        """Write back the value of before.

        Raises:
            LunscopeError: the kernel refuses it.
        """
        if self.restored is None:
            self.set(tree, target, before)
        else:
            self.restored.restore(tree, target, before, kept)

    def refusal(self, tree: KernelTree, target: Target) -> str:
        """Say why it cannot be set; empty if it can, as far as can be seen without setting it."""
        if self.computed is not None:
            return self.computed.refusal(tree, target)
        return tree.refusal(self.path(target))
