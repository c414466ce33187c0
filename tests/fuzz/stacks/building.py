"""Makes the layers of a plan from real mounts and devices; everything is undone by closing the stack."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct

from tests.fuzz import kernel_storage as kernel
from tests.fuzz.stacks.plan import BESIDE, FIRST, STORE_MIB, Kind, Layer, Plan

MIB = 1 << 20
_NAMES = {FIRST: "disk", BESIDE: "beside"}
_THIN_BLOCK_SECTORS = 128
_METADATA_BYTES = 2 * MIB
_RANDOM = os.urandom(MIB)
"""Data without a format; the same for all plans, as to make it takes longer than to write it."""


class View(Struct, frozen=True):
    """Where a layer is seen: a device, or a file in a folder that can be mounted elsewhere."""

    node: str = ""
    root: str = ""
    below: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        return self.node or str(Path(self.root, self.below, self.name))

    @property
    def folder(self) -> str:
        return str(Path(self.root, self.below))


class Ground:
    """The folder of one plan, with its two files and the places where layers are mounted."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self._data = folder / "store" / "data"
        self._data.mkdir(parents=True)
        (folder / "mount").mkdir()
        for name in _NAMES.values():
            with (self._data / name).open("wb") as file:
                if plan.blank and name == _NAMES[FIRST]:
                    file.write(bytes(STORE_MIB * MIB))
                else:
                    file.writelines(itertools.repeat(_RANDOM, STORE_MIB))
        for at, layer in enumerate(plan.layers):
            folders = {
                Kind.BIND: (f"{at}",),
                Kind.UPPER: (f"{at}", f"store/work{at}"),
                Kind.LOWER: (f"{at}", f"copy{at}/upper", f"copy{at}/work"),
            }
            for name in folders.get(layer.kind, ()):
                (folder / name).mkdir(parents=True)

    def views(self) -> dict[int, View]:
        return {at: View(root=str(self.folder / "store"), below="data", name=name) for at, name in _NAMES.items()}

    def stored(self, store: int, plan: Plan, views: dict[int, View]) -> str:
        """Where the bytes of a store can be read by nobody else's way; the file of a copy may not be there yet."""
        if store < 0:
            return str(self._data / _NAMES[store])
        if plan.layers[store].kind is Kind.THIN:
            return views[store].path
        return str(self.folder / f"copy{store}" / "upper" / views[plan.layers[store].parent].name)


def make_layer(folder: Path, layer: Layer, at: int, parent: View, undo: ExitStack) -> View:
    """Make one layer over what its parent shows.

    Raises:
        OSError: the kernel does not make it.
    """
    if layer.kind in _MOUNTS:
        point = str(folder / f"{at}")
        _MOUNTS[layer.kind](folder, at, parent, point)
        undo.callback(unmount, point)
        return View(root=point, below=parent.below if layer.kind is Kind.BIND else "", name=parent.name)
    if layer.kind is Kind.HARD_LINK:
        view = View(root=parent.root, below=parent.below, name=f"link{at}")
        Path(view.path).hardlink_to(parent.path)
        return view
    start, size = layer.start_mib * MIB, layer.size_mib * MIB
    if layer.kind is Kind.LOOP:
        node, held = kernel.attach_free(parent.path, start, size, autoclear=not layer.theirs)
        if layer.theirs:
            # Of a process that has a device open for reading, too, nobody can say which it has given to a ring.
            os.close(held)
            undo.callback(_quietly, lambda: kernel.detach(node))
        else:
            undo.callback(os.close, held)
        return View(node=node)
    if layer.kind is Kind.PARTITION:
        node = kernel.add_partition(parent.node, at + 1, start, size)
        undo.callback(_quietly, lambda: kernel.delete_partition(parent.node, at + 1))
        return View(node=node)
    return _mapped(folder, layer, at, parent, undo)


def _bind(folder: Path, at: int, parent: View, point: str) -> None:
    kernel.bind(parent.root, point)


def _over_upper(folder: Path, at: int, parent: View, point: str) -> None:
    empty = folder / "mount"
    kernel.mount_overlay(str(empty), parent.folder, f"{parent.root}/work{at}", point)


def _over_lower(folder: Path, at: int, parent: View, point: str) -> None:
    kernel.mount_overlay(parent.folder, str(folder / f"copy{at}/upper"), str(folder / f"copy{at}/work"), point)


_MOUNTS: dict[Kind, Callable[[Path, int, View, str], None]] = {
    Kind.BIND: _bind,
    Kind.UPPER: _over_upper,
    Kind.LOWER: _over_lower,
}


def _mapped(folder: Path, layer: Layer, at: int, parent: View, undo: ExitStack) -> View:
    """A map of the device mapper over a device."""
    sectors = int(Path("/sys/class/block", Path(parent.node).name, "size").read_text())
    if layer.kind is Kind.LINEAR:
        begin = layer.start_mib * MIB // 512
        length = layer.size_mib * MIB // 512 or sectors - begin
        return View(node=_map(folder, f"linear{at}", f"0 {length} linear {parent.node} {begin}", undo))
    metadata = folder / f"metadata{at}"
    metadata.write_bytes(bytes(_METADATA_BYTES))
    kept, held = kernel.attach_free(str(metadata))
    undo.callback(os.close, held)
    pool = _map(folder, f"pool{at}", f"0 {sectors} thin-pool {kept} {parent.node} {_THIN_BLOCK_SECTORS} 0", undo)
    _run("dmsetup", "message", pool, "0", "create_thin 0")
    return View(node=_map(folder, f"thin{at}", f"0 {sectors} thin {pool} 0", undo))


def _map(folder: Path, name: str, table: str, undo: ExitStack) -> str:
    full = f"{folder.name}-{name}"
    _run("dmsetup", "create", full, "--table", table)
    undo.callback(_quietly, lambda: _run("dmsetup", "remove", "--retry", full))
    return str(Path(f"/dev/mapper/{full}").resolve())


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def unmount(point: str) -> None:
    """A file that a ring still holds keeps a mount busy for a moment after the end of its process."""
    _quietly(lambda: kernel.unmount(point, lazily=True))


def _quietly(do: Callable[[], None]) -> None:
    with suppress(OSError):
        do()
