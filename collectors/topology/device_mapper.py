"""State of multipath maps from the device mapper: selector, groups, failed paths. Needs root; read-only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from collectors.graph import Graph, Path
from collectors.model import Device
from collectors.topology.multipathd import same_kernel
from engine.hostfs.dm_control import CONTROL, Number, first_target
from engine.replacing import replace
from engine.text import whole_number


class MapPath(Struct, frozen=True):
    """State of one path in a map."""

    state: str
    """active or failed; empty if unknown."""
    failures: int | None
    group: int
    """Priority group, from 1."""
    weight: int | None
    """Last argument of the path in the table: the throughput weight of service-time, the repeat count of others."""
    group_state: str = ""
    """active, enabled or disabled; empty if unknown."""


class MapState(Struct, frozen=True):
    """One map: its path selector and its paths by device number."""

    policy: str
    paths: Mapping[Number, MapPath]
    features: str = ""
    """Words of the table, or "none"."""
    hw_handler: str = ""
    """Likewise."""


def parse_map(table: str, status: str) -> MapState | None:
    """Parse both lines; None if the table has an unknown format, empty states if the status has.

    Args:
        table: parameters after "multipath" in the output of `dmsetup table`.
        status: the same of `dmsetup status`.
    """
    try:
        policy, weights, features, handler = _table(iter(table.split()))
    except (ValueError, StopIteration):
        return None
    try:
        states = _status(iter(status.split()))
    except (ValueError, StopIteration):
        states = {}
    return MapState(
        policy,
        {number: _map_path(states.get(number), *place) for number, place in weights.items()},
        " ".join(features) or "none",
        " ".join(handler) or "none",
    )


def _map_path(found: tuple[str, int | None, str] | None, group: int, weight: int | None) -> MapPath:
    state, failures, group_state = found or ("", None, "")
    return MapPath(state, failures, group, weight, group_state)


def _table(words: Iterator[str]) -> tuple[str, dict[Number, tuple[int, int | None]], list[str], list[str]]:
    """`#features f... #handler h... #groups first { selector #args a... #paths #path_args { device a... } }`."""
    features, handler = _counted(words), _counted(words)
    groups, _ = int(next(words)), next(words)
    policies: list[str] = []
    paths: dict[Number, tuple[int, int | None]] = {}
    for group in range(1, groups + 1):
        policies.append(next(words))
        _counted(words)
        count, arguments = int(next(words)), int(next(words))
        for _ in range(count):
            number = _map_number(next(words))
            values = [next(words) for _ in range(arguments)]
            paths[number] = group, whole_number(values[-1]) if values else None
    return "/".join(dict.fromkeys(policies)), paths, features, handler


_GROUP_STATES = {"A": "active", "E": "enabled", "D": "disabled"}


def _status(words: Iterator[str]) -> dict[Number, tuple[str, int | None, str]]:
    """`#features f... #handler h... #groups current { state #args a... #paths #path_args { device A|F n a... } }`."""
    _counted(words)
    _counted(words)
    groups, _ = int(next(words)), next(words)
    paths: dict[Number, tuple[str, int | None, str]] = {}
    for _ in range(groups):
        group_state = _GROUP_STATES.get(next(words), "")
        _counted(words)
        count, arguments = int(next(words)), int(next(words))
        for _ in range(count):
            number = _map_number(next(words))
            state = {"A": "active", "F": "failed"}.get(next(words), "")
            paths[number] = state, int(next(words)), group_state
            for _ in range(arguments):
                next(words)
    return paths


def _counted(words: Iterator[str]) -> list[str]:
    """Take a count and that many words."""
    return [next(words) for _ in range(int(next(words)))]


def _map_number(word: str) -> Number:
    major, _, minor = word.partition(":")
    return int(major), int(minor)


AskMaps = Callable[[Iterable[Number]], Mapping[Number, MapState]]


def open_maps(sysfs: str) -> AskMaps | None:
    """Return the function that reads maps; None without the rights, or if `sysfs` is not of the running kernel."""
    if not same_kernel(sysfs):
        return None
    try:
        os.close(os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return None
    return read_maps


def read_maps(numbers: Iterable[Number]) -> dict[Number, MapState]:
    """State of multipath maps by device number; vanished maps and those with another target are left out."""
    found: dict[Number, MapState] = {}
    try:
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        for number in numbers:
            state = _read_map(control, number)
            if state is not None:
                found[number] = state
    finally:
        os.close(control)
    return found


def with_map_states(graph: Graph, devices: Mapping[str, Device], maps: Mapping[Number, MapState]) -> Graph:
    """Add the state of maps to their LUNs and paths."""
    of_lun = {lun.key: maps.get(_number(devices[lun.key])) for lun in graph.luns if lun.multipath == "dm"}
    luns = tuple(
        replace(lun, policy=state.policy, features=state.features, hw_handler=state.hw_handler)
        if (state := of_lun.get(lun.key)) is not None
        else lun
        for lun in graph.luns
    )
    paths = tuple(_with_state(path, devices, of_lun.get(path.lun)) for path in graph.paths)
    return replace(graph, luns=luns, paths=paths)


def _with_state(path: Path, devices: Mapping[str, Device], state: MapState | None) -> Path:
    map_path = None if state is None else state.paths.get(_number(devices[path.key]))
    if map_path is None:
        return path
    return replace(
        path,
        map_state=map_path.state,
        failures=map_path.failures,
        group=map_path.group,
        weight=map_path.weight,
        group_state=map_path.group_state,
    )


def _number(device: Device) -> Number:
    return device.major, device.minor


def _read_map(control: int, number: Number) -> MapState | None:
    table, status = _multipath(control, number, table=True), _multipath(control, number, table=False)
    return parse_map(table, status) if table and status is not None else None


def _multipath(control: int, number: Number, *, table: bool) -> str | None:
    """Parameters of a map's multipath target; None if it has none or has vanished."""
    found = first_target(control, number, table=table)
    return found[1] if found is not None and found[0] == "multipath" else None
