"""States of paths between scans: what changed, and how to say it. The kernel announces few of these changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from collectors.kernel.device_names import label_of
from collectors.kernel.identity import sysfs_name
from collectors.kernel.sysfs_text import number, text
from collectors.model import Device
from collectors.topology.class_folder import read_class
from collectors.topology.graph import Graph, Path
from engine._native import read_attributes
from engine.text import safe_text

MOST_EVENTS = 32
"""More changes than this at once (a port that is down) are told in one event."""

_OF_SCSI = ("device/state", "device/access_state", "device/queue_depth")
_OF_OTHERS = ("ana_state",)
Told = tuple[str, dict[str, str | int]]


def changed_paths(sysfs: str, graph: Graph) -> frozenset[str]:
    """Names of the paths whose state, access or limit is not as the graph has it, but for those that vanished."""
    scsi = [path for path in graph.paths if path.address.count(":") == 3]
    others = [path for path in graph.paths if path.address.startswith("nvme")]
    controllers = {name: facts["state"] for name, facts in read_class(sysfs, "nvme", ("state",)).items()}
    names = {path.name for path, values in _read(sysfs, scsi, _OF_SCSI) if _scsi_differs(path, values)}
    for path, (ana,) in _read(sysfs, others, _OF_OTHERS):
        state, access = controllers.get(path.address.split()[0], ""), text(ana)
        if (state and state != path.state) or (access and access != path.access):
            names.add(path.name)
    return frozenset(names)


def _read(
    sysfs: str, paths: Sequence[Path], attributes: Sequence[str]
) -> Iterator[tuple[Path, Sequence[bytes | None]]]:
    try:
        found = read_attributes(f"{sysfs}/block", [sysfs_name(path.name) for path in paths], attributes)
    except OSError:
        return
    yield from zip(paths, found, strict=True)


def _scsi_differs(path: Path, values: Sequence[bytes | None]) -> bool:
    state, access, limit = text(values[0]), text(values[1]), number(values[2])
    changed = bool(state and state != path.state) or bool(access and access != path.access)
    return changed or (limit is not None and limit != path.queue_limit)


def path_changes(before: Graph, now: Graph, devices: Mapping[str, Device]) -> Iterator[Told]:
    """Yield text and data of an event per path whose state changed, or of one event for very many.

    Paths that came or went are told as disks that did.
    """
    known = {path.key: path for path in before.paths}
    pairs = [(known[path.key], path) for path in now.paths if path.key in known]
    changed = [(old, new) for old, new in pairs if _condition(old) != _condition(new)]
    if len(changed) > MOST_EVENTS:
        counts = Counter(_verdict(old, new) for old, new in changed)
        yield "paths: " + ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items()), dict(counts)
        return
    for old, new in changed:
        named, data = _named(new, devices)
        yield f"{named} {_verdict(old, new)}: {_words(old)} -> {_words(new)}", data


def limit_changes(before: Graph, now: Graph, devices: Mapping[str, Device]) -> Iterator[Told]:
    """Yield text and data of an event per path that admits more or fewer commands than before, or of one for many.

    The kernel lowers a limit by itself when the target says that its task set is full, and raises it again later
    (scsi_track_queue_full, drivers/scsi/scsi.c).
    """
    known = {path.key: path for path in before.paths}
    pairs = ((known[path.key], path) for path in now.paths if path.key in known)
    changed = [
        (old.queue_limit, new)
        for old, new in pairs
        if None not in {old.queue_limit, new.queue_limit} and old.queue_limit != new.queue_limit
    ]
    if len(changed) > MOST_EVENTS:
        yield f"paths: limit of commands changed on {len(changed):,}", {"paths": len(changed)}
        return
    for limit, path in changed:
        named, data = _named(path, devices)
        yield (
            f"{named}: limit of commands {limit} -> {path.queue_limit}",
            {**data, "queue_limit": path.queue_limit or 0},
        )


def _named(path: Path, devices: Mapping[str, Device]) -> tuple[str, dict[str, str | int]]:
    """Say which path of which LUN, for people and as data."""
    name, lun = safe_text(path.name), safe_text(label_of(devices.get(path.lun), ""))
    of_lun = f" of {lun}" if lun and path.lun != path.key else ""
    return f"path {name}{of_lun}", {"path": name, "lun": lun, "usable": int(path.usable)}


def _condition(path: Path) -> tuple[str, ...]:
    return path.state, path.access, path.map_state, "marginal" if path.marginal else ""


def _words(path: Path) -> str:
    return safe_text(", ".join(filter(None, _condition(path)))) or "not known"


def _verdict(old: Path, new: Path) -> str:
    if old.usable == new.usable:
        return "changed"
    return "back" if new.usable else "lost"
