"""Which paths a drill may take offline: those whose LUN keeps another usable path, and whose users have it as well.

What cannot be known is refused: processes that are hidden, maps that do not answer, LUNs without an identity.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from engine.errors import RefusedError, UsageError
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.dm_control import Number
from engine.hostfs.kernel_files import Roots, link_target, names_in, process_ids, start_of
from engine.hostfs.sysblock import on_disk
from engine.hostfs.users import process_words
from engine.hostfs.writers import hidden_processes
from engine.syscalls import statx
from engine.text import safe_text
from engine.tune.disks import Disk
from engine.tune.path_state import MAP_STATE, OFFLINE, RUNNING, SCSI_STATE, maps_over, paths_of_map
from engine.tune.planned_writes import TunePlan, Write
from engine.tune.record import names_text
from engine.tune.scope import Host
from engine.tune.tunable import Target, Tunable, TunedKind

_REMOTE_PORT = re.compile(r"/(rport-[0-9]+:[0-9]+-[0-9]+)/")
_MOST_REASONS = 3


class DrilledLun(Struct, frozen=True):
    """One LUN with the paths that a drill takes from it."""

    name: str
    map_folder: str
    """Folder of its multipath map; empty where its paths are used themselves."""
    taken: tuple[Disk, ...]
    left: tuple[Disk, ...]
    """Usable paths that it keeps."""


class PathDrill(Struct, frozen=True):
    """What a drill writes, and the LUNs it concerns."""

    plan: TunePlan
    luns: tuple[DrilledLun, ...]


class LunMembers(Struct, frozen=True):
    """A LUN as its users see it: a multipath map over its paths, or the paths themselves."""

    key: str
    name: str
    map_name: str
    members: tuple[Disk, ...]


class HostPaths:
    """The paths of a host at one moment; make a new one to look again."""

    def __init__(self, host: Host, roots: Roots, *, hidden: Sequence[str] | None = None) -> None:
        """Look at a host; `hidden` says why processes may go unseen, None: as /proc says."""
        self._host, self._tree, self._roots, self._given_hidden = host, host.tree, roots, hidden
        self._usage = UsageSnapshot(roots)
        self._maps: dict[str, dict[str, Number]] = {}
        self._members: dict[str, LunMembers] = {}
        self._troubles: dict[tuple[str, str], str] = {}

    def plan(self, scopes: Sequence[str]) -> PathDrill:
        """Plan a drill of all paths of a scope.

        Raises:
            UsageError: the scope names no path.
            RefusedError: one of them must stay, with the reason.
        """
        disks = self.chosen(scopes)
        wanted = {disk.name for disk in disks}
        reasons = [f"{safe_text(disk.name)}: {text}" for disk in disks if (text := self.refusal(disk))]
        if reasons:
            raise RefusedError(_joined(reasons))
        luns = {lun.key: lun for disk in disks for lun in self.luns_of(disk)}
        drilled = [self._drilled(lun, wanted) for lun in luns.values()]
        reasons = [self._no_path_left(lun) for lun in drilled if not lun.left]
        if reasons:
            raise RefusedError(_joined(reasons))
        return PathDrill(TunePlan(tuple(self._write(disk) for disk in disks)), tuple(drilled))

    def chosen(self, scopes: Sequence[str]) -> list[Disk]:
        """List the paths of a scope; the map that `lun:` has beside them is none.

        Raises:
            UsageError: there is none.
        """
        if any(scope.startswith(("cgroup:", "nfs:")) for scope in scopes):
            raise UsageError("paths are disks: name them, or port:host3, or lun:NAME")
        selected = self._host.select(scopes).disks.values()
        found = [disk for disk in selected if not disk.name.startswith("dm-") and not disk.is_map(self._tree)]
        if not found:
            raise UsageError(f"{safe_text(', '.join(scopes))}: no path of a LUN: name a path, or port:host3")
        return found

    def may_be_path(self, disk: Disk) -> bool:
        """Whether a disk is of a kind that has paths: of SCSI or NVMe, or below a multipath map."""
        if disk.is_type(self._tree, "scsi") or self._is_nvme(disk):
            return True
        return any(paths_of_map(self._tree, number) is not None for number in self._maps_over(disk).values())

    @staticmethod
    def _is_nvme(disk: Disk) -> bool:
        return "/nvme/" in f"/{disk.folder}" or disk.name.startswith("nvme")

    def refusal(self, disk: Disk) -> str:
        """Say why a path cannot be taken offline and back, whatever other paths there are; empty if it can."""
        return next(iter(self._hidden), "") or self._refusal(disk)

    def _refusal(self, disk: Disk) -> str:
        if self._is_nvme(disk):
            return "the kernel can only remove paths of NVMe, not take one offline and back"
        maps = self._maps_over(disk)
        if not maps and not disk.is_type(self._tree, "scsi"):
            return "it is no SCSI device, and no multipath map is over it: nothing can take it offline"
        if not maps and not disk.lun(self._tree):
            return "it has no wwid, so that nobody knows its other paths"
        if maps and (text := self._of_maps(disk, list(maps))):
            return text
        if trouble := next(filter(None, (self.trouble(disk, lun) for lun in self.luns_of(disk))), ""):
            return trouble
        return "" if maps else self._use(disk)

    def _of_maps(self, disk: Disk, maps: Sequence[str]) -> str:
        """Say why the maps over a path keep it from being taken offline."""
        for name in maps:
            if name not in self._host.disks or paths_of_map(self._tree, self._maps_over(disk)[name]) is None:
                return f"{name} over it is no multipath map, or does not say which paths it uses"
        if self._way(disk) is SCSI_STATE and not disk.is_type(self._tree, "scsi"):
            return "multipathd brings it back at its next check, and it has no state of a SCSI device"
        return self._way(disk).refusal(self._tree, Target(TunedKind.DISK, disk.name, disk.folder))

    def luns_of(self, disk: Disk) -> list[LunMembers]:
        """List what a path belongs to: each multipath map over it, otherwise all disks of its wwid."""
        if maps := self._maps_over(disk):
            return [self._map(name) for name in maps if name in self._host.disks]
        identity = disk.lun(self._tree)
        members = tuple(self._by_identity.get(identity, ())) if identity else (disk,)
        return [LunMembers(identity or disk.name, identity or disk.name, "", members)]

    def trouble(self, disk: Disk, lun: LunMembers) -> str:
        """Say why a path carries no I/O of its LUN now; empty if it does as far as the kernel knows."""
        key = disk.name, lun.map_name
        if key not in self._troubles:
            self._troubles[key] = self._trouble(disk, lun)
        return self._troubles[key]

    def _trouble(self, disk: Disk, lun: LunMembers) -> str:
        state = self._tree.read(f"{disk.folder}/device/state")
        if disk.is_type(self._tree, "scsi") and state != RUNNING:
            return f"it is {safe_text(state or 'gone')}"
        access = self._tree.read(f"{disk.folder}/device/access_state")
        if access is not None and not access.startswith("active"):
            return f"its target says {safe_text(access)}"
        port = _REMOTE_PORT.search(f"/{disk.folder}/")
        online = self._tree.read(f"class/fc_remote_ports/{port[1]}/port_state") if port else "Online"
        if online != "Online":
            return f"its remote port is {safe_text(online or 'gone')}"
        if lun.map_name:
            device = self._tree.read(f"{disk.folder}/dev") or ""
            number = self._maps_over(disk).get(lun.map_name)
            used = None if number is None else paths_of_map(self._tree, number)
            if used is None or device not in used:
                return f"{lun.map_name} does not say whether it uses it"
            if not used[device]:
                return f"{lun.map_name} does not use it"
        return ""

    def left_without(self, luns: Sequence[DrilledLun]) -> str:
        """Name the first LUN that has lost all paths which it was to keep; empty if there is none."""
        for lun in luns:
            members = LunMembers(lun.name, lun.name, lun.map_folder.rpartition("/")[2], lun.left)
            if all(self.trouble(disk, members) for disk in lun.left):
                return lun.name
        return ""

    def last_of(self, disk: Disk) -> str:
        """Say of which LUN a path is the last usable one; empty if of none."""
        drilled = (self._drilled(lun, {disk.name}) for lun in self.luns_of(disk))
        return next((self._no_path_left(lun) for lun in drilled if not lun.left), "")

    def _drilled(self, lun: LunMembers, wanted: set[str]) -> DrilledLun:
        taken = tuple(disk for disk in lun.members if disk.name in wanted)
        left = tuple(
            disk
            for disk in lun.members
            if disk.name not in wanted and not self.trouble(disk, lun) and self._is_like(disk, taken)
        )
        folder = self._host.disks[lun.map_name].folder if lun.map_name else ""
        return DrilledLun(lun.name, folder, taken, left)

    def _is_like(self, disk: Disk, taken: Sequence[Disk]) -> bool:
        """Whether a path shows as much as those that are taken, and takes writes where they do."""

        def shape(each: Disk) -> tuple[str | None, str | None]:
            return self._tree.read(f"{each.folder}/size"), self._tree.read(f"{each.folder}/ro")

        return shape(disk)[0] not in {None, "0"} and all(shape(each) == shape(disk) for each in taken)

    def _no_path_left(self, lun: DrilledLun) -> str:
        taken = names_text([disk.name for disk in lun.taken])
        verb = "is the last usable path" if len(lun.taken) == 1 else "are all usable paths"
        return f"{taken} {verb} of LUN {safe_text(lun.name)}"

    def _way(self, disk: Disk) -> Tunable:
        """By what a path is taken: multipathd brings a path back that only its map has failed, at its next check."""
        maps = self._maps_over(disk)
        if not maps:
            return SCSI_STATE
        uuids = [self._tree.read(f"block/{name}/dm/uuid") or "" for name in maps]
        managed = self._has_multipathd and any(uuid.startswith("mpath-") for uuid in uuids)
        return SCSI_STATE if managed else MAP_STATE

    def _write(self, disk: Disk) -> Write:
        tunable, target = self._way(disk), Target(TunedKind.DISK, disk.name, disk.folder)
        inode = self._tree.inode(disk.folder)
        if inode is None:
            raise RefusedError(f"{safe_text(disk.name)}: it is gone")
        return Write(tunable, target, inode, RUNNING, OFFLINE, tunable.kept(self._tree, target))

    def _maps_over(self, disk: Disk) -> dict[str, Number]:
        if disk.name not in self._maps:
            self._maps[disk.name] = maps_over(self._tree, disk.folder)
        return self._maps[disk.name]

    def _map(self, name: str) -> LunMembers:
        if name not in self._members:
            disk = self._host.disks[name]
            members = tuple(self._host.disks[each] for each in disk.slaves(self._tree) if each in self._host.disks)
            self._members[name] = LunMembers(name, self._tree.read(f"{disk.folder}/dm/name") or name, name, members)
        return self._members[name]

    @cached_property
    def _by_identity(self) -> dict[str, list[Disk]]:
        found: dict[str, list[Disk]] = {}
        for disk in self._host.disks.values():
            if (identity := disk.lun(self._tree)) and not disk.name.startswith("dm-"):
                found.setdefault(identity, []).append(disk)
        return found

    @cached_property
    def _hidden(self) -> tuple[str, ...]:
        if self._given_hidden is not None:
            return tuple(self._given_hidden)
        return tuple(hidden_processes(self._roots, self._usage.mounts))

    @cached_property
    def _has_multipathd(self) -> bool:
        procfs = self._roots.procfs
        return any(start_of(f"{procfs}/{name}/comm") == b"multipathd\n" for name in process_ids(procfs))

    def _use(self, disk: Disk) -> str:
        """Say who would lose a path that no map is over: what is mounted on it, built on it, or has it alone open."""
        usage = self._usage
        if usage.unseen_namespaces:
            return "mount namespaces of this host show nothing: run as root on the host"
        for part in on_disk(self._roots.sysfs / disk.folder):
            if text := usage.mounted.get(part.number):
                return f"{part.node} {text}: it has no other path there"
            if part.number in usage.swaps.devices:
                return f"{part.node} is active swap: it has no other path there"
            for holder in usage.holders_of(part):
                return f"{holder.node} is built on {part.node} alone"
            for loop in usage.loops:
                if loop.backing_device == part.number:
                    return f"{loop.device.node} is built on {part.node} alone"
        return self._alone_open(disk)

    def _alone_open(self, disk: Disk) -> str:
        """Name a process that has a path open and no other one of its LUN."""
        own = {part.number for part in on_disk(self._roots.sysfs / disk.folder)}
        users = {process: numbers for process, numbers in self._open_devices.items() if numbers & own}
        if not users:
            return ""
        (lun,) = self.luns_of(disk)
        others = {
            part.number
            for other in lun.members
            if other.name != disk.name and not self.trouble(other, lun)
            for part in on_disk(self._roots.sysfs / other.folder)
        }
        for process, numbers in users.items():
            if not numbers & others:
                return f"it is open by {process_words(process)}, which has no other path of it"
        return ""

    @cached_property
    def _open_devices(self) -> dict[str, set[int]]:
        """Numbers of the block devices that each process has open, by its folder in /proc."""
        procfs = self._roots.procfs
        found: dict[str, set[int]] = {}
        for name in process_ids(procfs):
            process = f"{procfs}/{name}"
            for fd in names_in(f"{process}/fd"):
                path = f"{process}/fd/{fd}"
                if not link_target(path).startswith("/"):
                    continue
                try:
                    status = statx(path)
                except OSError:
                    continue
                if stat.S_ISBLK(status.mode):
                    found.setdefault(process, set()).add(status.rdev)
        return found


def _joined(reasons: Sequence[str]) -> str:
    more = f"; and {len(reasons) - _MOST_REASONS:,} more" if len(reasons) > _MOST_REASONS else ""
    return "; ".join(reasons[:_MOST_REASONS]) + more
