"""Tunables of what happens to buffered writes: limits on dirty memory, and the cache of SCSI disks.

Documentation/admin-guide/sysctl/vm.rst; drivers/scsi/sd.c (cache_type_store).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from engine.errors import LunscopeError
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind, between, fixed, no_default, one_of

_UNUSED = "0"
"""What the kernel makes of a share when bytes are set, and the other way round."""


class Sysctl(Struct, frozen=True):
    """A value below /proc/sys, which is beside the tree: /proc/sys of /sys."""

    name: str
    """Below proc/sys, as vm/dirty_ratio."""
    instead: str = ""
    """The value that the kernel uses instead if this is 0; setting either makes the other 0."""

    def read(self, tree: KernelTree, target: Target) -> str | None:
        """Return it; None where the kernel has none."""
        del target
        return self._read(tree, self.name)

    def write(self, tree: KernelTree, target: Target, value: str) -> None:
        """Set it.

        Raises:
            LunscopeError: the kernel refuses it.
        """
        del target
        with _sysctls(tree) as sysctls:
            sysctls.write(self.name, value)

    def refusal(self, tree: KernelTree, target: Target) -> str:
        """Say why it cannot be set; empty if it can, or is not there."""
        if self.read(tree, target) is None:
            return ""
        with _sysctls(tree) as sysctls:
            return sysctls.refusal(self.name)

    def tidy(self, tree: KernelTree, target: Target) -> None:
        """Do nothing: a value is set or not."""

    def kept(self, tree: KernelTree, target: Target) -> str:
        """Return the value in use instead."""
        del target
        return (self._read(tree, self.instead) if self.instead else None) or _UNUSED

    def restore(self, tree: KernelTree, target: Target, before: str, kept: str) -> None:
        """Set it, or what was in use instead: most of them take no 0.

        Raises:
            LunscopeError: the kernel refuses.
        """
        if before == _UNUSED and kept != _UNUSED:
            Sysctl(self.instead, self.name).write(tree, target, kept)
        else:
            self.write(tree, target, before)

    def _read(self, tree: KernelTree, name: str) -> str | None:
        try:
            with _sysctls(tree) as sysctls:
                return sysctls.read(name)
        except LunscopeError:
            return None


@contextmanager
def _sysctls(tree: KernelTree) -> Iterator[KernelTree]:
    with KernelTree(tree.root.parent / "proc/sys") as sysctls:
        yield sysctls


class _CacheType:
    """The cache of a SCSI disk as its mode page has it; the folder of the file is named by H:C:T:L."""

    def read(self, tree: KernelTree, target: Target) -> str | None:
        """Return it; None for what is no SCSI disk."""
        path = self._path(tree, target)
        return None if path is None else tree.read(path)

    def write(self, tree: KernelTree, target: Target, value: str) -> None:
        """Set it by MODE SELECT.

        Raises:
            LunscopeError: the kernel or the disk refuses it.
        """
        path = self._path(tree, target)
        if path is None:
            raise LunscopeError(f"{target.name}: it is gone")
        tree.write(path, value)

    def refusal(self, tree: KernelTree, target: Target) -> str:
        """Say why it cannot be set; empty if it can, or is not there."""
        path = self._path(tree, target)
        return "" if path is None else tree.refusal(path)

    def tidy(self, tree: KernelTree, target: Target) -> None:
        """Do nothing: a value is set or not."""

    def _path(self, tree: KernelTree, target: Target) -> str | None:
        folder = f"{target.folder}/device/scsi_disk"
        return next((f"{folder}/{name}/cache_type" for name in tree.names(folder)), None)


def _dirty(  # noqa: PLR0917 - a row of the table below
    name: str, help_text: str, unit: str, default: str, instead: str = "", most: int | None = None
) -> Tunable:
    sysctl = Sysctl(f"vm/{name}", f"vm/{instead}" if instead else "")
    return Tunable(
        f"vm.{name}",
        TunedKind.HOST,
        f"vm/{name}",
        help_text,
        unit,
        legal=between(0, most),
        default=fixed(default) if default else no_default,
        resets=(sysctl.instead,) if instead else (),
        computed=sysctl,
        restored=sysctl,
    )


WRITE_BACK = (
    _dirty("dirty_ratio", "share of memory dirty at which writers wait", "%", "20", "dirty_bytes", 100),
    _dirty("dirty_bytes", "dirty memory at which writers wait; 0: dirty_ratio holds", "B", "0", "dirty_ratio"),
    _dirty(
        "dirty_background_ratio", "share of memory dirty at which write-back begins", "%", "10",
        "dirty_background_bytes", 100,
    ),
    _dirty(
        "dirty_background_bytes", "dirty bytes at which write-back begins; 0: none", "B", "0",
        "dirty_background_ratio",
    ),
    _dirty("dirty_expire_centisecs", "age at which dirty memory is written back", "cs", "3000"),
    _dirty("dirty_writeback_centisecs", "pause between looks for old dirty memory; 0: none", "cs", "500"),
    Tunable(
        "cache_type",
        TunedKind.DISK,
        "device/scsi_disk/cache_type",
        "cache of a SCSI disk, set in its mode page",
        legal=one_of("write through", "none", "write back", "write back, no read (daft)"),
        resets=("queue/write_cache",),
        computed=_CacheType(),
    ),
)  # fmt: skip
