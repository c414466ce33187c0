"""The device graph as frozen records, one list per kind, with references by key.

Keys of block devices are those of the DISK table and of collectors.model.Device, which has their other facts. All
fields are plain values, so that a session can store each list by columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from msgspec import Struct

USABLE_STATES = frozenset({"", "running", "live"})
"""States of a device or controller in which it takes I/O (drivers/scsi/scsi_sysfs.c, drivers/nvme/host/sysfs.c)."""

USABLE_ACCESS = frozenset({"", "optimized", "non-optimized", "active/optimized", "active/non-optimized"})
"""ALUA (SPC-4, 5.15.2.4) and ANA states in which a path serves reads and writes."""


class Port(Struct, frozen=True):
    """One HBA port: the initiator port that carries paths. All hosts and controllers on one WWPN are one port."""

    key: str
    name: str
    """The kernel's name of its first member: host3, nvme0, virtio5."""
    transport: str
    """fc, iscsi, sas, ata, usb, virtio, nvme-pcie, nvme-tcp, nvme-rdma, nvme-fc, or scsi if unknown."""
    driver: str = ""
    address: str = ""
    """WWPN, initiator address or interface; empty where the bus has none."""
    parent: str = ""
    """PCI function or other device the port is part of."""
    state: str = ""
    speed: str = ""
    queue_limit: int | None = None
    """Commands that all members together admit (can_queue; queue size times I/O queues)."""
    members: tuple[str, ...] = ()
    """Kernel names of its SCSI hosts and NVMe controllers."""
    scsi_hosts: tuple[str, ...] = ()
    """Members that have a host_busy."""
    label: str = ""
    """Alias set by the operator."""
    serial: str = ""
    """Serial number of an NVMe controller."""
    subsystem: str = ""
    """NQN of the subsystem of an NVMe controller."""
    host_nqn: str = ""
    """NQN by which an NVMe target knows this host."""
    node_name: str = ""
    """WWNN of a Fibre Channel port."""
    port_type: str = ""
    """How a Fibre Channel port is attached: NPort (fabric via point-to-point), ..."""
    port_id: str = ""
    """Address that the fabric gave to a Fibre Channel port."""
    supported_speeds: str = ""


class TargetPort(Struct, frozen=True):
    """One port of the storage that paths lead to."""

    key: str
    name: str
    """WWPN, IQN with portal, transport address, or the kernel's target if the bus has no names."""
    transport: str
    array: str = ""
    """Owner of the port: node name, IQN, NVMe subsystem."""
    label: str = ""
    """Alias set by the operator."""


class Path(Struct, frozen=True):
    """One path to a LUN; a disk without multipath is its own only path."""

    key: str
    """Key of the block device that is the path."""
    name: str
    lun: str
    port: str = ""
    """Empty if unknown."""
    target: str = ""
    address: str = ""
    """H:C:T:L, or the NVMe controller and namespace."""
    state: str = ""
    """State of the device or controller: running, offline, blocked, live, connecting, ..."""
    access: str = ""
    """ALUA or ANA state."""
    preferred: bool | None = None
    """ALUA preferred bit."""
    map_state: str = ""
    """State in the dm-multipath map: active or failed."""
    failures: int | None = None
    """Number of times the map has failed it."""
    group: int | None = None
    """Priority group in the dm-multipath map, ANA group with NVMe."""
    weight: int | None = None
    """Weight or repeat count for the path selector."""
    queue_limit: int | None = None
    marginal: bool | None = None
    """Whether multipathd or the FC transport marks it as marginal (intermittent failures); None if not reported."""
    target_port: str = ""
    """Name of the port of the storage by VPD page 83h: naa., eui. or a SCSI name."""
    relative_port: int | None = None
    """Number of that port in its target."""
    port_group: int | None = None
    """Target port group: the ports of one controller change their ALUA state together."""
    controller: str = ""
    """Controller of the storage, derived from identities: array and port group, else the target port."""
    priority: int | None = None
    """Priority by which multipathd orders groups."""
    group_state: str = ""
    """State of its priority group in the map: active, enabled or disabled (drivers/md/dm-mpath.c)."""
    checker: str = ""
    """Checker by which multipathd tests the path, and its last result."""
    checker_state: str = ""
    timeout_ms: int | None = None
    """Time after which a command is aborted (device/timeout of SCSI, queue/io_timeout of others)."""
    eh_timeout_s: int | None = None
    """Limit of each command of the SCSI error handler."""
    loss_timeout_s: int | None = None
    """Time without the remote port or controller after which it is removed (dev_loss_tmo, ctrl_loss_tmo); -1: never."""
    fast_fail_timeout_s: int | None = None
    """Time after which its I/O fails instead of waiting (fast_io_fail_tmo, recovery_tmo of iSCSI); -1: never."""
    reconnect_delay_s: int | None = None
    """Pause between attempts to reconnect an NVMe controller; -1: none are made."""
    keep_alive_s: int | None = None
    """Keep-alive timeout of an NVMe controller (kato); 0: off."""

    @property
    def usable(self) -> bool:
        """Whether I/O may be sent down this path, as far as known."""
        return self.state in USABLE_STATES and self.access in USABLE_ACCESS and self.map_state != "failed"

    @property
    def is_scsi(self) -> bool:
        """Whether it is a SCSI device: its address is H:C:T:L."""
        return self.address.count(":") == 3


