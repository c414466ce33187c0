"""States of paths between scans: what changed, and how to say it. The kernel announces few of these changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from collectors.device_names import label_of
from collectors.identity import sysfs_name
from collectors.model import Device
from collectors.sysfs_text import text
from collectors.topology.class_folder import read_class
from collectors.topology.graph import Graph, Path
from engine._native import read_attributes
from engine.text import safe_text

MOST_EVENTS = 32
"""More changes than this at once (a port that is down) are told in one event."""

_ATTRIBUTES = ("device/state", "device/access_state", "ana_state")
Told = tuple[str, dict[str, str | int]]


def changed_paths(sysfs: str, graph: Graph) -> frozenset[str]:
    """Names of the paths whose state or access is not as the graph has it; those that vanished are not among them."""
    names = [path.name for path in graph.paths]
    try:
        found = read_attributes(f"{sysfs}/block", list(map(sysfs_name, names)), _ATTRIBUTES)
    except OSError:
        return frozenset()
    controllers = {name: facts["state"] for name, facts in read_class(sysfs, "nvme", ("state",)).items()}
    return frozenset(
        path.name for path, values in zip(graph.paths, found, strict=True) if _differs(path, values, controllers)
    )


def _differs(path: Path, values: Sequence[bytes | None], controllers: Mapping[str, str]) -> bool:
    state, alua, ana = map(text, values)
    if path.address.startswith("nvme"):
        state = controllers.get(path.address.split()[0], "")
    access = alua or ana
    return bool(state and state != path.state) or bool(access and access != path.access)


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
        lun = safe_text(label_of(devices.get(new.lun), ""))
        of_lun = f" of {lun}" if lun and new.lun != new.key else ""
        change = f"{_words(old)} -> {_words(new)}"
        data: dict[str, str | int] = {"path": safe_text(new.name), "lun": lun, "usable": int(new.usable)}
        yield f"path {safe_text(new.name)}{of_lun} {_verdict(old, new)}: {change}", data


def _condition(path: Path) -> tuple[str, str, str]:
    return path.state, path.access, path.map_state


def _words(path: Path) -> str:
    return safe_text(", ".join(filter(None, _condition(path)))) or "not known"


def _verdict(old: Path, new: Path) -> str:
    if old.usable == new.usable:
        return "changed"
    return "back" if new.usable else "lost"
