"""Assembly of the device graph: LUNs, their paths, and devices built on others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from collectors.graph import Layer, Lun, Path, Tape, TargetPort
from collectors.kernel.devices import HIDDEN_PATH
from collectors.kernel.sysfs import Facts, SysfsLocation
from collectors.model import Device
from collectors.tables.tape.reader import TapeRecord
from collectors.topology.buses import Buses
from collectors.topology.multipathd import UNKNOWN_PATH, DaemonFacts, DaemonPath
from collectors.topology.ports import PortTable, find_ports, nvme_limit, target_of
from collectors.topology.seen import DeviceRecord, Partition
from engine.replacing import replace
from engine.text import whole_number


def controller_of(one: DeviceRecord, target: TargetPort | None, buses: Buses) -> str:
    """Name the controller, such as "0x5006016080000001 group 2"; empty if unknown.

    Ports of one target port group of one array change their ALUA state together, which is a controller in terms of
    multipathing; an iSCSI target portal group is the set of portals of one target node that a session may span (RFC
    7143, 4.1). Otherwise every target port is its own controller, named by VPD page 83h if possible.
    """
    session = buses.iscsi_sessions.get(one.location.session, {})
    array = (target.array if target is not None else "") or one.far.device
    group = session.get("tpgt", "") if one.far.group is None else str(one.far.group)
    if array and group and not one.location.controller:
        return f"{array} group {group}"
    return one.far.port or (target.name if target is not None else "")


MULTIPATH_UUID = "mpath-"
"""Prefix of the uuid of multipathd's maps (multipath-tools, libmultipath/devmapper.h)."""


def multipath_maps(records: Mapping[str, DeviceRecord]) -> frozenset[str]:
    """Keys of all multipath maps: those of multipathd, and manual ones built on one disk several times."""
    devices = {one.device.name: one.device for one in records.values()}
    maps = ((key, one.device) for key, one in records.items() if one.device.kind == "dm")
    return frozenset(
        key
        for key, device in maps
        if device.persistent_id.startswith(MULTIPATH_UUID) or _stands_on_one_disk(device, devices)
    )


def _stands_on_one_disk(device: Device, devices: Mapping[str, Device]) -> bool:
    """Whether a map without a uuid has several slaves with one identity; no other target makes sense on those."""
    below = [devices[name] for name in device.slaves if name in devices]
    identities = {one.persistent_id for one in below}
    return not device.persistent_id and len(below) > 1 and len(identities) == 1 and "" not in identities


_HEAD_OF_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")
_HEAD = re.compile(r"nvme\d+n\d+")
_LAYER_KINDS = (("LVM-", "lvm"), ("CRYPT-", "crypt"), ("part", "partition"))
"""Uuid prefixes of the tools that create dm devices."""


