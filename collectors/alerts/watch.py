"""State of the rules over time: what is raised, since when, and the events of changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.alerts.measures import RuleValues, in_scope, labels_of, measure_of
from collectors.alerts.rule import AlertRule, AlertSign
from collectors.model import Frame, Rows, Topology
from engine.events import Event, EventKind
from engine.text import safe_text

MOST_EVENTS = 8
"""Alerts of one rule that are raised or cleared at once are events of their own up to this number."""
_JITTER_SHARE = 0.1
"""Share of an interval by which samples may be early."""
_GAP_SHARE = 0.5
"""Share of an interval by which one may begin after the last ended, before that is a gap."""

Mask = NDArray[np.bool_]
Times = NDArray[np.float64]

_COMPARE = {
    AlertSign.ABOVE: np.greater,
    AlertSign.AT_LEAST: np.greater_equal,
    AlertSign.BELOW: np.less,
    AlertSign.AT_MOST: np.less_equal,
}


class ActiveAlert(Struct, frozen=True):
    """An alert that is raised."""

    rule: AlertRule
    key: str
    name: str
    """Name of the object, safe to print."""
    value: float
    """The latest value, NaN if it is missing."""
    worst: float
    since_ns: int
    """Wall time at which it was raised."""
    reason: str = ""

    @property
    def excess(self) -> float:
        """How many times the limit the worst value is; for the order of alerts."""
        worst, limit = (self.worst, self.rule.limit) if self.rule.upward else (self.rule.limit, self.worst)
        return math.inf if limit <= 0 else worst / limit


class RuleState:
    """State of one rule for the rows of its table; follows rows as they are added and removed."""

    def __init__(self, rule: AlertRule) -> None:
        self.rule = rule
        self._measure = measure_of(rule)
        self._rows = Rows((), ())
        self._resize(0)
        self._scope: tuple[Rows, Topology, Mask] | None = None
        self.seen = False
        """Whether a frame had the objects of the rule."""

    def reset(self) -> None:
        """Forget everything, after a jump in time."""
        self._rows = Rows((), ())
        self._resize(0)
        self._measure.reset()

    def interrupt(self) -> None:
        """Begin the times of pending changes again, after a gap; what is raised stays so."""
        self._over_ns.fill(np.nan)
        self._under_ns.fill(np.nan)

    def observe(self, frame: Frame) -> Iterator[Event]:
        """Take the interval of a frame, and yield the events of what was raised and cleared."""
        measured = self._measure.of(frame)
        self.seen = measured is not None and len(measured.rows) > 0
        if measured is None:
            measured = RuleValues(Rows((), ()), np.zeros(0), lambda _row: "")
        yield from self._follow(measured.rows, frame)
        if math.isnan(frame.elapsed_s):
            self.interrupt()
            return
        values = np.where(self._in_scope(measured.rows, frame.topology), measured.values, np.nan)
        raised, cleared = self._changes(values, frame, measured.held)
        self._values = values
        self._note_worst(values, self._raised | cleared)
        yield from self._events(np.flatnonzero(raised), measured, frame, "raised")
        yield from self._events(np.flatnonzero(cleared), measured, frame, "cleared")
        for row in np.flatnonzero(raised).tolist():
            self._reasons[self._rows.keys[row]] = safe_text(measured.reason(row)) if len(self._reasons) < 1000 else ""

    def active(self, topology: Topology, most: int | None = None) -> list[ActiveAlert]:
        """Return what is raised, the worst first."""
        at = np.flatnonzero(self._raised)
        labels = labels_of(self.rule, self._rows, topology) if len(at) else ()
        worst = np.nan_to_num(self._worst[at])
        order = at[np.argsort(-worst if self.rule.upward else worst, kind="stable")][:most]
        return [self._alert(row, labels) for row in order.tolist()]

    def withdraw(self, frame: Frame) -> Iterator[Event]:
        """Yield the events that clear what is raised, as the rule is no longer in force."""
        yield from self._ended(np.flatnonzero(self._raised).tolist(), frame, "the rule is gone")

    @property
    def count(self) -> int:
        """Number of raised alerts."""
        return int(np.count_nonzero(self._raised))

    def _alert(self, row: int, labels: Sequence[str]) -> ActiveAlert:
        key = self._rows.keys[row]
        return ActiveAlert(
            self.rule,
            key,
            safe_text(labels[row]),
            float(self._values[row]),
            float(self._worst[row]),
            int(self._since_ns[row]),
            self._reasons.get(key, ""),
        )

    def _resize(self, count: int) -> None:
        self._raised = np.zeros(count, np.bool_)
        self._over_ns: Times = np.full(count, np.nan)
        """Monotonic time since when the limit is passed."""
        self._under_ns: Times = np.full(count, np.nan)
        self._worst = np.full(count, np.nan)
        self._values = np.full(count, np.nan)
        self._since_ns = np.zeros(count, np.int64)
        if not count:
            self._reasons: dict[str, str] = {}

    def _follow(self, rows: Rows, frame: Frame) -> Iterator[Event]:
        """Carry the state over to other rows; alerts of objects that are gone are cleared."""
        if rows is self._rows:
            return
        before = self._rows
        gone = [row for row in np.flatnonzero(self._raised).tolist() if before.keys[row] not in rows.positions]
        yield from self._ended(gone, frame, "it is gone")
        old = (self._raised, self._over_ns, self._under_ns, self._worst, self._values, self._since_ns)
        kept = [(before.positions[key], row) for row, key in enumerate(rows.keys) if key in before.positions]
        source, target = np.array(kept, np.intp).reshape(-1, 2).T
        reasons = {key: text for key, text in self._reasons.items() if key in rows.positions}
        self._resize(len(rows))
        self._rows, self._reasons = rows, reasons
        new = (self._raised, self._over_ns, self._under_ns, self._worst, self._values, self._since_ns)
        for into, values in zip(new, old, strict=True):
            into[target] = values[source]

    def _in_scope(self, rows: Rows, topology: Topology) -> Mask:
        if self._scope is None or self._scope[0] is not rows or self._scope[1] is not topology:
            self._scope = rows, topology, in_scope(self.rule, rows, topology)
        return self._scope[2]

    def _changes(self, values: NDArray[np.float64], frame: Frame, held: Mask | None) -> tuple[Mask, Mask]:
        """Update the times, and return which rows are raised and cleared.

        A missing value does not pass a limit, nor is it back where all I/Os are outstanding (`held`).
        """
        now_ns, elapsed_ns = float(frame.monotonic_ns), frame.elapsed_s * 1e9
        start_ns, slack_ns = now_ns - elapsed_ns, elapsed_ns * _JITTER_SHARE
        with np.errstate(invalid="ignore"):
            over = _COMPARE[self.rule.comparison](values, self.rule.limit)
            still = over | (values > self.rule.back if self.rule.upward else values < self.rule.back)
        if held is not None:
            over = over | (held & ~np.isnan(self._over_ns))
            still = still | held
        self._over_ns = np.where(over, np.where(np.isnan(self._over_ns), start_ns, self._over_ns), np.nan)
        self._under_ns = np.where(still, np.nan, np.where(np.isnan(self._under_ns), start_ns, self._under_ns))
        with np.errstate(invalid="ignore"):
            raised = ~self._raised & (now_ns - self._over_ns + slack_ns >= self.rule.hold_s * 1e9)
            cleared = self._raised & (now_ns - self._under_ns + slack_ns >= self.rule.clear_s * 1e9)
        self._raised = (self._raised | raised) & ~cleared
        self._since_ns[raised] = frame.time_ns
        return raised, cleared

    def _note_worst(self, values: NDArray[np.float64], reported: Mask) -> None:
        """Keep the worst value of what is reported, or may be soon."""
        worse = np.fmax if self.rule.upward else np.fmin
        self._worst = np.where(reported | ~np.isnan(self._over_ns), worse(self._worst, values), np.nan)

    def _events(self, at: NDArray[np.intp], measured: RuleValues, frame: Frame, change: str) -> Iterator[Event]:
        labels = labels_of(self.rule, self._rows, frame.topology) if len(at) else ()
        for row in at[:MOST_EVENTS].tolist():
            reason = safe_text(measured.reason(row)) if change == "raised" else ""
            yield self._event(row, labels[row], frame, change, reason)
        yield from self._summary(len(at) - MOST_EVENTS, frame, change)

    def _ended(self, rows: list[int], frame: Frame, reason: str) -> Iterator[Event]:
        for row in rows[:MOST_EVENTS]:
            yield self._event(row, self._rows.names[row], frame, "cleared", reason)
        yield from self._summary(len(rows) - MOST_EVENTS, frame, "cleared")

    def _summary(self, more: int, frame: Frame, change: str) -> Iterator[Event]:
        if more > 0:
            text = f"alert {self.rule.name} {change}: {more:,} more {self.rule.table}"
            data: dict[str, str | int] = {
                "rule": self.rule.name,
                "change": change,
                "table": self.rule.table,
                "more": more,
            }
            yield Event(EventKind.ALERT, text, frame.time_ns, frame.monotonic_ns, data)

    def _event(self, row: int, label: str, frame: Frame, change: str, reason: str) -> Event:
        rule, name = self.rule, safe_text(label)
        value, worst = float(self._values[row]), float(self._worst[row])
        if change == "raised":
            words = f"{_what(rule)} {rule.amount(value)}, limit {rule.comparison}{rule.amount(rule.limit)}"
            words += f" for {rule.hold_s:g} s" if rule.hold_s else ""
            held_s = rule.hold_s
        else:
            held_s = (frame.time_ns - int(self._since_ns[row])) / 1e9
            words = f"after {held_s:.0f} s, worst {rule.amount(worst)}"
        text = f"alert {rule.name} {change}: {name} {words}" + (f"; {reason}" if reason else "")
        data: dict[str, str | int | float | None] = {
            "rule": rule.name, "change": change, "table": rule.table, "object": name,
            "key": safe_text(self._rows.keys[row]), "field": rule.field_id,
            "value": value if math.isfinite(value) else None, "limit": rule.limit,
            "comparison": str(rule.comparison), "unit": "x" if rule.unit is None else str(rule.unit),
            "held_s": held_s, "worst": worst if math.isfinite(worst) else None,
        }  # fmt: skip
        return Event(EventKind.ALERT, text, frame.time_ns, frame.monotonic_ns, data)


def _what(rule: AlertRule) -> str:
    return rule.field_id if rule.kind.value == "field" else rule.kind.value


class RuleStatus(Struct, frozen=True):
    """One rule with its state, for screens."""

    rule: AlertRule
    count: int
    worst: tuple[ActiveAlert, ...]
    """The worst of its alerts, at most MOST_EVENTS."""
    seen: bool
    """Whether the last frame had objects for it."""


class AlertWatch:
    """All rules over the frames of a source; times are those of the samples."""

    def __init__(self, rules: Sequence[AlertRule]) -> None:
        self.rules = tuple(rules)
        self._states = [RuleState(rule) for rule in self.rules]
        self._dropped: list[RuleState] = []
        self._last_ns: int | None = None
        self.status: tuple[RuleStatus, ...] = tuple(RuleStatus(rule, 0, (), False) for rule in self.rules)
        """State after the last frame; replaced as a whole, so any thread may read it."""

    def take(self, rules: Sequence[AlertRule]) -> None:
        """Replace the rules, in the thread that observes.

        Rules that are unchanged keep their state; alerts of the others are cleared with the next frame, as a recording
        would show them as raised until its end.
        """
        kept = {state.rule: state for state in self._states}
        self.rules = tuple(rules)
        self._states = [kept.pop(rule) if rule in kept else RuleState(rule) for rule in self.rules]
        self._dropped += kept.values()

    def observe(self, frame: Frame) -> tuple[Event, ...]:
        """Take a frame and return the events of alerts that were raised or cleared by it.

        A frame that does not continue the last one interrupts the pending ones; an earlier one, after a seek, begins
        anew without events.
        """
        if self._last_ns is not None and frame.monotonic_ns <= self._last_ns:
            for state in self._states:
                state.reset()
        elif self._is_gap(frame):
            for state in self._states:
                state.interrupt()
        self._last_ns = frame.monotonic_ns
        cleared = [event for state in self._dropped for event in state.withdraw(frame)]
        self._dropped.clear()
        events = (*cleared, *(event for state in self._states for event in state.observe(frame)))
        self.status = tuple(
            RuleStatus(state.rule, state.count, tuple(state.active(frame.topology, MOST_EVENTS)), state.seen)
            for state in self._states
        )
        return events

    def _is_gap(self, frame: Frame) -> bool:
        if self._last_ns is None or math.isnan(frame.elapsed_s):
            return False
        elapsed_ns = frame.elapsed_s * 1e9
        return frame.monotonic_ns - elapsed_ns - self._last_ns > elapsed_ns * _GAP_SHARE
