"""A path that is taken offline and back: by the state of its SCSI device, or as a failed path of its multipath map.

drivers/scsi/scsi_sysfs.c (store_state_field) takes `offline` and `running`; drivers/md/dm-mpath.c (multipath_message)
takes fail_path and reinstate_path. These tunables are set by drills alone, which know of the other paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.hostfs.dm_control import Number
from engine.tune.multipath_table import path_states
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind, one_of

RUNNING, OFFLINE = "running", "offline"
_FILE = "device/state"


def maps_over(tree: KernelTree, folder: str) -> dict[str, Number]:
    """Name the maps of the device mapper that are built directly on a disk, with their device numbers."""
    found = {}
    for name in tree.names(f"{folder}/holders"):
        major, _, minor = (tree.read(f"block/{name}/dev") or "").partition(":")
        if name.startswith("dm-") and major.isdecimal() and minor.isdecimal():
            found[name] = int(major), int(minor)
    return found


def paths_of_map(tree: KernelTree, number: Number) -> Mapping[str, bool] | None:
    """Whether each path of a multipath map is used, by device number; None if it is another map or does not answer."""
    answer = tree.maps.query(number, table=False)
    if answer is None or answer.targets != 1 or answer.kind != "multipath":
        return None
    return path_states(answer.parameters)


class PathOfMaps:
    """The path as the maps over it see it, where multipathd does not look after them."""

    def read(self, tree: KernelTree, target: Target) -> str | None:
        """Return `running` if all maps use it, `offline` if one does not; None where that is not known."""
        used = [found for _, found in _used(tree, target)]
        if not used or None in used:
            return None
        return RUNNING if all(used) else OFFLINE

    def write(self, tree: KernelTree, target: Target, value: str) -> None:
        """Have all maps fail or reinstate it.

        Raises:
            LunscopeError: a map refuses.
        """
        device = tree.read(f"{target.folder}/dev")
        message = "reinstate_path" if value == RUNNING else "fail_path"
        for number, used in _used(tree, target):
            if used is not (value == RUNNING):
                tree.maps.send(number, f"{message} {device}")

    def refusal(self, tree: KernelTree, target: Target) -> str:
        """Say why it cannot be set; empty if it can."""
        del target
        return tree.maps.refusal()

    def tidy(self, tree: KernelTree, target: Target) -> None:
        """Do nothing: a message is complete or was not sent."""


class _Reinstated:
    """Restores the state of a SCSI device, and has the maps use it again that did before."""

    def kept(self, tree: KernelTree, target: Target) -> str:
        """Return the device numbers of the maps that use it, as `253:0 253:1`."""
        return " ".join(f"{number[0]}:{number[1]}" for number, used in _used(tree, target) if used)

    def restore(self, tree: KernelTree, target: Target, before: str, kept: str) -> None:
        """Set the state; a map that multipathd looks after has the path sooner by this, any other only by this.

        Raises:
            LunscopeError: the kernel refuses.
        """
        tree.write(f"{target.folder}/{_FILE}", before)
        device = tree.read(f"{target.folder}/dev")
        for number, used in _used(tree, target):
            if used is False and f"{number[0]}:{number[1]}" in kept.split():
                tree.maps.send(number, f"reinstate_path {device}")


def _used(tree: KernelTree, target: Target) -> Iterator[tuple[Number, bool | None]]:
    """Yield each multipath map over a path with whether it uses it; None where it does not say."""
    device = tree.read(f"{target.folder}/dev") or ""
    for number in maps_over(tree, target.folder).values():
        answer = tree.maps.query(number, table=False)
        if answer is not None and answer.kind == "multipath":
            yield number, (path_states(answer.parameters) or {}).get(device)


SCSI_STATE = Tunable(
    "path.scsi",
    TunedKind.DISK,
    _FILE,
    "state of the SCSI device of a path; set by `lunscope path offline`",
    legal=one_of(RUNNING, OFFLINE),
    restored=_Reinstated(),
)
MAP_STATE = Tunable(
    "path.map",
    TunedKind.DISK,
    "dm/path",
    "state of a path in the multipath maps over it; set by `lunscope path offline`",
    legal=one_of(RUNNING, OFFLINE),
    computed=PathOfMaps(),
)
PATH_STATES = (SCSI_STATE, MAP_STATE)