class Assembly(Struct):
    """The graph under construction."""

    records: Mapping[str, DeviceRecord]
    buses: Buses
    ports: PortTable
    maps: frozenset[str]
    """Keys of dm-multipath maps."""
    daemon: DaemonFacts
    """Facts of paths and maps from multipathd."""
    targets: dict[str, TargetPort] = field(default_factory=dict)
    luns: list[Lun] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    tapes: list[Tape] = field(default_factory=list)
    _ways: dict[SysfsLocation, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Mapping[str, DeviceRecord], buses: Buses, daemon: DaemonFacts) -> Assembly:
        """Start with the ports."""
        return cls(records, buses, find_ports(buses), multipath_maps(records), daemon)

    def add_disks(self) -> None:
        """Classify all devices as LUNs, paths and layers."""
        lun_of = _luns_of_paths(self.records, self.maps)
        for key, one in self.records.items():
            device = one.device
            if key in lun_of:
                self.paths.append(self._path(one, lun_of[key]))
            elif key in self.maps:
                self.luns.append(with_daemon_facts(Lun(key, device.name, "dm"), self.daemon))
            elif device.slaves or device.kind in {"dm", "md", "bcache", "drbd"}:
                continue
            elif _HEAD.fullmatch(device.name) and one.location.virtual:
                policy = self.buses.subsystems.get(one.location.subsystem, {}).get("iopolicy", "")
                self.luns.append(Lun(key, device.name, "nvme", policy))
            else:
                self.luns.append(Lun(key, device.name))
                if not one.location.virtual:
                    self.paths.append(self._path(one, key))

    def add_layers(self, partitions: list[Partition], keys: Mapping[str, str]) -> None:
        """Add partitions and devices built on others; `keys` are those of all devices by kernel name."""
        for part in partitions:
            disk = tuple(keys[name] for name in (part.disk,) if name in keys)
            self.layers.append(Layer(keys[part.name], part.name, "partition", size_bytes=part.size_bytes, below=disk))
        luns = {lun.key for lun in self.luns}
        paths = {path.key for path in self.paths}
        for key, one in self.records.items():
            if key not in luns and key not in paths:
                below = tuple(keys[name] for name in one.device.slaves if name in keys)
                label = one.device.friendly_name
                kind = _layer_kind(one)
                self.layers.append(Layer(key, one.device.name, kind, label, one.device.size_bytes, below))

    def add_tapes(self, tapes: Iterable[TapeRecord]) -> None:
        """Add tape drives with their ports."""
        for one in tapes:
            port, target = self._way(one.location)
            self.tapes.append(
                Tape(
                    one.key, one.name, port, target, one.address, one.state, one.vendor, one.model,
                    one.wwid or one.serial,
                )
            )  # fmt: skip

    def _path(self, one: DeviceRecord, lun: str) -> Path:
        location = one.location
        port, target = self._way(location)
        controller = self.buses.controllers.get(location.controller, {})
        daemon, timeouts = self.daemon.paths.get(one.device.name, UNKNOWN_PATH), timeouts_of(location, self.buses)
        address = one.address
        if location.controller:
            address = f"{location.controller} nsid {one.namespace}" if one.namespace else location.controller
        return Path(
            key=one.device.key,
            name=one.device.name,
            lun=lun,
            port=port,
            target=target,
            address=address,
            state=one.state or controller.get("state", ""),
            access=one.access,
            preferred=one.preferred,
            group=one.group,
            queue_limit=self._limit(one),
            marginal=is_marginal(one, self.daemon.paths, self.buses.remote_ports),
            target_port=one.far.port,
            relative_port=one.far.relative_port,
            port_group=one.far.group,
            controller=controller_of(one, self.targets.get(target), self.buses),
            priority=daemon.priority,
            checker=daemon.checker,
            checker_state=daemon.checker_state,
            timeout_ms=one.timeout_ms,
            eh_timeout_s=one.eh_timeout_s,
            loss_timeout_s=timeouts.loss_s,
            fast_fail_timeout_s=timeouts.fast_fail_s,
            reconnect_delay_s=timeouts.reconnect_s,
            keep_alive_s=timeouts.keep_alive_s,
        )

    def _limit(self, one: DeviceRecord) -> int | None:
        """Commands a path admits: for NVMe those of its controller, whose queues all of its namespaces share."""
        controller = self.buses.controllers.get(one.location.controller)
        return one.device.queue_limit if controller is None else nvme_limit(controller)

    def _way(self, location: SysfsLocation) -> tuple[str, str]:
        """Port and target of a location; thousands of paths share a few dozen."""
        if location not in self._ways:
            port = self.ports.of_location(location)
            target = target_of(location, self.ports.by_key.get(port), self.buses)
            if target is not None:
                self.targets.setdefault(target.key, target)
            self._ways[location] = port, target.key if target else ""
        return self._ways[location]


def with_daemon_facts(lun: Lun, daemon: DaemonFacts) -> Lun:
    """Add what multipathd knows of a map."""
    found = daemon.maps.get(lun.name)
    if found is None:
        return lun
    return replace(
        lun,
        no_path_retry=found.queueing,
        retry_interval_s=daemon.polling_interval_s,
        failback=found.failback,
        group_switches=found.group_switches,
        path_faults=found.path_faults,
        queue_timeouts=found.queue_timeouts,
    )


def is_marginal(one: DeviceRecord, daemon: Mapping[str, DaemonPath], remote_ports: Mapping[str, Facts]) -> bool | None:
    """Whether multipathd or the FC transport (port_state, drivers/scsi/scsi_transport_fc.c) reports a marginal path."""
    port_state = remote_ports.get(one.location.remote_port, {}).get("port_state", "")
    answers = [daemon.get(one.device.name, UNKNOWN_PATH).marginal, port_state == "Marginal" if port_state else None]
    known = [answer for answer in answers if answer is not None]
    return any(known) if known else None


DaemonPart = tuple[bool | None, int | None, str, str]


def daemon_part(path: Path) -> DaemonPart:
    """Facts of a path that change without an event of the kernel."""
    return path.marginal, path.priority, path.checker, path.checker_state


def daemon_answer(one: DeviceRecord, daemon: DaemonFacts, remote_ports: Mapping[str, Facts]) -> DaemonPart:
    """Return the same facts as multipathd and the transport report them now."""
    found = daemon.paths.get(one.device.name, UNKNOWN_PATH)
    return is_marginal(one, daemon.paths, remote_ports), found.priority, found.checker, found.checker_state


