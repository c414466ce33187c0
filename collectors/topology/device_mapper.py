"""State of multipath maps from the device mapper: selector, groups, failed paths. Needs root; read-only."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from collectors.graph import Graph, Path
from collectors.model import Device
from collectors.topology.multipathd import same_kernel
from engine.text import whole_number

Number = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MapPath:
    """State of one path in a map."""

    state: str
    """active or failed; empty if unknown."""
    failures: int | None
    group: int
    """Priority group, from 1."""
    weight: int | None
    """Last argument of the path in the table: the throughput weight of service-time, the repeat count of others."""


@dataclass(frozen=True, slots=True)
class MapState:
    """One map: its path selector and its paths by device number."""

    policy: str
    paths: Mapping[Number, MapPath]


def parse_map(table: str, status: str) -> MapState | None:
    """Parse both lines; None if the table has an unknown format, empty states if the status has.

    Args:
        table: parameters after "multipath" in the output of `dmsetup table`.
        status: the same of `dmsetup status`.
    """
    try:
        policy, weights = _table(iter(table.split()))
    except (ValueError, StopIteration):
        return None
    try:
        states = _status(iter(status.split()))
    except (ValueError, StopIteration):
        states = {}
    return MapState(
        policy,
        {
            number: MapPath(*states.get(number, ("", None)), group, weight)
            for number, (group, weight) in weights.items()
        },
    )


def _table(words: Iterator[str]) -> tuple[str, dict[Number, tuple[int, int | None]]]:
    """`#features f... #handler h... #groups first { selector #args a... #paths #path_args { device a... } }`."""
    _counted(words)
    _counted(words)
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
    return "/".join(dict.fromkeys(policies)), paths


def _status(words: Iterator[str]) -> dict[Number, tuple[str, int | None]]:
    """`#features f... #handler h... #groups current { state #args a... #paths #path_args { device A|F n a... } }`."""
    _counted(words)
    _counted(words)
    groups, _ = int(next(words)), next(words)
    paths: dict[Number, tuple[str, int | None]] = {}
    for _ in range(groups):
        next(words)
        _counted(words)
        count, arguments = int(next(words)), int(next(words))
        for _ in range(count):
            number = _map_number(next(words))
            paths[number] = {"A": "active", "F": "failed"}.get(next(words), ""), int(next(words))
            for _ in range(arguments):
                next(words)
    return paths


def _counted(words: Iterator[str]) -> list[str]:
    """Take a count and that many words."""
    return [next(words) for _ in range(int(next(words)))]


def _map_number(word: str) -> Number:
    major, _, minor = word.partition(":")
    return int(major), int(minor)


CONTROL = "/dev/mapper/control"

HEADER = struct.Struct("=3I I I I i I I I Q 128s 129s 7x")
"""struct dm_ioctl (include/uapi/linux/dm-ioctl.h)."""
_TARGET = struct.Struct("=Q Q i I 16s")
"""struct dm_target_spec."""
_TABLE_STATUS = 0xC000FD0C | HEADER.size << 16
_STATUS_TABLE = 1 << 4
"""Return the table instead of the status."""
BUFFER_FULL = 1 << 8
_NO_FLUSH = 1 << 11
"""Do not flush the target before it answers."""
VERSION = (4, 0, 0)
_BUFFER = 16 * 1024
_LARGEST = 1024 * 1024

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
        replace(lun, policy=state.policy) if (state := of_lun.get(lun.key)) is not None else lun for lun in graph.luns
    )
    paths = tuple(_with_state(path, devices, of_lun.get(path.lun)) for path in graph.paths)
    return replace(graph, luns=luns, paths=paths)


def _with_state(path: Path, devices: Mapping[str, Device], state: MapState | None) -> Path:
    map_path = None if state is None else state.paths.get(_number(devices[path.key]))
    if map_path is None:
        return path
    return replace(
        path, map_state=map_path.state, failures=map_path.failures, group=map_path.group, weight=map_path.weight
    )


def _number(device: Device) -> Number:
    return device.major, device.minor


def _read_map(control: int, number: Number) -> MapState | None:
    table, status = _multipath(control, number, table=True), _multipath(control, number, table=False)
    return parse_map(table, status) if table and status is not None else None


def first_target(control: int, number: Number, *, table: bool) -> tuple[str, str] | None:
    """Type and parameters of the first target of a map, as `dmsetup table` or `dmsetup status` print them.

    None if it has none or has vanished. `control` is the opened CONTROL.
    """
    size, flags = _BUFFER, _STATUS_TABLE if table else 0
    while size <= _LARGEST:
        buffer = bytearray(size)
        HEADER.pack_into(buffer, 0, *header_of(number, size, flags | _NO_FLUSH))
        try:
            fcntl.ioctl(control, _TABLE_STATUS, buffer)
        except OSError:
            return None
        _, _, _, _, start, targets, _, answered, *_ = HEADER.unpack_from(buffer)
        if not answered & BUFFER_FULL:
            return _target(buffer, start) if targets else None
        size *= 4
    return None


def header_of(number: Number, size: int, flags: int) -> tuple[int | bytes, ...]:
    """Fields of a request's header, in the order of `HEADER`."""
    return (*VERSION, size, HEADER.size, 0, 0, flags, 0, 0, _encoded(number), b"", b"")


def _target(buffer: bytearray, start: int) -> tuple[str, str]:
    *_, kind = _TARGET.unpack_from(buffer, start)
    parameters = buffer[start + _TARGET.size :].partition(b"\0")[0]
    return kind.partition(b"\0")[0].decode("ascii", "replace"), parameters.decode("ascii", "replace")


def _multipath(control: int, number: Number, *, table: bool) -> str | None:
    """Parameters of a map's multipath target; None if it has none or has vanished."""
    found = first_target(control, number, table=table)
    return found[1] if found is not None and found[0] == "multipath" else None


def _encoded(number: Number) -> int:
    """Encode a device number for the kernel's interfaces (new_encode_dev, include/linux/kdev_t.h)."""
    major, minor = number
    return (minor & 0xFF) | major << 8 | (minor & ~0xFF) << 12


def decoded(device: int) -> Number:
    """Undo `_encoded` (new_decode_dev)."""
    return (device & 0xFFF00) >> 8, (device & 0xFF) | ((device >> 12) & 0xFFF00)
