"""Scopes on the command line: which disks, paths, subsystems, control groups and NFS clients a change is for."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from engine.errors import UsageError
from engine.hostfs.cgroups import blkio_root, unified_root
from engine.hostfs.sysblock import look_up
from engine.text import safe_text, short_text
from engine.tune.disks import TYPES, Disk, read_disks
from engine.tune.forms import devices_of
from engine.tune.nfs import every_nfs_target, nfs_targets
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind

SCOPE_FORMS = (
    "all, host, sda, sd*, type:nvme, vendor:GLOB, model:GLOB, port:host3, lun:NAME, cgroup:/GROUP[@SCOPE], nfs:/MOUNT"
)
_LIMIT_FILES = ("io.max", "io.latency", "io.weight", *(f"blkio.throttle.{way}_device" for way in
    ("read_bps", "write_bps", "read_iops", "write_iops")))  # fmt: skip


_CONTROLLER_NAME = re.compile(r"nvme[0-9]+")
_CONTROLLER = re.compile(r"/(nvme[0-9]+)/nvme")
_REMOTE_PORT = re.compile(r"/(rport-[0-9]+:[0-9]+-[0-9]+)/")
_CONNECTIONS = {
    TunedKind.CONTROLLER: ("class/nvme", _CONTROLLER),
    TunedKind.REMOTE_PORT: ("class/fc_remote_ports", _REMOTE_PORT),
}
"""Folder of each kind of connection, and its name in the path of a disk in the device tree."""


class NamedGroup(Struct, frozen=True):
    """A control group; with the disks named for its limits, if any were."""

    path: str
    folder: str
    disks: tuple[Disk, ...]
    named_disks: bool
    """Whether the disks were named; otherwise they are those that have limits."""


class TargetSelection(Struct):
    """What scopes name, each once."""

    disks: dict[str, Disk] = field(default_factory=dict)
    groups: dict[str, NamedGroup] = field(default_factory=dict)
    nfs_clients: dict[str, Target] = field(default_factory=dict)
    whole_host: bool = False


class Host:
    """What scopes are resolved against; lists are read once, when first needed."""

    def __init__(self, tree: KernelTree) -> None:
        self.tree = tree
        self._disks: dict[str, Disk] | None = None
        self._subsystems: dict[str, str] | None = None

    @property
    def disks(self) -> dict[str, Disk]:
        """All disks by kernel name."""
        if self._disks is None:
            self._disks = {disk.name: disk for disk in read_disks(self.tree)}
        return self._disks

    @property
    def subsystems(self) -> dict[str, str]:
        """NVMe subsystem by the names of its controllers and heads."""
        if self._subsystems is None:
            folder = "class/nvme-subsystem"
            self._subsystems = {
                member: name
                for name in self.tree.names(folder)
                for member in self.tree.names(f"{folder}/{name}")
                if member.startswith("nvme")
            }
        return self._subsystems

    def select(self, scopes: Iterable[str]) -> TargetSelection:
        """Resolve scopes.

        Raises:
            UsageError: one is none, or names nothing that is there.
        """
        selection = TargetSelection()
        for scope in scopes:
            if scope.startswith("cgroup:"):
                group = self._group(scope)
                selection.groups[scope] = group
            elif scope.startswith("nfs:"):
                clients = nfs_targets(self.tree, scope.removeprefix("nfs:"))
                selection.nfs_clients.update((client.folder, client) for client in clients)
            elif scope == "host":
                selection.whole_host = True
            else:
                if scope == "all":
                    selection.whole_host = True
                    selection.nfs_clients.update((client.folder, client) for client in every_nfs_target(self.tree))
                selection.disks.update((disk.name, disk) for disk in self._select_disks(scope))
        return selection

    def targets(self, tunable: Tunable, selection: TargetSelection) -> list[Target]:
        """List the targets of a tunable in a selection, whether they have it or not."""
        match tunable.subject:
            case TunedKind.DISK:
                found = [Target(TunedKind.DISK, disk.name, disk.folder) for disk in selection.disks.values()]
            case TunedKind.SUBSYSTEM:
                found = self._subsystem_targets(selection)
            case TunedKind.CONTROLLER | TunedKind.REMOTE_PORT:
                found = self._connection_targets(selection, tunable.subject)
            case TunedKind.GROUP:
                found = [Target(TunedKind.GROUP, group.path, group.folder) for group in selection.groups.values()]
            case TunedKind.GROUP_DEVICE:
                found = [target for group in selection.groups.values() for target in self._limits(group)]
            case TunedKind.NFS_CLIENT:
                found = list(selection.nfs_clients.values())
            case _:
                found = [Target(TunedKind.HOST, "host", "")] if selection.whole_host else []
        return found

    def _select_disks(self, scope: str) -> list[Disk]:
        kind, colon, pattern = scope.partition(":")
        chosen = _SELECTORS[kind](self, pattern) if colon and kind in _SELECTORS else self._named(scope)
        if not chosen and scope != "all":
            raise UsageError(f"scope '{_shown(scope)}': no such disk here; scopes are {SCOPE_FORMS}")
        return chosen

    def _named(self, scope: str) -> list[Disk]:
        if scope == "all":
            return list(self.disks.values())
        if any(character in scope for character in "*?["):
            return [disk for name, disk in self.disks.items() if fnmatch.fnmatchcase(name, scope)]
        return [self.disk(scope)]

    def disk(self, name: str) -> Disk:
        """Find one disk by kernel name, device node or dm name.

        Raises:
            UsageError: there is none of that name.
        """
        if name in self.disks:
            return self.disks[name]
        by_node = self._by_node(name)
        if by_node is not None:
            return by_node
        for disk in self.disks.values():
            if disk.name.startswith("dm-") and self.tree.read(f"{disk.folder}/dm/name") == name:
                return disk
        raise UsageError(f"scope '{_shown(name)}': no such disk here; scopes are {SCOPE_FORMS}")

    def _by_node(self, name: str) -> Disk | None:
        path = PurePosixPath(name)
        if not path.is_absolute():
            return None
        try:
            status = os.stat(path)  # noqa: PTH116 - the type of PurePosixPath has no stat
        except OSError:
            return self.disks.get(path.name.replace("/", "!"))
        found = look_up(self.tree.root, status.st_rdev) if stat.S_ISBLK(status.st_mode) else None
        if found is not None and found.is_partition:
            raise UsageError(f"scope '{_shown(name)}' is a partition: name its disk {found.disk_folder.name}")
        return None if found is None else self.disks.get(found.name)

    def _of_type(self, kind: str) -> list[Disk]:
        if kind not in TYPES:
            raise UsageError(f"scope 'type:{_shown(kind)}': types are {', '.join(TYPES)}")
        return [disk for disk in self.disks.values() if disk.is_type(self.tree, kind)]

    def _attribute(self, file: str) -> Callable[[str], list[Disk]]:
        def matching(pattern: str) -> list[Disk]:
            texts = ((disk, self.tree.read(f"{disk.folder}/device/{file}")) for disk in self.disks.values())
            return [disk for disk, text in texts if text is not None and fnmatch.fnmatchcase(text, pattern)]

        return matching

    def _of_vendor(self, pattern: str) -> list[Disk]:
        return self._attribute("vendor")(pattern)

    def _of_model(self, pattern: str) -> list[Disk]:
        return self._attribute("model")(pattern)

    def _of_port(self, name: str) -> list[Disk]:
        """By kernel name, PCI address, or port name (WWPN): several hosts may be one port."""
        names = {name, *self._hosts_of(name)}
        return [disk for disk in self.disks.values() if any(disk.is_below(part) for part in names)]

    def _hosts_of(self, port_name: str) -> list[str]:
        folder = "class/fc_host"
        hosts = self.tree.names(folder)
        return [host for host in hosts if self.tree.read(f"{folder}/{host}/port_name") == port_name]

    def _of_lun(self, name: str) -> list[Disk]:
        """All paths to a LUN and its map, by wwid (a glob, too), disk or map."""
        identities = {disk.name: disk.lun(self.tree) for disk in self.disks.values()}
        wanted = {text for text in identities.values() if text and fnmatch.fnmatchcase(text, name)}
        if not wanted:
            wanted = self._identities_of(self.disk(name), identities)
        paths = {disk_name for disk_name, text in identities.items() if text in wanted}
        maps = {
            disk.name
            for disk in self.disks.values()
            if disk.name.startswith("dm-") and disk.is_map(self.tree) and paths.intersection(disk.slaves(self.tree))
        }
        return [disk for disk in self.disks.values() if disk.name in paths | maps]

    def _identities_of(self, disk: Disk, identities: dict[str, str]) -> set[str]:
        own = {identities[name] for name in (disk.name, *disk.slaves(self.tree)) if identities.get(name)}
        if not own:
            raise UsageError(f"scope 'lun:{_shown(disk.name)}': it has no wwid; name the disk itself")
        return own

    def _subsystem_targets(self, selection: TargetSelection) -> list[Target]:
        members = (
            self.subsystems.get(disk.name) or self.subsystems.get(PurePosixPath(disk.folder).parent.name)
            for disk in selection.disks.values()
        )
        names = dict.fromkeys(name for name in members if name)
        return [Target(TunedKind.SUBSYSTEM, name, f"class/nvme-subsystem/{name}") for name in names]

    def _connection_targets(self, selection: TargetSelection, kind: TunedKind) -> list[Target]:
        """Targets of what disks are connected by: their remote port or controller, named in their path; each once.

        The head of an NVMe namespace has the controllers of its subsystem.
        """
        folder, part = _CONNECTIONS[kind]
        names: dict[str, None] = {}
        for disk in selection.disks.values():
            match = part.search(f"/{disk.folder}/")
            if match:
                names[match[1]] = None
            elif kind is TunedKind.CONTROLLER and disk.name in self.subsystems:
                subsystem = self.subsystems[disk.name]
                members = self.tree.names(f"class/nvme-subsystem/{subsystem}")
                names.update((name, None) for name in members if _CONTROLLER_NAME.fullmatch(name))
        return [Target(kind, name, f"{folder}/{name}") for name in names]

    def _group(self, scope: str) -> NamedGroup:
        path, at, device_scope = scope.removeprefix("cgroup:").partition("@")
        folder = self._group_folder(path)
        disks = tuple(self._select_disks(device_scope)) if at else tuple(self._limited(folder))
        return NamedGroup(path, folder, disks, bool(at))

    def _group_folder(self, path: str) -> str:
        parts = [part for part in path.split("/") if part]
        if not path.startswith("/") or any(part in {".", ".."} or "\0" in part for part in parts):
            raise UsageError(f"scope 'cgroup:{_shown(path)}': name a group from the root, as cgroup:/system.slice")
        for root in (unified_root(self.tree.root), blkio_root(self.tree.root)):
            folder = None if root is None else root.joinpath(*parts)
            if folder is not None and _is_below(folder, root):
                return str(folder.relative_to(self.tree.root))
        raise UsageError(f"scope 'cgroup:{_shown(path)}': no such control group with an io or blkio controller")

    def _limited(self, folder: str) -> list[Disk]:
        """Disks for which the group has a limit now."""
        numbers = {number for file in _LIMIT_FILES for number in devices_of(self.tree.read(f"{folder}/{file}") or "")}
        if not numbers:
            return []
        return [disk for disk in self.disks.values() if self.tree.read(f"{disk.folder}/dev") in numbers]

    def _limits(self, group: NamedGroup) -> list[Target]:
        return [
            Target(
                TunedKind.GROUP_DEVICE,
                f"{group.path} {disk.name}",
                group.folder,
                self.tree.read(f"{disk.folder}/dev") or "",
                disk.name,
            )
            for disk in group.disks
        ]


_SELECTORS: dict[str, Callable[[Host, str], list[Disk]]] = {
    "type": Host._of_type,
    "vendor": Host._of_vendor,
    "model": Host._of_model,
    "port": Host._of_port,
    "lun": Host._of_lun,
}


def _is_below(folder: Path, root: Path | None) -> bool:
    """Whether a group is there, not by a link."""
    try:
        return (
            folder.is_dir()
            and root is not None
            and folder.resolve() == root.resolve().joinpath(folder.relative_to(root))
        )
    except (OSError, ValueError):
        return False


def scopes_or_all(scopes: Sequence[str]) -> Sequence[str]:
    """Return the scopes, the whole host without any."""
    return scopes or ("all",)


def _shown(text: str) -> str:
    return safe_text(short_text(text, 80))
