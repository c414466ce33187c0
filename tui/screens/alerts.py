"""The rules of alerts with their state, and what is raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from collectors.alerts.watch import RuleStatus
from collectors.session.time_format import clock_text
from tui.alert_state import RaisedAlert
from tui.app_state import AppState
from tui.text.glyphs import Glyphs, glyphs_of
from tui.textual_internals.laid_out import Modal

REFRESH_S = 1.0
MOST_LISTED = 100


class AlertsDialog(Modal[None]):
    """All rules, each with its state, then what is raised; Esc closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,exclamation_mark", "dismiss(None)", "Close", show=False)]
    DEFAULT_CSS = """
    AlertsDialog { align: center middle; }
    AlertsDialog VerticalScroll {
        width: 100%; max-width: 110; height: auto; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    AlertsDialog Static { height: auto; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__()
        self._app_state = app_state

    def compose(self) -> ComposeResult:
        """One page."""
        with VerticalScroll() as box:
            box.border_title = "Alerts"
            box.border_subtitle = "Esc: close"
            yield Static(self._page(), markup=False)

    def on_mount(self) -> None:
        """Follow the state while it is shown."""
        self.set_interval(REFRESH_S, self._refresh)

    def _refresh(self) -> None:
        for static in self.query(Static):
            static.update(self._page())

    def _page(self) -> Content:
        state, glyphs = self._app_state.alerts, glyphs_of(self)
        if state is None:
            return Content("no alerts here")
        lines: list[Content] = []
        if state.is_recorded:
            lines.append(Content.styled("Rules apply when a host is sampled; these alerts were recorded.", "dim"))
        elif not state.rules:
            lines += map(Content, NO_RULES)
        else:
            lines.append(Content.styled("Rules", "bold"))
            lines += (line for status in state.rules for line in rule_lines(status, glyphs))
        raised = state.raised(self._app_state.frame)
        lines += [Content(""), Content.styled(f"Raised: {raised.count}", "bold")]
        lines += (raised_line(alert, glyphs) for alert in raised.alerts[:MOST_LISTED])
        listed = min(len(raised.alerts), MOST_LISTED)
        if raised.count > listed:
            lines.append(Content.styled(f"  and {raised.count - listed:,} more", "dim"))
        return Content("\n").join(lines)


NO_RULES = (
    "No rules. Give them on the command line:",
    "  lunscope watch --alert 'disks await_ms>20ms for 10s'",
    "or in config.toml:",
    "  [alerts.rules]",
    '  slow = "disks await_ms>20ms for 10s"',
    '  uneven = "imbalance>1.5x for 30s"',
    '  hot = "hot>90 for 30s"',
)


def rule_lines(status: RuleStatus, glyphs: Glyphs) -> Iterator[Content]:
    """Name and state, then the condition."""
    if status.count:
        state = (f"raised: {status.count:,}", "bold $error")
    else:
        state = ("quiet", "") if status.seen else ("nothing to evaluate now", "dim")
    mark = (f"{glyphs.hot if status.count else ' '} ", "bold $error")
    yield Content.assemble(mark, (f"{status.rule.name}  ", "bold"), state)
    yield Content.styled(f"    {status.rule.condition}", "dim")


def raised_line(alert: RaisedAlert, glyphs: Glyphs) -> Content:
    """Time, rule, object and value."""
    when = (f" {clock_text(alert.since_ns)}  ", "dim")
    return Content.assemble(
        (glyphs.hot, "bold $error"), when, (f"{alert.rule} ", ""), (alert.name, "bold"), f" {alert.words}"
    )
