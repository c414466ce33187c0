"""Findings from the state of what is below the targets of a load: as sampled over a run, or over a point of a sweep."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from collectors.advice.figures import LoadFigures
from collectors.advice.finding import Finding
from collectors.advice.host_rules import host_findings
from collectors.advice.state_rules import DeviceStates, state_findings
from collectors.model import FrameTable
from collectors.reports.run_devices import RunDevices
from collectors.tables.cache.schema import DEVICE_KINDS, kind_of, subject_of_key


def findings_below(devices: RunDevices | None, load: LoadFigures | None, tops: Collection[str]) -> Iterator[Finding]:
    """Find what is set badly below the targets of a run, and in caches, and what held it up besides devices."""
    if devices is None:
        return
    yield from host_findings(devices)
    disks = devices.users.get("disks", {})
    below = frozenset(key for users in devices.users.values() for key in users)
    state = DeviceStates(
        devices.topology,
        devices.tables.get("disks"),
        devices.caches,
        devices.former_limits,
        {key: _depth_on(load, disks.get(key, ())) for key in tops} if load is not None and load.closed else {},
        tuple(tops) if load is not None else (),
    )
    yield from state_findings(state, below | _host_caches(devices.caches))


def _depth_on(load: LoadFigures, users: Collection[str]) -> float:
    """I/Os that the load keeps outstanding on a disk below these targets, if it is the only disk of each."""
    used = {target.name for target in load.targets}
    return load.queue_depth * len(used.intersection(users)) if not load.one_queue else math.nan


def _host_caches(caches: FrameTable | None) -> frozenset[str]:
    """Return what the keys of caches name that are no devices: the ARC, pools and files of the load."""
    return frozenset(() if caches is None else (subject_of_key(key) for key in caches.rows.keys if not _is_device(key)))


def _is_device(key: str) -> bool:
    return kind_of(key) in DEVICE_KINDS
