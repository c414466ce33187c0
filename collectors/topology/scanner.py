"""Scan of sysfs and procfs into devices and graph, complete or of changed devices only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from collectors.graph import Graph, MountedFilesystem
from collectors.kernel.devices import read_udev_properties
from collectors.kernel.identity import storable_name
from collectors.kernel.sysfs import read_class
from collectors.model import Device, Rows, Topology
from collectors.sampling.reading_settings import ReadingSettings
from collectors.tables.block.counters import BlockCollector
from collectors.tables.host.facts import read_host_facts
from collectors.tables.tape.reader import read_tapes
from collectors.topology.assemble import Assembly, daemon_answer, daemon_part, notices, with_daemon_facts
from collectors.topology.buses import read_buses
from collectors.topology.device_mapper import AskMaps, open_maps, with_map_states
from collectors.topology.multipathd import NO_FACTS, DaemonFacts, MultipathDaemon, same_kernel
from collectors.topology.seen import DeviceRecords, Partition, partitions_by_name, read_partitions
from engine.errors import LunscopeError
from engine.hostfs.kernel_files import major_minor, read_text, unescape_octal
from engine.replacing import replace
from engine.text import safe_text

Numbers = Mapping[tuple[int, int], str]


def read_mounts(procfs: str, by_number: Numbers, by_name: Mapping[str, str]) -> tuple[MountedFilesystem, ...]:
    """Mounts of the host and its swap areas, on the devices given, each point once.

    Args:
        procfs: mounts are those of its process 1, which are the host's even in a container.
        by_number: keys of devices by major and minor.
        by_name: keys of devices by path below /dev, with dm names as /dev/mapper/NAME: for filesystems whose number in
            mountinfo is not that of a device (btrfs; lower layers of overlay are no devices at all).
    """
    text = _read(procfs, "1/mountinfo") or _read(procfs, "self/mountinfo")
    mounts = dict.fromkeys((*_mounts(text, by_number, by_name), *_swaps(_read(procfs, "swaps"), by_name)))
    return tuple(mounts)


def _mounts(text: str, by_number: Numbers, by_name: Mapping[str, str]) -> Iterator[MountedFilesystem]:
    """Lines of mountinfo (proc(5)): the fields after the separator are filesystem and source."""
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if not separator or len(fields) < 5 or len(rest) < 2:
            continue
        key = by_number.get(major_minor(fields[2]) or (-1, -1)) or by_name.get(unescape_octal(rest[1]))
        if key:
            yield MountedFilesystem(key, safe_text(unescape_octal(fields[4])), safe_text(rest[0]))


def _swaps(text: str, by_name: Mapping[str, str]) -> Iterator[MountedFilesystem]:
    for line in text.splitlines()[1:]:
        key = by_name.get(unescape_octal(line.split(maxsplit=1)[0])) if line.strip() else None
        if key:
            yield MountedFilesystem(key, "[swap]", "swap")


def _read(procfs: str, name: str) -> str:
    return storable_name(read_text(f"{procfs}/{name}") or "")


def with_aliases(
    devices: Mapping[str, Device], graph: Graph, settings: ReadingSettings
) -> tuple[dict[str, Device], Graph]:
    """Apply aliases; a LUN's alias replaces the name of its map, its paths keep kernel names."""
    if not settings.aliases:
        return dict(devices), graph
    named = dict(devices)
    for lun in graph.luns:
        device = devices.get(lun.key)
        alias = settings.alias_of(device.persistent_id, device.serial) if device is not None else ""
        if device is not None and alias:
            named[lun.key] = replace(device, friendly_name=alias)
    ports = tuple(replace(port, label=settings.alias_of(port.address, port.parent)) for port in graph.ports)
    targets = tuple(replace(target, label=settings.alias_of(target.name)) for target in graph.targets)
    tapes = tuple(replace(tape, label=settings.alias_of(tape.persistent_id)) for tape in graph.tapes)
    return named, replace(graph, ports=ports, targets=targets, tapes=tapes)


