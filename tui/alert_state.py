"""What is raised now, for header and dialog, by the rules of a live host or the events of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from collectors.model import Frame
from engine.events import Event, EventKind
from engine.text import safe_text
from tui.history.charts import EventHistory

if TYPE_CHECKING:
    from collectors.alerts.service import AlertService
    from collectors.alerts.watch import ActiveAlert, RuleStatus


class RaisedAlert(Struct, frozen=True):
    """One alert; texts are safe to print."""

    rule: str
    name: str
    words: str
    since_ns: int


class RaisedAlerts(Struct, frozen=True):
    """Everything that is raised, the worst first; `count` includes those not listed."""

    count: int = 0
    alerts: tuple[RaisedAlert, ...] = ()


class AlertState:
    """Alerts of the source on the screen; for an earlier moment, and in a recording, those of its events."""

    def __init__(self, service: AlertService | None, events: EventHistory, *, seekable: bool) -> None:
        self._service = service
        self._events = events
        self._recorded = seekable
        self._cached: tuple[tuple[int, int], RaisedAlerts] = (-1, -1), RaisedAlerts()

    @property
    def is_recorded(self) -> bool:
        """Whether alerts come from a recording."""
        return self._recorded

    @property
    def rules(self) -> tuple[RuleStatus, ...]:
        """State of the rules; none in a replay."""
        return () if self._service is None else self._service.status

    def raised(self, frame: Frame | None) -> RaisedAlerts:
        """Return what is raised at the time of a frame."""
        if frame is None or not (self._recorded or self._service):
            return RaisedAlerts()
        if self._service is not None and frame.time_ns >= self._service.time_ns:
            return _of_rules(self.rules)
        wanted = self._events.version, frame.time_ns
        if self._cached[0] != wanted:
            self._cached = wanted, recorded_alerts(self._events.all(), frame.time_ns)
        return self._cached[1]


def alert_words(alert: ActiveAlert) -> str:
    """Describe the value of a raised alert and its reason."""
    rule = alert.rule
    now = rule.amount(alert.value) if alert.value == alert.value else "-"
    return f"{now}, worst {rule.amount(alert.worst)}" + (f"; {alert.reason}" if alert.reason else "")


def _of_rules(rules: Iterable[RuleStatus]) -> RaisedAlerts:
    rules = tuple(rules)
    active = sorted((alert for status in rules for alert in status.worst), key=lambda alert: -alert.excess)
    lines = (RaisedAlert(alert.rule.name, alert.name, alert_words(alert), alert.since_ns) for alert in active)
    return RaisedAlerts(sum(status.count for status in rules), tuple(lines))


def recorded_alerts(events: Iterable[Event], time_ns: int) -> RaisedAlerts:
    """Find the alerts that were raised and not yet cleared at a time; the newest first."""
    raised: dict[tuple[str, str], RaisedAlert] = {}
    more: dict[str, int] = {}
    for event in events:
        if event.time_ns > time_ns:
            break
        if event.kind is EventKind.ALERT:
            _apply(event, raised, more)
    newest = sorted(raised.values(), key=lambda alert: -alert.since_ns)
    return RaisedAlerts(len(raised) + sum(max(0, count) for count in more.values()), tuple(newest))


def _apply(event: Event, raised: dict[tuple[str, str], RaisedAlert], more: dict[str, int]) -> None:
    rule, change, count = _text(event.data, "rule"), event.data.get("change"), event.data.get("more")
    key = rule, _text(event.data, "key")
    if isinstance(count, int):
        more[rule] = more.get(rule, 0) + (count if change == "raised" else -count)
    elif change == "raised":
        words = safe_text(event.text).partition(": ")[2].removeprefix(_text(event.data, "object")).strip()
        raised[key] = RaisedAlert(rule, _text(event.data, "object"), words, event.time_ns)
    elif raised.pop(key, None) is None:
        more[rule] = more.get(rule, 0) - 1


def _text(data: Mapping[str, str | int | float | None], name: str) -> str:
    return safe_text(str(data.get(name, "")))
