"""The grammar of alert rules, the settings, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.alerts.alert_settings import load_alert_settings
from collectors.alerts.command import parse_command
from collectors.alerts.parse import parse_rule
from collectors.alerts.rule import value_text
from collectors.field import Unit
from engine.errors import UsageError


def test_figures_have_no_exponent() -> None:
    assert value_text(998.9, Unit.PER_SECOND) == "999 /s"
    assert value_text(999.7, Unit.PER_SECOND) == "1 k/s"
    assert value_text(1023.7, Unit.BYTES) == "1 kB"
    assert value_text(1001.0, Unit.BYTES_PER_SECOND) == "1001 B/s"
    assert value_text(12_345.6, Unit.MILLISECONDS) == "12346 ms"


WORDS = ("disks", "imbalance", "hot", "await_ms", ">", "<=", "20ms", "for", "on", "clear", ":", "5s", "*")


@pytest.mark.slow
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS)).map(" ".join)))
def test_any_text_is_a_rule_or_a_usage_error(text: str) -> None:
    try:
        rule = parse_rule(text)
    except UsageError:
        return
    assert parse_rule(rule.condition, rule.name) == rule


def settings_of(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text)
    return file


def test_settings_name_the_file_and_the_rule_that_is_wrong_and_keep_the_others(tmp_path: Path) -> None:
    text = """
        [alerts]
        bell = true
        command = "logger -t 'lun scope'"
        [alerts.rules]
        slow = "disks await_ms>20ms"
        wrong = "disks awiat_ms>20ms"
        number = 3
        """
    file = settings_of(tmp_path, text)
    settings = load_alert_settings(file)
    assert [rule.name for rule in settings.rules] == ["slow"]
    assert (settings.bell, settings.command) == (True, ("logger", "-t", "lun scope"))
    wrong, number = settings.problems
    assert wrong.startswith(f"{file}: [alerts.rules] wrong: disks: no field 'awiat_ms'")
    assert "known: heat" in wrong
    assert wrong.endswith("the rule is left out")
    assert number.startswith(f"{file}: [alerts.rules] number: a rule is text in quotes")


def test_very_many_rules_are_refused(tmp_path: Path) -> None:
    text = "[alerts.rules]\n" + "\n".join(f"r{number} = 'hot'" for number in range(101))
    (problem,) = load_alert_settings(settings_of(tmp_path, text)).problems
    assert "has 101 rules" in problem


def test_without_a_file_or_with_a_broken_one_there_are_no_rules(tmp_path: Path) -> None:
    assert load_alert_settings(tmp_path / "none.toml").rules == ()
    assert load_alert_settings(settings_of(tmp_path, "[alerts")).rules == ()


def test_options_replace_settings_of_the_same_name(tmp_path: Path) -> None:
    settings = load_alert_settings(settings_of(tmp_path, "[alerts.rules]\nslow = 'disks await_ms>20ms'\nhot = 'hot'"))
    merged = settings.with_options([parse_rule("slow: disks await_ms>5ms")])
    assert [(rule.name, rule.limit) for rule in merged.rules] == [("stall", 2000.0), ("hot", 80.0), ("slow", 5.0)]
    with pytest.raises(UsageError, match="two rules are named 'hot'"):
        settings.with_options([parse_rule("hot"), parse_rule("hot>90")])


def test_a_command_is_split_without_a_shell() -> None:
    assert parse_command("notify 'two words' $HOME;id") == ("notify", "two words", "$HOME;id")
    with pytest.raises(UsageError, match="empty"):
        parse_command("  ")
