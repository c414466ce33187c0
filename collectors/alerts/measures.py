"""What rules compare with their limit, as one value per object of a frame."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.alerts.rule import AlertRule, RuleKind
from collectors.hotness import latency_reason
from collectors.kernel.device_ids import label_of
from collectors.model import Frame, FrameTable, Rows, Topology
from collectors.registry import subject_of
from collectors.tables.block.path_verdict import LEAST_IOS, Peers, peers_of

Values = NDArray[np.float64]


class RuleValues(Struct, frozen=True, eq=False):
    """Values of the objects of a rule; `reason` explains that of a row, or is empty."""

    rows: Rows
    values: Values
    reason: Callable[[int], str]
    held: NDArray[np.bool_] | None = None
    """Objects whose missing values mean that all their I/Os are outstanding: what was raised stays so."""


class FieldMeasure:
    """One field of a frame table, or hotness with its reason."""

    def __init__(self, rule: AlertRule) -> None:
        self._rule = rule

    def of(self, frame: Frame) -> RuleValues | None:
        """Return the values of a frame; None if it has no such table."""
        table = frame.tables.get(self._rule.table)
        values = None if table is None else table.columns.get(self._rule.field_id)
        if table is None or values is None:
            return None
        stalled_ms = table.columns.get("stalled_ms")
        held = None if stalled_ms is None else np.isnan(values) & (stalled_ms > 0)
        return RuleValues(table.rows, values, lambda row: self._reason(frame, row), held)

    def reset(self) -> None:
        """Nothing is carried from frame to frame."""

    def _reason(self, frame: Frame, row: int) -> str:
        return latency_reason(frame, row) if self._rule.kind is RuleKind.HOT else ""


class ImbalanceMeasure:
    """Part of the busiest path of each group of paths of one LUN, access state and priority group.

    I/Os are added up with an exponential weight whose time constant is that of the rule: few I/Os in one interval say
    little. Values are multiples of an even part, NaN with too few I/Os.
    """

    def __init__(self, rule: AlertRule) -> None:
        self._time_s = max(rule.hold_s, 1.0)
        self._peers: Peers | None = None
        self._rows = Rows((), ())
        self._ios: dict[str, float] = {}
        self._sums = np.zeros(0)
        self._paths: Rows | None = None

    def of(self, frame: Frame) -> RuleValues | None:
        """Add an interval, and return the values; None without paths."""
        table = frame.tables.get("paths")
        if table is None:
            return None
        peers = peers_of(table.rows, frame.topology.graph)
        self._follow(table, peers, frame)
        if math.isfinite(frame.elapsed_s):
            ios = np.nan_to_num(table.columns["iops"] * frame.elapsed_s)
            self._sums = self._sums * math.exp(-frame.elapsed_s / self._time_s) + ios
        counted = self._sums[peers.at]
        total = peers.sums(counted)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.where(total >= LEAST_IOS, counted / total * peers.size[peers.group], np.nan)
        most = np.full(len(peers.size), np.nan)
        np.fmax.at(most, peers.group, part)
        return RuleValues(self._rows, most, lambda group: self._busiest(table, peers, part, group))

    def reset(self) -> None:
        """Forget what was added up."""
        self._paths, self._peers = None, None

    def _follow(self, table: FrameTable, peers: Peers, frame: Frame) -> None:
        if table.rows is not self._paths:
            before = {} if self._paths is None else dict(zip(self._paths.keys, self._sums.tolist(), strict=True))
            self._sums = np.array([before.get(key, 0.0) for key in table.rows.keys])
            self._paths = table.rows
        if peers is not self._peers:
            self._peers, self._rows = peers, _groups(table.rows, peers, frame.topology)

    def _busiest(self, table: FrameTable, peers: Peers, part: Values, group: int) -> str:
        members = np.flatnonzero(peers.group == group)
        worst = members[int(np.nanargmax(part[members]))] if np.isfinite(part[members]).any() else None
        if worst is None:
            return ""
        share_pct = 100.0 * part[worst] / peers.size[group]
        return f"path {table.rows.names[peers.at[worst]]} carries {share_pct:.0f} % of {len(members)} paths"


def _groups(rows: Rows, peers: Peers, topology: Topology) -> Rows:
    """Name each group by its LUN, and key it by its LUN, access state and group."""
    paths = {path.key: path for path in topology.graph.paths}
    first = {int(group): int(row) for row, group in zip(peers.at[::-1], peers.group[::-1], strict=True)}
    members = [paths[rows.keys[first[group]]] for group in range(len(peers.size))]
    keys = tuple(f"{path.lun} {path.access} {path.group}" for path in members)
    return Rows(keys, tuple(label_of(topology.devices.get(path.lun), path.lun) for path in members))


def measure_of(rule: AlertRule) -> FieldMeasure | ImbalanceMeasure:
    """Make what a rule compares."""
    match rule.kind:
        case RuleKind.IMBALANCE:
            return ImbalanceMeasure(rule)
        case RuleKind.FIELD | RuleKind.HOT:
            return FieldMeasure(rule)


def labels_of(rule: AlertRule, rows: Rows, topology: Topology) -> tuple[str, ...]:
    """Names of the objects of a rule."""
    return rows.names if rule.kind is RuleKind.IMBALANCE else subject_of(rule.table).labels(rows, topology)


def in_scope(rule: AlertRule, rows: Rows, topology: Topology) -> NDArray[np.bool_]:
    """Rows whose name, label, alias or persistent id matches the pattern of a rule, ignoring case."""
    if not rule.scope:
        return np.ones(len(rows), np.bool_)
    pattern = rule.scope.casefold()
    labels = labels_of(rule, rows, topology)
    found = np.zeros(len(rows), np.bool_)
    for row, key in enumerate(rows.keys):
        device = topology.devices.get(key)
        names = (rows.names[row], labels[row], *((device.friendly_name, device.persistent_id) if device else ()))
        found[row] = any(fnmatch.fnmatchcase(name.casefold(), pattern) for name in names)
    return found
