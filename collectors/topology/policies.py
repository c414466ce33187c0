"""Events for path policies that change while lunscope runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collectors.graph import Graph
from collectors.kernel.device_ids import label_of
from collectors.model import Device
from engine.text import safe_text

MOST_EVENTS = 16
"""More policy changes than this at once (of all LUNs of a subsystem) are reported in one event."""


def policy_changes(before: Graph, now: Graph, devices: Mapping[str, Device]) -> Iterator[EventText]:
    """Yield text and data of an event per LUN with a changed policy, or of one event for many."""
    known = {lun.key: lun.policy for lun in before.luns if lun.policy}
    changed = [(known[lun.key], lun) for lun in now.luns if lun.policy and known.get(lun.key, lun.policy) != lun.policy]
    if len(changed) > MOST_EVENTS:
        yield f"policy of {len(changed):,} LUNs changed", {"luns": len(changed)}
        return
    for policy, lun in changed:
        name = safe_text(label_of(devices.get(lun.key), lun.name))
        words = safe_text(f"{policy} -> {lun.policy}")
        yield f"policy of {name} changed: {words}", {"lun": name, "policy": safe_text(lun.policy)}
