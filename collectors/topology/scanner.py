"""The scan: sysfs and procfs into devices and graph, whole or only what changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from collectors.kernel.udev_facts import look_up
from collectors.model import Device, Rows
from collectors.sources.reading_settings import ReadingSettings
from collectors.topology.aliases import with_aliases
from collectors.topology.assemble import Assembly, is_marginal, notices
from collectors.topology.buses import read_buses
from collectors.topology.class_folder import read_class
from collectors.topology.device_mapper import AskMaps, with_map_states
from collectors.topology.graph import Graph, Mount
from collectors.topology.mounts import read_mounts
from collectors.topology.multipathd import UNKNOWN_PATH, DaemonPath, MultipathDaemon, same_kernel
from collectors.topology.partitions import Partition, partitions_by_name, read_partitions
from collectors.topology.seen import SeenDevices
from collectors.topology.tapes import read_tapes


class TopologyScanner:
    """Scans when asked and keeps what it read, so that a change of one device of thousands is cheap."""

    def __init__(
        self,
        procfs: str = "/proc",
        sysfs: str = "/sys",
        ask_maps: AskMaps | None = None,
        settings: ReadingSettings | None = None,
    ) -> None:
        """Remember where to read.

        Args:
            procfs: for mounts and swap.
            sysfs: for everything else.
            ask_maps: tells of dm-multipath maps what sysfs does not; None where that cannot be asked.
            settings: has the names the operator gave.
        """
        self._settings = settings or ReadingSettings()
        self._procfs = procfs
        self._sysfs = sysfs
        self._ask_maps = ask_maps
        self._daemon = MultipathDaemon() if same_kernel(sysfs) else None
        self._seen = SeenDevices(sysfs, look_up if Path(sysfs) == Path("/sys") else None)

    def scan(self, rows: Rows, changed: frozenset[str] | None = None) -> tuple[dict[str, Device], Graph]:
        """Facts of the devices of a DISK table by key, and how they hang together.

        Ports, mounts and partitions are always read. A device that has vanished has its names and numbers only.

        Args:
            rows: of the DISK table.
            changed: names of the devices to read again beside new ones; None for all.
        """
        seen = self._seen.update(rows, changed)
        devices = {key: one.device for key, one in seen.items()}
        partitions = read_partitions(self._sysfs, rows.names)
        keys = {device.name: key for key, device in devices.items()}
        keys |= partitions_by_name(partitions, keys)
        assembly = Assembly.of(seen, read_buses(self._sysfs), self._daemon_paths())
        assembly.add_disks()
        assembly.add_layers(partitions, keys)
        assembly.add_tapes(read_tapes(self._sysfs))
        graph = Graph(
            ports=assembly.ports.sorted(),
            targets=tuple(assembly.targets.values()),
            luns=tuple(assembly.luns),
            paths=tuple(assembly.paths),
            layers=tuple(assembly.layers),
            mounts=self._mounts(devices, partitions, keys),
            notices=tuple(notices(assembly, keys)),
            tapes=tuple(assembly.tapes),
        )
        return with_aliases(devices, self._with_map_states(graph, devices), self._settings)

    def marginal_changes(self, graph: Graph) -> frozenset[str]:
        """Names of the paths of a scanned graph that became marginal or are so no more, or have another priority."""
        told, remote_ports = self._daemon_paths(), read_class(self._sysfs, "fc_remote_ports", ("port_state",))
        if not told and not remote_ports:
            return frozenset()
        known = ((path, self._seen.known.get(path.key)) for path in graph.paths)
        return frozenset(
            path.name
            for path, one in known
            if one is not None
            and (path.marginal, path.priority)
            != (is_marginal(one, told, remote_ports), told.get(path.name, UNKNOWN_PATH).priority)
        )

    def _daemon_paths(self) -> Mapping[str, DaemonPath]:
        return {} if self._daemon is None else self._daemon.paths()

    def _with_map_states(self, graph: Graph, devices: Mapping[str, Device]) -> Graph:
        if self._ask_maps is None:
            return graph
        maps = (devices[lun.key] for lun in graph.luns if lun.multipath == "dm")
        return with_map_states(graph, devices, self._ask_maps((one.major, one.minor) for one in maps))

    def _mounts(
        self, devices: Mapping[str, Device], partitions: list[Partition], keys: Mapping[str, str]
    ) -> tuple[Mount, ...]:
        by_number = {(device.major, device.minor): key for key, device in devices.items() if device.major}
        by_number |= {part.number: keys[part.name] for part in partitions if part.number is not None}
        by_name = {f"/dev/{name}": key for name, key in keys.items()}
        by_name |= {f"/dev/mapper/{one.friendly_name}": one.key for one in devices.values() if one.friendly_name}
        return read_mounts(self._procfs, by_number, by_name)
