"""Alerts of a live source: state of the rules, events in the samples, and the command."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from collectors.alerts.alert_settings import AlertSettings
from collectors.alerts.rule import AlertRule
from collectors.baseline import LatencyBaseline
from collectors.model import Step
from engine.replacing import replace

if TYPE_CHECKING:
    from collectors.alerts.command import CommandRunner
    from collectors.alerts.watch import AlertWatch, RuleStatus


class AlertService:
    """Evaluates rules on every step of a live source before it is recorded."""

    def __init__(self, settings: AlertSettings, rules: Iterable[AlertRule] = (), command: tuple[str, ...] = ()) -> None:
        """Take the settings, and the rules and the command of options, which also hold after a reload of settings."""
        self.given_rules = tuple(rules)
        """Rules of options."""
        self.given_command = command
        """The command of an option; empty if there is none."""
        self.settings = settings.with_options(self.given_rules, command)
        self._rules = self.settings.rules
        self._baseline = LatencyBaseline()
        self.raised = 0
        """Alerts raised since the start, for the bell."""
        self.time_ns = 0
        """Wall time of the last frame."""
        self._command = _runner(self.settings.command) if self.settings.command else None

    def reload(self, settings: AlertSettings) -> None:
        """Replace the settings from the next sample on, in any thread; the command stays the one of the start."""
        self.settings = settings.with_options(self.given_rules, self.given_command)

    @cached_property
    def _watch(self) -> AlertWatch:
        from collectors.alerts.watch import AlertWatch  # noqa: PLC0415 (it can wait until the first sample)

        return AlertWatch(self._rules)

    @property
    def status(self) -> tuple[RuleStatus, ...]:
        """State of the rules; may be read in any thread."""
        return self._watch.status

    def step(self, step: Step) -> Step:
        """Return the step with its frame, and with the events of alerts in its sample."""
        from collectors.rates import derive  # noqa: PLC0415 (as above)

        wanted = self.settings.rules
        if wanted is not self._rules:
            self._watch.take(wanted)
            self._rules = wanted
        frame = self._baseline.add(derive(step.previous, step.current))
        alerts = self._watch.observe(frame)
        self.time_ns = frame.time_ns
        self.raised += sum(event.data.get("change") == "raised" for event in alerts)
        problems = () if self._command is None else self._command.take_events()
        if self._command is not None:
            for event in alerts:
                self._command.offer(event)
        events = (*step.current.events, *alerts, *problems)
        current = replace(step.current, events=events) if alerts or problems else step.current
        return Step(step.previous, current, replace(frame, events=current.events))

    def close(self) -> None:
        """Let the last commands run."""
        if self._command is not None:
            self._command.close()


def _runner(command: tuple[str, ...]) -> CommandRunner:
    from collectors.alerts.command import CommandRunner  # noqa: PLC0415 (few have a command)

    return CommandRunner(command)
