"""Block devices that a load can be put on, and the targets or the device that a row of a table stands for."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from msgspec import Struct

from collectors.graph import Layer, Lun
from collectors.kernel.device_ids import label_of
from collectors.kernel.devices import HIDDEN_PATH
from collectors.kernel.hotplug_changes import size_text
from collectors.latency.subjects import TRACE, LatencySubject
from collectors.model import Device, Topology
from collectors.topology.ports import natural
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.job.limits import MAX_PATHS
from engine.job.target_text import LUN, SCRATCH
from engine.text import safe_text


class Candidate(Struct, frozen=True, dict=True):
    """One line of the list of targets."""

    target: str
    """Target as the form takes it."""
    name: str
    """Safe to print, as the other texts."""
    size: str = ""
    about: str = ""
    """Kind, model, alias."""
    kernel_name: str = ""
    """Name by which the guard is asked what uses it; empty for what is no single device."""
    dm_name: str = ""
    """Name of a map of device mapper."""

    @cached_property
    def search(self) -> str:
        """What is searched, in lower case."""
        return f"{self.name} {self.target} {self.size} {self.about}".lower()


@lru_cache(maxsize=1)
def candidates(topology: Topology) -> tuple[Candidate, ...]:
    """List whole disks, maps, arrays and partitions by name, then the paths of maps; cached by the topology."""
    paths = {path.key for path in topology.graph.paths if path.lun != path.key}
    shown = [device for device in topology.devices.values() if device.kind != HIDDEN_PATH and device.size_bytes != 0]
    ordered = sorted(shown, key=lambda device: (device.key in paths, natural(device.name)))
    found = [_of_device(device, is_path=device.key in paths) for device in ordered]
    parts = sorted(_partitions(topology), key=lambda part: natural(part.name))
    whole = sum(device.key not in paths for device in ordered)
    luns = (_of_lun(lun, topology) for lun in topology.graph.luns)
    return (
        Candidate(SCRATCH, SCRATCH, about="a file that lunscope makes, fills and removes"),
        *found[:whole],
        *(_of_partition(part) for part in parts),
        *filter(None, luns),
        *found[whole:],
    )


def matching(all_of_them: Sequence[Candidate], typed: str) -> list[Candidate]:
    """Choose those that hold every word."""
    words = typed.lower().split()
    return [one for one in all_of_them if all(word in one.search for word in words)]


def of_recent(path: str) -> Candidate:
    """Make the line of a file that was a target before."""
    return Candidate(path, safe_text(path), about="used before")


def load_targets(key: str, topology: Topology) -> tuple[Candidate, ...]:
    """Find what a load on a device can be put on: the device itself, its map, all of its paths.

    Args:
        key: of a disk, path, LUN or partition.
        topology: of the frame that shows it.

    Raises:
        UsageError: it has no device node.
    """
    device = topology.devices.get(key)
    if device is None:
        part = next((part for part in topology.graph.layers if part.key == key), None)
        if part is None:
            raise UsageError(f"{safe_text(key)}: not among the devices of this host: no load can be put on it")
        return (_of_partition(part),)
    path = next((path for path in topology.graph.paths if path.key == key and path.lun != key), None)
    lun = next((lun for lun in topology.graph.luns if lun.key == (key if path is None else path.lun)), None)
    over = topology.devices.get(lun.key) if path is not None and lun is not None else None
    if device.kind == HIDDEN_PATH:
        name = "the namespace" if over is None else over.name
        raise UsageError(f"{safe_text(device.name)}: NVMe paths have no device node: put the load on {safe_text(name)}")
    own = _of_device(device, is_path=path is not None)
    every = None if lun is None else _of_lun(lun, topology)
    above = None if over is None else _of_device(over, is_path=False)
    return tuple(one for one in (own, above, every) if one is not None)


def _of_device(device: Device, *, is_path: bool) -> Candidate:
    label = label_of(device, device.name)
    words = ["path" if is_path else device.kind, "" if label == device.name else label, device.vendor, device.model]
    size = "" if device.size_bytes is None else size_text(device.size_bytes)
    about = safe_text(" ".join(filter(None, words)))
    dm_name = device.friendly_name if device.kind == "dm" else ""
    return Candidate(_node(device.name), safe_text(device.name), size, about, device.name, dm_name)


def _node(kernel_name: str) -> str:
    """Name its node; sysfs writes `!` for the slashes of a name."""
    return "/dev/" + kernel_name.replace("!", "/")


def target_of(candidate: Candidate) -> str:
    """Return the target as the form takes it; a map by its name in /dev/mapper, if that leads to it."""
    if not candidate.dm_name or "/" in candidate.dm_name:
        return candidate.target
    node = f"/dev/mapper/{candidate.dm_name}"
    number = _number(node)
    return node if number is not None and number == _number(candidate.target) else candidate.target


def _number(node: str) -> int | None:
    try:
        status = Path(node).stat()
    except OSError:
        return None
    return status.st_rdev if stat.S_ISBLK(status.st_mode) else None


def _partitions(topology: Topology) -> Iterator[Layer]:
    return (layer for layer in topology.graph.layers if layer.kind == "partition" and layer.size_bytes != 0)


def _of_partition(part: Layer) -> Candidate:
    size = "" if part.size_bytes is None else size_text(part.size_bytes)
    return Candidate(_node(part.name), safe_text(part.name), size, part.kind, part.name)


def _of_lun(lun: Lun, topology: Topology) -> Candidate | None:
    """Make the line of all paths of a map: lunscope selects among them, not the kernel."""
    paths = topology.graph.of_lun(lun)
    device = topology.devices.get(lun.key)
    if device is None or lun.multipath != "dm" or not 2 <= len(paths) <= MAX_PATHS:
        return None
    names = ",".join(path.name for path in paths)
    size = "" if device.size_bytes is None else size_text(device.size_bytes)
    about = f"its {len(paths)} paths, chosen by the policy of the load"
    return Candidate(LUN + names, safe_text(label_of(device, device.name)), size, about)


_DEVICE_TABLES = frozenset({"disks", "paths"})
_NAMED_BY = {EventKind.HOTPLUG: "name", EventKind.PATH: "path"}
"""Keys in which events of a kind name their device."""


def device_of_subject(subject: LatencySubject | None, topology: Topology) -> str | None:
    """Key of the disk, path or LUN with these latencies; None for a port, a group of disks, and the load itself."""
    if subject is None or subject.source != TRACE:
        return None
    if len(subject.keys) == 1:
        return next(iter(subject.keys))
    graph = topology.graph
    luns = {path.lun for path in graph.paths if path.key in subject.keys}
    if len(luns) != 1:
        return None
    (lun,) = luns
    paths = {graph.paths[position].key for position in graph.paths_of.get(lun, ())}
    return lun if paths == subject.keys - {lun} else None


def device_of_event(event: Event | None, topology: Topology) -> str | None:
    """Key of the device that an event names, if it is there now."""
    if event is None:
        return None
    if event.kind is EventKind.ALERT and event.data.get("table") in _DEVICE_TABLES:
        return next((key for key in topology.devices if safe_text(key) == event.data.get("key")), None)
    name = event.data.get(_NAMED_BY.get(event.kind, ""))
    return next(_named(name, topology), None) if isinstance(name, str) else None


def _named(name: str, topology: Topology) -> Iterator[str]:
    return (key for key, device in topology.devices.items() if safe_text(device.name) == name)


def device_of_row(table: str, key: str) -> str | None:
    """Key of the device of a row; None for a row of a table without devices."""
    return key if table in _DEVICE_TABLES else None
