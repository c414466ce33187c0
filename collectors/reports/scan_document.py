"""The device graph as `lunscope.scan/1`: JSON with references by key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from collectors.graph import Layer, Lun, MountedFilesystem, Path, Port, Tape, TargetPort
from collectors.kernel.device_ids import plain_wwid
from collectors.model import Device, Topology
from collectors.paths.queueing import without_paths
from engine.text import safe_text

SCHEMA = "lunscope.scan/1"

Record = Port | TargetPort | Path | Layer | MountedFilesystem | Tape


def scan_document(
    topology: Topology, states_age_s: float = math.nan, uses: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Convert a topology; external texts are safe to print, unknown values are null or empty.

    Args:
        topology: any topology; it may be empty.
        states_age_s: age of the states of paths, now or at the sample of a recording; NaN if unknown.
        uses: what uses LUNs or anything that shares their bytes, in words, by the keys of the LUNs; None if not known.
    """
    graph = topology.graph
    return {
        "schema": SCHEMA,
        "host": safe_text(topology.host.hostname),
        "kernel": safe_text(topology.host.kernel),
        "ports": [_plain(port) for port in graph.ports],
        "targets": [_plain(target) for target in graph.targets],
        "luns": [
            {
                "key": safe_text(lun.key),
                "name": safe_text(lun.name),
                "multipath": lun.multipath,
                "policy": safe_text(lun.policy),
                **_facts(topology.devices.get(lun.key), [topology.devices.get(path.key) for path in graph.of_lun(lun)]),
                "paths": [safe_text(graph.paths[position].name) for position in graph.paths_of[lun.key]],
                **_map_facts(lun),
                "in_use": None if uses is None else safe_text(uses.get(lun.key, "")),
            }
            for lun in graph.luns
        ],
        "states_age_s": None if math.isnan(states_age_s) else round(states_age_s, 3),
        "paths": [{**_plain(path), "usable": path.usable} for path in graph.paths],
        "layers": [_plain(layer) for layer in graph.layers],
        "mounts": [_plain(mount) for mount in graph.mounts],
        "tapes": [_plain(tape) for tape in graph.tapes],
        "notices": [safe_text(notice) for notice in graph.notices],
    }


def _map_facts(lun: Lun) -> dict[str, object]:
    """Return the configuration of a map; null what was not read, as of a disk without multipath."""
    return {
        "features": safe_text(lun.features) or None,
        "hw_handler": safe_text(lun.hw_handler) or None,
        "queue_if_no_path": lun.queue_if_no_path,
        "no_path_retry": safe_text(lun.no_path_retry) or None,
        "retry_interval_s": lun.retry_interval_s,
        "failback": safe_text(lun.failback) or None,
        "group_switches": lun.group_switches,
        "path_faults": lun.path_faults,
        "queue_timeouts": lun.queue_timeouts,
        "without_paths": without_paths(lun).text,
    }


def _facts(device: Device | None, paths: Sequence[Device | None]) -> dict[str, object]:
    """Return the facts of a LUN; a map has no vendor, model or serial number, but its paths do."""
    if device is None:
        return {}
    known = [one for one in (device, *paths) if one is not None]
    return {
        "id": safe_text(device.persistent_id),
        "wwid": safe_text(plain_wwid(device.persistent_id)),
        "label": safe_text(device.friendly_name),
        "size_bytes": device.size_bytes,
        "vendor": safe_text(next((one.vendor for one in known if one.vendor), "")),
        "model": safe_text(next((one.model for one in known if one.model), "")),
        "serial": safe_text(next((one.serial for one in known if one.serial), "")),
    }


def _plain(record: Record) -> dict[str, object]:
    return {name: _safe(value) for name, value in asdict(record).items()}


def _safe(value: object) -> object:
    if isinstance(value, tuple):
        return [_safe(one) for one in value]
    return safe_text(value) if isinstance(value, str) else value
