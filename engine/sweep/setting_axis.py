"""Fixed settings of a job as axes of a sweep: paths, HBA ports, controllers, stripe unit, copies of a mirror."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from engine.errors import UsageError
from engine.hostfs.hba_ports import port_of
from engine.job.knobs.kinds import ByteSize, KnobKind, WholeNumber
from engine.job.limits import MAX_PATHS, MAX_TARGETS
from engine.job.spec import JobSpec, TargetSpec
from engine.job.target_text import format_target
from engine.replacing import replace
from engine.sweep.outer_knob import OuterKnob
from engine.text import safe_text

_POSITION = 900
"""Position in lists: after all knobs of the load."""


@dataclass(frozen=True, slots=True)
class SettingKnob(OuterKnob):
    """A setting of the job as a knob; the load begins anew with each value."""

    applied: Callable[[JobSpec, Any], JobSpec] = field(kw_only=True)
    """Makes the job with a value; raises UsageError, with the reason, where it does not apply to the targets."""


def _with_paths(job: JobSpec, count: int) -> JobSpec:
    """Keep the first paths of each target that has several."""
    luns = [target for target in job.targets if len(target.paths) > 1]
    if not luns:
        raise UsageError("the targets have one path each: name the paths of a LUN, such as --lun sda,sdb")
    fewest = min(luns, key=lambda target: len(target.paths))
    if count > len(fewest.paths):
        raise UsageError(f"{safe_text(format_target(fewest))} has {len(fewest.paths)} paths")
    return replace(job, targets=tuple(_first_paths(target, count) for target in job.targets))


def _first_paths(target: TargetSpec, count: int) -> TargetSpec:
    return TargetSpec.lun(target.paths[:count]) if target.paths else target


def ports_of(job: JobSpec) -> dict[str, str]:
    """Name the HBA port of each device node of the targets, in their order.

    Raises:
        UsageError: that of one is not known.
    """
    nodes = [node for target in job.targets for node in target.nodes]
    found = {node: port_of(node) for node in nodes}
    unknown = next((node for node, port in found.items() if not port), None)
    if unknown is not None:
        raise UsageError(f"no HBA port is known of {safe_text(unknown)}")
    return found


def several_ports(job: JobSpec) -> tuple[str, ...]:
    """Name the HBA ports of the targets if there are several and all are known; none otherwise."""
    try:
        used = tuple(dict.fromkeys(ports_of(job).values()))
    except UsageError:
        return ()
    return used if len(used) > 1 else ()


def targets_by_port(job: JobSpec) -> dict[str, list[TargetSpec]]:
    """Group targets of one path by their HBA port; empty where one has several, or its port is not known."""
    if any(len(target.nodes) != 1 for target in job.targets):
        return {}
    found: dict[str, list[TargetSpec]] = {}
    try:
        ports = ports_of(job)
    except UsageError:
        return {}
    for target in job.targets:
        found.setdefault(ports[target.nodes[0]], []).append(target)
    return found


def _first_ports(ports: Iterable[str], count: int, what: str) -> tuple[str, ...]:
    used = tuple(dict.fromkeys(ports))
    if count > len(used):
        raise UsageError(f"{what} {len(used)}: {safe_text(', '.join(used[:8]))}")
    return used[:count]


def _through_ports(job: JobSpec, count: int) -> JobSpec:
    """Keep the paths through the first HBA ports; each target must have one."""
    port_of_node = ports_of(job)
    kept = _first_ports(port_of_node.values(), count, "the HBA ports of the targets are")
    targets = []
    for target in job.targets:
        if not any(port_of_node[node] in kept for node in target.nodes):
            ways = safe_text(", ".join(kept))
            raise UsageError(f"{safe_text(format_target(target))} has no path through {ways}: vary controllers instead")
        paths = tuple(path for path in target.paths if port_of_node[path.path] in kept)
        targets.append(TargetSpec.lun(paths) if paths else target)
    return replace(job, targets=tuple(targets))


def _on_controllers(job: JobSpec, count: int) -> JobSpec:
    """Keep the targets on the first controllers, one of each in turn, so that any width is spread over all of them."""
    if any(len(target.paths) > 1 for target in job.targets):
        raise UsageError("the targets have several paths: vary ports instead")
    port_of_node = ports_of(job)
    kept = _first_ports(port_of_node.values(), count, "the controllers of the targets are")
    groups = [[target for target in job.targets if port_of_node[target.nodes[0]] == port] for port in kept]
    turns = itertools.zip_longest(*groups)
    return replace(job, targets=tuple(target for turn in turns for target in turn if target is not None))


def _with_unit(job: JobSpec, unit_bytes: int) -> JobSpec:
    if len(job.targets) < 2:
        raise UsageError("one target: nothing is striped; give more with --target")
    return replace(job, stripe_unit_bytes=unit_bytes)


def _with_copies(job: JobSpec, copies: int) -> JobSpec:
    return replace(job, copies=copies)


def _setting(key: str, kind: KnobKind, help_: str, applied: Callable[[JobSpec, Any], JobSpec]) -> SettingKnob:
    return SettingKnob(key, _POSITION, key.replace("_", " "), kind, help_, id=key, applied=applied)


_ALL = (
    _setting("paths", WholeNumber(1, MAX_PATHS), "Paths of each LUN, the first ones.", _with_paths),
    _setting("ports", WholeNumber(1, MAX_PATHS), "HBA ports whose paths are used, the first ones.", _through_ports),
    _setting("controllers", WholeNumber(1, MAX_TARGETS), "Controllers whose targets are used.", _on_controllers),
    _setting("stripe_unit", ByteSize(), "Bytes on one target before the next.", _with_unit),
    _setting("mirror", WholeNumber(1, MAX_TARGETS), "Targets that hold the same data.", _with_copies),
)
SETTINGS: Mapping[str, SettingKnob] = MappingProxyType({each.key: each for each in _ALL})
"""Settings that may vary, by key."""
