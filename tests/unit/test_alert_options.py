"""Which verbs have alerts: those with a screen or a recording, and those that are given a rule."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from collectors.alerts.alert_settings import AlertSettings
from collectors.alerts.parse import parse_rule
from collectors.alerts.service import AlertService
from tui.commands import record, run, sweep, watch
from tui.options.alerts import alert_service, alerts_of_load

RULE = "disks await_ms>20ms for 10s"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "lunscope" / "config.toml"
    file.parent.mkdir()
    file.write_text(f'[alerts.rules]\nslow = "{RULE}"\n')
    return file


def names(service: AlertService | None) -> list[str]:
    return [] if service is None else [rule.name for rule in service.settings.rules]


def test_rules_of_the_settings_need_a_screen_or_a_recording() -> None:
    assert names(alerts_of_load((), None, on_screen=True, is_recorded=False)) == ["stall", "slow"]
    assert names(alerts_of_load((), None, on_screen=False, is_recorded=True)) == ["stall", "slow"]
    assert alerts_of_load((), None, on_screen=False, is_recorded=False) is None
    given = alerts_of_load((f"mine: {RULE}",), None, on_screen=False, is_recorded=False)
    assert names(given) == ["stall", "slow", "mine"]


def test_a_screen_has_alerts_before_there_is_a_rule(settings: Path) -> None:
    settings.unlink()
    assert names(alert_service(on_screen=True)) == names(alert_service()) == ["stall"]


def test_the_default_rule_can_be_left_out_or_replaced(settings: Path) -> None:
    settings.write_text("[alerts]\ndefaults = false\n")
    assert alert_service() is None
    assert alert_service(on_screen=True) is not None
    settings.write_text('[alerts.rules]\nstall = "disks stalled_ms>=9s for 0s"\n')
    service = alert_service()
    assert service is not None
    assert [rule.limit for rule in service.settings.rules] == [9_000.0]


def test_options_hold_after_a_reload_of_the_settings() -> None:
    service = AlertService(AlertSettings((parse_rule(f"a: {RULE}"),)), (parse_rule(f"b: {RULE}"),), ("true",))
    service.reload(AlertSettings((parse_rule(f"b: {RULE}"), parse_rule("c: imbalance")), bell=True))
    assert names(service) == ["stall", "c", "b"]
    assert (service.settings.bell, service.settings.command) == (True, ("true",))


def test_wrong_options_are_named() -> None:
    with pytest.raises(click.BadParameter, match="no field 'x'"):
        alerts_of_load(("disks x>1",), None, on_screen=False, is_recorded=False)
    with pytest.raises(click.BadParameter, match="two rules are named 'hot'"):
        alert_service(("hot", "hot"))


def test_bad_settings_are_reported_where_no_screen_does(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.write_text('[alerts.rules]\nslow = "disks x>1"\n')
    alert_service(on_screen=True)
    assert capsys.readouterr().err == ""
    alert_service()
    assert f"{settings}: [alerts.rules] slow: " in capsys.readouterr().err


@pytest.mark.parametrize("verb", [watch, record, run, sweep], ids=lambda verb: verb.__name__)
def test_every_verb_with_a_screen_or_a_recording_takes_rules(verb: object) -> None:
    command = verb.command  # type: ignore[attr-defined]
    assert {"alert", "alert_command"} <= {option.name for option in command.params}
