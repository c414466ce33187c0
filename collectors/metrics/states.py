"""States of multipath devices under node_exporter's names.

Names, labels and help are those of collector/dmmultipath_linux.go and collector/nvmesubsystem_linux.go. Families that
need what the device graph does not have (whether a map is suspended) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from collectors.graph import Graph, Lun, ports_of
from collectors.graph import Path as LunPath
from collectors.metrics.family import Family, MetricPoint, Values, gauge, labels
from collectors.metrics.view import MetricLevel, MetricView
from collectors.model import Topology
from engine.text import whole_number

_MAP = ("device", "sysfs_name")
DM_INFO = gauge("node_dmmultipath_device_info", "Non-numeric information about a DM-multipath device.", *_MAP, "uuid")
DM_SIZE = gauge(
    "node_dmmultipath_device_size_bytes",
    "Size of the multipath device in bytes, read from /sys/block/<dm>/size.",
    *_MAP,
)
DM_PATHS = gauge("node_dmmultipath_device_paths", "Number of paths for a multipath device.", *_MAP)
DM_ACTIVE = gauge(
    "node_dmmultipath_device_paths_active",
    "Number of paths in active state (SCSI running or NVMe live) for a multipath device.",
    *_MAP,
)
DM_FAILED = gauge(
    "node_dmmultipath_device_paths_failed", "Number of paths not in active state for a multipath device.", *_MAP
)
DM_PATH_STATE = gauge(
    "node_dmmultipath_path_state",
    "Reports the underlying device state for a multipath path, as read from /sys/block/<dev>/device/state.",
    "device",
    "path",
    "state",
)
NVME_INFO = gauge(
    "node_nvmesubsystem_info",
    "Non-numeric information about an NVMe subsystem.",
    *("subsystem", "nqn", "model", "serial", "iopolicy"),
)
NVME_NAMESPACE = gauge(
    "node_nvmesubsystem_namespace_info", "Maps an NVMe namespace block device to its subsystem.", "subsystem", "device"
)
NVME_PATHS = gauge("node_nvmesubsystem_paths", "Number of controller paths for an NVMe subsystem.", "subsystem")
NVME_LIVE = gauge(
    "node_nvmesubsystem_paths_live", "Number of controller paths in live state for an NVMe subsystem.", "subsystem"
)
NVME_PATH_STATE = gauge(
    "node_nvmesubsystem_path_state",
    "Current NVMe controller path state (1 for the current state, 0 for all others).",
    *("subsystem", "controller", "transport", "state"),
)
LUN_PATHS = gauge("lunscope_disk_paths", "Paths of a LUN under multipath.", "device")
LUN_USABLE = gauge(
    "lunscope_disk_paths_usable",
    "Paths of a LUN down which I/O may be sent: by state, ALUA or ANA access, and the multipath map.",
    "device",
)
FAMILIES: tuple[Family, ...] = (
    *(DM_INFO, DM_SIZE, DM_PATHS, DM_ACTIVE, DM_FAILED),
    *(NVME_INFO, NVME_NAMESPACE, NVME_PATHS, NVME_LIVE, NVME_PATH_STATE, LUN_PATHS, LUN_USABLE),
)

_ACTIVE = frozenset({"running", "live"})
_STATES = ("live", "connecting", "resetting", "dead", "unknown")
_OTHER_STATES = frozenset({"deleting", "deleting (no IO)", "new"})
_HEAD = re.compile(r"nvme(\d+)n\d+")
_NVME_PATH = re.compile(r"nvme\d+c(\d+)n\d+")
_UUID = "mpath-"


def _measure(view: MetricView) -> Iterator[MetricPoint]:
    topology = view.sample.topology
    graph = topology.graph
    multipath = [lun for lun in graph.luns if lun.multipath]
    yield from _known(LUN_PATHS, {labels(device=lun.name): len(graph.of_lun(lun)) for lun in multipath})
    usable = {labels(device=lun.name): sum(path.usable for path in graph.of_lun(lun)) for lun in multipath}
    yield from _known(LUN_USABLE, usable)
    yield from _maps([lun for lun in multipath if lun.multipath == "dm"], topology)
    yield from _subsystems([lun for lun in multipath if lun.multipath == "nvme"], topology)


def _known(family: Family, values: Mapping[str, int]) -> Iterator[MetricPoint]:
    if values:
        yield MetricPoint(family, (Values(tuple(values), tuple(values.values())),))


def _maps(luns: Iterable[Lun], topology: Topology) -> Iterator[MetricPoint]:
    info: dict[str, int] = {}
    sizes: dict[str, int] = {}
    paths: dict[str, int] = {}
    active: dict[str, int] = {}
    for lun in luns:
        device, name = topology.devices.get(lun.key), _map_name(lun, topology)
        rendered, below = labels(device=name, sysfs_name=lun.name), topology.graph.of_lun(lun)
        if device is not None and device.persistent_id.startswith(_UUID):
            info[labels(device=name, sysfs_name=lun.name, uuid=device.persistent_id)] = 1
        if device is not None and device.size_bytes is not None:
            sizes[rendered] = device.size_bytes
        paths[rendered], active[rendered] = len(below), sum(path.state in _ACTIVE for path in below)
    yield from _known(DM_INFO, info)
    yield from _known(DM_SIZE, sizes)
    yield from _known(DM_PATHS, paths)
    yield from _known(DM_ACTIVE, active)
    yield from _known(DM_FAILED, {one: count - active[one] for one, count in paths.items()})


def _map_name(lun: Lun, topology: Topology) -> str:
    device = topology.devices.get(lun.key)
    return (device.friendly_name if device is not None else "") or lun.name


def map_path_states(view: MetricView) -> Iterator[MetricPoint]:
    """Measure DM_PATH_STATE, which has a series per path."""
    topology = view.sample.topology
    states = {
        labels(device=_map_name(lun, topology), path=path.name, state=path.state): 1
        for lun in topology.graph.luns
        if lun.multipath == "dm"
        for path in topology.graph.of_lun(lun)
    }
    yield from _known(DM_PATH_STATE, states)


class _Controller(Struct, frozen=True):
    name: str
    transport: str
    state: str


def _subsystems(luns: Iterable[Lun], topology: Topology) -> Iterator[MetricPoint]:
    info: dict[str, int] = {}
    namespaces: dict[str, int] = {}
    controllers: dict[str, dict[str, _Controller]] = {}
    for lun in luns:
        # Heads are named after the instance of their subsystem (nvme_mpath_alloc_disk, nvme_init_subsystem).
        head = _HEAD.fullmatch(lun.name)
        if head is None:
            continue
        name = f"nvme-subsys{head[1]}"
        below = topology.graph.of_lun(lun)
        namespaces[labels(subsystem=name, device=lun.name)] = 1
        controllers.setdefault(name, {}).update(_controllers(below, topology.graph))
        info[_subsystem_info(name, lun, below, topology)] = 1
    yield from _known(NVME_INFO, info)
    yield from _known(NVME_NAMESPACE, namespaces)
    yield from _known(NVME_PATHS, {labels(subsystem=name): len(those) for name, those in controllers.items()})
    live = {name: sum(one.state == "live" for one in those.values()) for name, those in controllers.items()}
    yield from _known(NVME_LIVE, {labels(subsystem=name): count for name, count in live.items()})
    states = {
        labels(subsystem=name, controller=one.name, transport=one.transport, state=state): int(state == one.state)
        for name, those in controllers.items()
        for one in those.values()
        for state in _STATES
    }
    yield from _known(NVME_PATH_STATE, states)


def _subsystem_info(name: str, lun: Lun, below: Iterable[LunPath], topology: Topology) -> str:
    ports = ports_of(topology.graph)
    port = next((ports[path.port] for path in below if path.port in ports), None)
    device = topology.devices.get(lun.key)
    return labels(
        subsystem=name,
        nqn="" if port is None else port.subsystem,
        model="" if device is None else device.model,
        serial="" if port is None else port.serial,
        iopolicy=lun.policy,
    )


def _controllers(below: Iterable[LunPath], graph: Graph) -> dict[str, _Controller]:
    ports = ports_of(graph)
    found: dict[str, _Controller] = {}
    for path in below:
        match = _NVME_PATH.fullmatch(path.name)
        number = None if match is None else whole_number(match[1])
        if number is not None:
            port = ports.get(path.port)
            transport = "" if port is None else port.transport.removeprefix("nvme-")
            state = path.state if path.state in {*_STATES, *_OTHER_STATES} else "unknown"
            found[f"nvme{number}"] = _Controller(f"nvme{number}", transport, state)
    return found


STATE_LEVEL = MetricLevel("states", "states and numbers of the paths of multipath devices", FAMILIES, _measure)