def _luns_of_paths(records: Mapping[str, DeviceRecord], maps: frozenset[str]) -> dict[str, str]:
    """Key of the LUN of every device that is a path of another one; the first of several LUNs.

    A map is never a path: maps built on each other would else be paths of LUNs that do not exist.
    """
    keys = {one.device.name: key for key, one in records.items()}
    found: dict[str, str] = {}
    for key, one in records.items():
        if key in maps:
            for name in one.device.slaves:
                if name in keys and keys[name] not in maps:
                    found.setdefault(keys[name], key)
        elif one.device.kind == HIDDEN_PATH:
            match = _HEAD_OF_PATH.fullmatch(one.device.name)
            head = keys.get(match[1] + match[2]) if match else None
            if head is not None:
                found[key] = head
    return found


def _layer_kind(one: DeviceRecord) -> str:
    if one.device.kind == "md":
        return one.level or "md"
    identity = one.device.persistent_id
    return next((kind for start, kind in _LAYER_KINDS if identity.startswith(start)), one.device.kind)


def notices(assembly: Assembly, keys: Mapping[str, str]) -> Iterator[str]:
    """Yield inconsistencies, one line each, with kernel names."""
    yield from _odd_slaves(assembly, keys)
    yield from _same_identity(assembly)
    yield from _strange_paths(assembly)


def _odd_slaves(assembly: Assembly, keys: Mapping[str, str]) -> Iterator[str]:
    for key, one in assembly.records.items():
        lost = [name for name in one.device.slaves if name not in keys]
        if lost:
            yield f"{one.device.name}: built on {', '.join(lost)}, which is not there"
        if key in assembly.maps:
            maps = [name for name in one.device.slaves if keys.get(name) in assembly.maps]
            if maps:
                yield f"{one.device.name}: built on {', '.join(maps)}, which cannot be a path: it is a map itself"


def _same_identity(assembly: Assembly) -> Iterator[str]:
    """LUNs with one identity: one LUN found twice without multipathing, or a copy with a cloned identity."""
    names: dict[str, list[str]] = {}
    for lun in assembly.luns:
        identity = assembly.records[lun.key].device.persistent_id
        if identity and not lun.multipath:
            names.setdefault(identity, []).append(lun.name)
    for identity, same in names.items():
        if len(same) > 1:
            yield f"{', '.join(same)}: same identity {identity}: one LUN seen several times without multipathing?"


def _strange_paths(assembly: Assembly) -> Iterator[str]:
    """LUNs whose paths do not lead to the same disk: writing through them destroys data."""
    identities: dict[str, set[str]] = {}
    for path in assembly.paths:
        identity = assembly.records[path.key].device.persistent_id
        if identity:
            identities.setdefault(path.lun, set()).add(identity)
    for lun in assembly.luns:
        if len(identities.get(lun.key, ())) > 1:
            yield f"{lun.name}: its paths have different identities: {', '.join(sorted(identities[lun.key]))}"


OFF = -1
"""Value of a timeout that is switched off; the kernel prints `off`."""


class ConnectionTimeouts(NamedTuple):
    """Timeouts in seconds; None if the bus has none or the kernel does not show it, OFF if it is switched off."""

    loss_s: int | None = None
    fast_fail_s: int | None = None
    reconnect_s: int | None = None
    keep_alive_s: int | None = None


def timeouts_of(location: SysfsLocation, buses: Buses) -> ConnectionTimeouts:
    """Timeouts of the connection of a device (scsi_transport_{fc,iscsi}.c, drivers/nvme/host/sysfs.c)."""
    if location.controller:
        controller = buses.controllers.get(location.controller, {})
        return ConnectionTimeouts(
            loss_s=_seconds(controller, "ctrl_loss_tmo"),
            fast_fail_s=_seconds(controller, "fast_io_fail_tmo"),
            reconnect_s=_seconds(controller, "reconnect_delay"),
            keep_alive_s=_seconds(controller, "kato"),
        )
    if location.session:
        return ConnectionTimeouts(fast_fail_s=_seconds(buses.iscsi_sessions.get(location.session, {}), "recovery_tmo"))
    port = buses.remote_ports.get(location.remote_port, {})
    return ConnectionTimeouts(_seconds(port, "dev_loss_tmo"), _seconds(port, "fast_io_fail_tmo"))


def _seconds(facts: Facts, name: str) -> int | None:
    text = facts.get(name, "")
    return OFF if text in {"off", "-1"} else whole_number(text)
