"""Policies that change while lunscope runs: from then on I/Os are spread over the paths in another way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collectors.graph import Graph
from collectors.kernel.device_names import label_of
from collectors.model import Device
from engine.text import safe_text

MOST_EVENTS = 16
"""More LUNs than this whose policy changes at once (it is that of a subsystem) are told in one event."""

EventText = tuple[str, dict[str, str | int]]


def policy_changes(before: Graph, now: Graph, devices: Mapping[str, Device]) -> Iterator[EventText]:
    """Yield text and data of an event per LUN whose policy is known to be another, or of one event for many."""
    known = {lun.key: lun.policy for lun in before.luns if lun.policy}
    changed = [(known[lun.key], lun) for lun in now.luns if lun.policy and known.get(lun.key, lun.policy) != lun.policy]
    if len(changed) > MOST_EVENTS:
        yield f"policy of {len(changed):,} LUNs changed", {"luns": len(changed)}
        return
    for policy, lun in changed:
        name = safe_text(label_of(devices.get(lun.key), lun.name))
        words = safe_text(f"{policy} -> {lun.policy}")
        yield f"policy of {name} changed: {words}", {"lun": name, "policy": safe_text(lun.policy)}
