"""From other screens to the latency screen: whose latencies, and which moment."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.derive.disk_totals import is_base
from collectors.latency.subject import LatencySubject
from collectors.latency.subjects import TRACE, WHOLE_LOAD, disk_subject, present_keys
from collectors.model import Frame
from tui.history.subjects import Trace


@dataclass(frozen=True, slots=True)
class LatencyJump:
    """Where the latency screen is to go: whose latencies, and which moment; None leaves each as it is."""

    subject: LatencySubject | None
    moment_ns: int | None


def traced_subject(trace: Trace, frame: Frame) -> LatencySubject | None:
    """Follow what a chart shows the past of."""
    if trace.table == "load_total":
        return WHOLE_LOAD
    if trace.table == "disks":
        return disk_subject(trace.key, frame)
    base = (key for key in present_keys(frame) if is_base(key, frame.topology))
    return LatencySubject("all disks", TRACE, frozenset(base))