class TopologyScanner:
    """Scans on request and caches devices, so that a change of one device of thousands is cheap."""

    def __init__(
        self,
        procfs: str = "/proc",
        sysfs: str = "/sys",
        ask_maps: AskMaps | None = None,
        settings: ReadingSettings | None = None,
    ) -> None:
        """Set the paths to read.

        Args:
            procfs: for mounts and swap.
            sysfs: for everything else.
            ask_maps: reads the state of dm-multipath maps; None if that is not possible.
            settings: with the operator's aliases.
        """
        self._settings = settings or ReadingSettings()
        self._procfs = procfs
        self._sysfs = sysfs
        self._ask_maps = ask_maps
        self._daemon = MultipathDaemon() if same_kernel(sysfs) else None
        self._records = DeviceRecords(sysfs, read_udev_properties if Path(sysfs) == Path("/sys") else None)

    def scan(self, rows: Rows, changed: frozenset[str] | None = None) -> tuple[dict[str, Device], Graph]:
        """Return the facts of the devices of a DISK table by key, and the device graph.

        Ports, mounts and partitions are always read. A device that has vanished has its names and numbers only.

        Args:
            rows: rows of the DISK table.
            changed: names of the devices to read again besides new ones; None for all.
        """
        records = self._records.update(rows, changed)
        devices = {key: one.device for key, one in records.items()}
        partitions = read_partitions(self._sysfs, rows.names)
        keys = {device.name: key for key, device in devices.items()}
        keys |= partitions_by_name(partitions, keys)
        assembly = Assembly.of(records, read_buses(self._sysfs), self._daemon_facts())
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
        """Names of the paths and maps of a scanned graph that multipathd or the transport describe otherwise."""
        daemon, remote_ports = self._daemon_facts(), read_class(self._sysfs, "fc_remote_ports", ("port_state",))
        if not daemon.paths and not remote_ports:
            return frozenset()
        known = ((path, self._records.known.get(path.key)) for path in graph.paths)
        changed = {
            path.name
            for path, one in known
            if one is not None and daemon_part(path) != daemon_answer(one, daemon, remote_ports)
        }
        maps = {lun.name for lun in graph.luns if lun.multipath == "dm" and with_daemon_facts(lun, daemon) != lun}
        return frozenset(changed | maps)

    def _daemon_facts(self) -> DaemonFacts:
        return NO_FACTS if self._daemon is None else self._daemon.facts()

    def _with_map_states(self, graph: Graph, devices: Mapping[str, Device]) -> Graph:
        if self._ask_maps is None:
            return graph
        maps = (devices[lun.key] for lun in graph.luns if lun.multipath == "dm")
        return with_map_states(graph, devices, self._ask_maps((one.major, one.minor) for one in maps))

    def _mounts(
        self, devices: Mapping[str, Device], partitions: list[Partition], keys: Mapping[str, str]
    ) -> tuple[MountedFilesystem, ...]:
        by_number = {(device.major, device.minor): key for key, device in devices.items() if device.major}
        by_number |= {part.number: keys[part.name] for part in partitions if part.number is not None}
        by_name = {f"/dev/{name}": key for name, key in keys.items()}
        by_name |= {f"/dev/mapper/{one.friendly_name}": one.key for one in devices.values() if one.friendly_name}
        return read_mounts(self._procfs, by_number, by_name)


def read_topology(procfs: Path, sysfs: Path, settings: ReadingSettings | None = None) -> Topology:
    """Scan once; `settings` has the operator's aliases.

    Raises:
        LunscopeError: neither procfs nor sysfs lists block devices there.
    """
    collector = BlockCollector(str(procfs), str(sysfs))
    try:
        rows = collector.read().tables["disk"].rows
    except OSError as error:
        fix = "mount procfs and sysfs, or name them with --procfs and --sysfs"
        raise LunscopeError(f"{error.filename}: {error.strerror}: {fix}") from error
    finally:
        collector.close()
    scanner = TopologyScanner(str(procfs), str(sysfs), open_maps(str(sysfs)), settings)
    devices, graph = scanner.scan(rows)
    return Topology(devices, read_host_facts(str(procfs)), graph)
