"""Section `[alerts]` of the settings, and the options of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from collectors.alerts.rule import AlertRule, AlertSign, RuleKind
from collectors.field import Unit
from collectors.hotness import STALLED_MS
from engine.config import config_file
from engine.errors import UsageError
from engine.replacing import replace
from engine.text import safe_text, short_text
from engine.toml_text import read_toml

SECTION = "alerts"
_KEYS = ("rules", "defaults", "bell", "command")
MOST_RULES = 100
_EXAMPLE = '[alerts.rules] and then lines such as slow = "disks await_ms>20ms for 10s"'


DEFAULT_RULES = (
    AlertRule(
        "stall", RuleKind.FIELD, "disks", "stalled_ms", Unit.MILLISECONDS, AlertSign.AT_LEAST, STALLED_MS, 0.0, 0.0
    ),
)
"""Rules in force unless the settings say `defaults = false`, or have a rule of the same name."""


class AlertSettings(Struct, frozen=True):
    """Rules in force; invalid ones are left out and listed in `problems`."""

    rules: tuple[AlertRule, ...] = ()
    defaults: bool = True
    """Whether `with_options` adds the DEFAULT_RULES."""
    bell: bool = False
    """Whether the terminal's bell rings when an alert is raised."""
    command: tuple[str, ...] = ()
    """Program and arguments to run for each alert; none if empty."""
    problems: tuple[str, ...] = ()

    def with_options(self, rules: Iterable[AlertRule], command: tuple[str, ...] = ()) -> AlertSettings:
        """Add the default rules and those of the command line, each of which replaces those of the same name before.

        Raises:
            UsageError: two of the given rules have one name.
        """
        given = _named(tuple(rules))
        named, mine = {rule.name for rule in given}, {rule.name for rule in (*self.rules, *given)}
        defaults = (rule for rule in DEFAULT_RULES if self.defaults and rule.name not in mine)
        kept = (rule for rule in self.rules if rule.name not in named)
        return replace(self, rules=(*defaults, *kept, *given), command=command or self.command)


def _named(rules: tuple[AlertRule, ...]) -> tuple[AlertRule, ...]:
    if not rules:
        return ()
    from collectors.alerts.parse import with_names  # noqa: PLC0415 (the first screen comes sooner where there is no rule)

    return with_names(rules)


def load_alert_settings(path: Path | None = None) -> AlertSettings:
    """Read the section; errors are listed in `problems` and never prevent the start.

    An unreadable file is reported by the readers of the other settings.
    """
    file = path or config_file()
    try:
        document = read_toml(file)
    except (OSError, ValueError):
        return AlertSettings()
    section = document.get(SECTION, {})
    if not isinstance(section, dict):
        return AlertSettings(problems=(f"{file}: alerts must be a table: {_EXAMPLE}",))
    problems = [
        f"{file}: [alerts] unknown setting {safe_text(key)!r}{_close(key)}; known: {', '.join(_KEYS)}"
        for key in section
        if key not in _KEYS
    ]
    rules = _rules(section.get("rules", {}), file, problems)
    defaults = _switch(section, "defaults", file, problems, otherwise=True)
    bell = _switch(section, "bell", file, problems, otherwise=False)
    command = _command(section.get("command", ""), file, problems)
    return AlertSettings(rules, defaults, bell, command, tuple(problems))


def _switch(section: Mapping[str, object], key: str, file: Path, problems: list[str], *, otherwise: bool) -> bool:
    value = section.get(key, otherwise)
    if isinstance(value, bool):
        return value
    problems.append(f"{file}: [alerts] {key} must be true or false")
    return otherwise


def _rules(section: object, file: Path, problems: list[str]) -> tuple[AlertRule, ...]:
    if not isinstance(section, dict):
        problems.append(f"{file}: [alerts] rules must be a table: {_EXAMPLE}")
        return ()
    if not section:
        return ()
    from collectors.alerts.parse import parse_rule  # noqa: PLC0415 (as above)

    rules = []
    for name, text in list(section.items())[:MOST_RULES]:
        where = f"{file}: [alerts.rules] {safe_text(short_text(name, 40))}"
        try:
            if not isinstance(text, str):
                raise UsageError('a rule is text in quotes, such as "disks await_ms>20ms for 10s"')
            rules.append(parse_rule(text, name))
        except UsageError as error:
            problems.append(f"{where}: {error}; the rule is left out")
    if len(section) > MOST_RULES:
        problems.append(f"{file}: [alerts.rules] has {len(section)} rules: only the first {MOST_RULES} are used")
    return tuple(rules)


def _command(value: object, file: Path, problems: list[str]) -> tuple[str, ...]:
    if value == "":
        return ()
    from collectors.alerts.command import parse_command  # noqa: PLC0415 (as above)

    try:
        if not isinstance(value, str):
            raise UsageError("command must be text in quotes")
        return parse_command(value)
    except UsageError as error:
        problems.append(f"{file}: [alerts] {error}")
        return ()


def _close(key: str) -> str:
    close = difflib.get_close_matches(key, _KEYS, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
