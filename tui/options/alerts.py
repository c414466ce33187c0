"""Options of alerts, and the settings they add to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from engine.errors import LunscopeError
from tui.process.standard_streams import say

if TYPE_CHECKING:
    from collectors.alerts.rule import AlertRule
    from collectors.alerts.service import AlertService

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--alert",
        "alert",
        multiple=True,
        metavar="RULE",
        help="Alert on a rule such as 'disks await_ms>20ms for 10s'; repeat for more. See docs/alerts.md.",
    ),
    click.option("--alert-command", metavar="CMD", help="Run for each alert, which it gets in LUNSCOPE_ALERT_TEXT ..."),
)


def alert_options(command: _Command) -> _Command:
    """Add them to a command, which gets `alert` and `alert_command` as keyword arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def alert_service(
    rules: tuple[str, ...] = (), command: str | None = None, *, on_screen: bool = False
) -> AlertService | None:
    """Make the alerts of the settings and options.

    Without a screen invalid settings are reported on stderr, and None is returned if there is no rule; a screen
    reports them itself, and takes up rules that the settings get later.

    Raises:
        UsageError: an option is no rule or no command.
    """
    from collectors.alerts.alert_settings import load_alert_settings  # noqa: PLC0415 (verbs without alerts need none of it)

    settings = load_alert_settings()
    if not on_screen:
        for problem in settings.problems:
            say(problem)
    given = _given_rules(rules) if rules else ()
    program = () if command is None else _program(command)
    if not (settings.with_options(given).rules or on_screen):
        return None
    from collectors.alerts.service import AlertService  # noqa: PLC0415

    return AlertService(settings, given, program)


def _given_rules(texts: tuple[str, ...]) -> tuple[AlertRule, ...]:
    from collectors.alerts.parse import parse_rule, with_names  # noqa: PLC0415 (few give a rule)

    try:
        return with_names(parse_rule(text) for text in texts)
    except LunscopeError as error:
        raise click.BadParameter(str(error), param_hint="'--alert'") from None


def _program(command: str) -> tuple[str, ...]:
    from collectors.alerts.command import parse_command  # noqa: PLC0415 (as above)

    try:
        return parse_command(command)
    except LunscopeError as error:
        raise click.BadParameter(str(error), param_hint="'--alert-command'") from None


def alerts_of_load(
    rules: tuple[str, ...], command: str | None, *, on_screen: bool, is_recorded: bool
) -> AlertService | None:
    """Make the alerts of a verb that drives a load; without a screen, a recording or a rule of its own it has none.

    Raises:
        UsageError: an option is no rule or no command.
    """
    if not (on_screen or is_recorded or rules):
        return None
    return alert_service(rules, command, on_screen=on_screen)