class Lun(Struct, frozen=True):
    """One whole disk on storage: the end of paths."""

    key: str
    name: str
    multipath: str = ""
    """dm, nvme, or empty for a disk with no path but itself."""
    policy: str = ""
    """Path policy: dm path selector or NVMe iopolicy."""
    features: str = ""
    """Features in the table of a dm-multipath map, or "none"; empty if the table was not read."""
    hw_handler: str = ""
    """Hardware handler in that table, or "none"."""
    no_path_retry: str = ""
    """How multipathd queues without paths: on, off, "5 chk" (checks), counting, - (undefined); empty if unknown."""
    retry_interval_s: int | None = None
    """Seconds between those checks (polling_interval)."""
    failback: str = ""
    """How multipathd returns to the best group: immediate, followover, pending, or - (manual, or deferred)."""
    group_switches: int | None = None
    """Changes of the group in use that multipathd counted."""
    path_faults: int | None = None
    """Failures of paths that multipathd counted."""
    queue_timeouts: int | None = None
    """Times that multipathd stopped queueing because its retries were over."""

    @property
    def queue_if_no_path(self) -> bool | None:
        """Whether the map queues I/O while it has no path; None if its table was not read."""
        return "queue_if_no_path" in self.features.split() if self.features else None


class Layer(Struct, frozen=True):
    """A block device built on others: partition, dm, md, LVM, crypt, bcache."""

    key: str
    name: str
    kind: str
    """partition, lvm, crypt, dm, raid0, raid1, md, bcache, ..."""
    label: str = ""
    """dm name or array name."""
    size_bytes: int | None = None
    below: tuple[str, ...] = ()
    """Keys of the devices it is built on."""


class MountedFilesystem(Struct, frozen=True):
    """Use of a device by a filesystem or as swap."""

    key: str
    """Key of the device."""
    point: str
    filesystem: str


class Tape(Struct, frozen=True):
    """One tape drive; it has one path, its own."""

    key: str
    """Key of its row in the TAPE table."""
    name: str
    port: str = ""
    target: str = ""
    address: str = ""
    """H:C:T:L."""
    state: str = ""
    vendor: str = ""
    model: str = ""
    persistent_id: str = ""
    """wwid or serial; empty where the drive has none."""
    label: str = ""
    """Alias set by the operator."""


class Graph(Struct, frozen=True, eq=False, dict=True):
    """Everything between HBA ports and filesystems; empty if it was not scanned."""

    ports: tuple[Port, ...] = ()
    targets: tuple[TargetPort, ...] = ()
    luns: tuple[Lun, ...] = ()
    paths: tuple[Path, ...] = ()
    layers: tuple[Layer, ...] = ()
    mounts: tuple[MountedFilesystem, ...] = ()
    notices: tuple[str, ...] = ()
    """Inconsistencies, one line each: two disks of one identity, dangling links."""
    tapes: tuple[Tape, ...] = ()

    @cached_property
    def paths_of(self) -> Mapping[str, tuple[int, ...]]:
        """Indices in `paths` of the paths of each LUN, by its key."""
        paths_of: dict[str, list[int]] = {lun.key: [] for lun in self.luns}
        for position, path in enumerate(self.paths):
            paths_of.setdefault(path.lun, []).append(position)
        return {lun: tuple(positions) for lun, positions in paths_of.items()}

    def of_lun(self, lun: Lun) -> tuple[Path, ...]:
        """Paths of a LUN."""
        return tuple(self.paths[position] for position in self.paths_of[lun.key])

    @property
    def records(self) -> tuple[tuple[object, ...], ...]:
        """All lists, for comparison."""
        return (self.ports, self.targets, self.luns, self.paths, self.layers, self.mounts, self.notices, self.tapes)


@lru_cache(maxsize=4)
def paths_of(graph: Graph) -> Mapping[str, Path]:
    """Paths by key."""
    return {path.key: path for path in graph.paths}


@lru_cache(maxsize=4)
def ports_of(graph: Graph) -> Mapping[str, Port]:
    """HBA ports by key."""
    return {port.key: port for port in graph.ports}


@lru_cache(maxsize=4)
def targets_of(graph: Graph) -> Mapping[str, TargetPort]:
    """Target ports by key."""
    return {target.key: target for target in graph.targets}


@lru_cache(maxsize=4)
def policies_of(graph: Graph) -> Mapping[str, str]:
    """Path policy of each LUN by its key."""
    return {lun.key: lun.policy for lun in graph.luns}


def layers_above(graph: Graph) -> Mapping[str, Sequence[Layer]]:
    """Layers built directly on each device, by its key."""
    above: dict[str, list[Layer]] = {}
    for layer in graph.layers:
        for below in layer.below:
            above.setdefault(below, []).append(layer)
    return above


def rootless_layers(graph: Graph) -> Iterator[Layer]:
    """Yield the layers to start from to reach all layers that cannot be reached from a LUN."""
    above = layers_above(graph)
    reached = _reached(above, (lun.key for lun in graph.luns))
    known = {layer.key for layer in graph.layers}
    bottom_first = sorted(graph.layers, key=lambda layer: bool(known.intersection(layer.below) - {layer.key}))
    for layer in bottom_first:
        if layer.key not in reached:
            yield layer
            reached |= _reached(above, (layer.key,))


def _reached(above: Mapping[str, Sequence[Layer]], start: Iterable[str]) -> set[str]:
    """Keys of devices and of all layers built on them."""
    waiting = list(start)
    reached = set(waiting)
    while waiting:
        fresh = [layer.key for layer in above.get(waiting.pop(), ()) if layer.key not in reached]
        reached.update(fresh)
        waiting += fresh
    return reached
