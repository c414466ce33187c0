"""The grammar of alert rules, the settings, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.alerts.command import parse_command
from collectors.alerts.parse import parse_rule
from collectors.alerts.rule import AlertSign, RuleKind, value_text
from collectors.alerts.settings import load_alert_settings
from collectors.field import Unit
from engine.errors import UsageError


def test_a_rule_in_full() -> None:
    rule = parse_rule("slow: disks await_ms >= 20 ms for 10s clear 3s on nvme*")
    assert (rule.name, rule.kind, rule.table, rule.field_id) == ("slow", RuleKind.FIELD, "disks", "await_ms")
    assert (rule.comparison, rule.limit, rule.hold_s, rule.clear_s) == (AlertSign.AT_LEAST, 20.0, 10.0, 3.0)
    assert rule.scope == "nvme*"


def test_units_are_those_of_the_field() -> None:
    assert parse_rule("disks await>200us").limit == pytest.approx(0.2)
    assert parse_rule("disks bytes_per_s<1.5MB/s").limit == 1.5 * 1024**2
    assert parse_rule("disks iops>10k").limit == 10_000
    assert parse_rule("host psi_io_full_pct>5%").limit == 5


def test_figures_have_no_exponent() -> None:
    assert value_text(998.9, Unit.PER_SECOND) == "999 /s"
    assert value_text(999.7, Unit.PER_SECOND) == "1 k/s"
    assert value_text(1023.7, Unit.BYTES) == "1 kB"
    assert value_text(1001.0, Unit.BYTES_PER_SECOND) == "1001 B/s"
    assert value_text(12_345.6, Unit.MILLISECONDS) == "12346 ms"


def test_built_in_rules_have_limits_of_their_own() -> None:
    uneven, hot = parse_rule("imbalance for 30s"), parse_rule("hot")
    assert (uneven.kind, uneven.table, uneven.limit, uneven.hold_s) == (RuleKind.IMBALANCE, "paths", 1.5, 30.0)
    assert (hot.kind, hot.table, hot.field_id, hot.limit) == (RuleKind.HOT, "disks", "heat", 80.0)
    assert parse_rule("imbalance>2x").limit == 2.0


RULES = (
    "disks await_ms>20ms for 10s",
    "slow: disks await_ms > 0.25 ms for 500ms on sd[ab]",
    "imbalance>1.75x for 90s on mp*",
    "hot>90",
    "load_total bytes_per_s<1.5MB/s for 5s",
    "cgroups iops>1k clear 2m",
)


@pytest.mark.parametrize("text", RULES)
def test_what_is_shown_is_read_as_the_same_rule(text: str) -> None:
    rule = parse_rule(text)
    assert parse_rule(rule.condition, rule.name) == rule


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("disks awiat_ms>3ms", "did you mean 'await_ms'?; known: heat, iops"),
        ("disk await_ms>3ms", "no subject 'disk'; did you mean 'disks'?; there are disks, paths, hbas"),
        ("disks await_ms>3%", "'3%' is no limit of await_ms: write 5, 5ms, 200us or 1s"),
        ("disks await_ms>", "'' is no limit of await_ms"),
        ("disks await_ms", "needs one field and a limit"),
        ("disks await_ms=3", "compare with > >= < or <="),
        ("disks await_ms>3ms for ever", "'ever' is not a duration"),
        ("disks await_ms>3ms for 2d", "at most 1d"),
        ("disks await_ms>3ms for 2s for 3s", "'for' comes twice"),
        ("imbalance<2x", "reported above a limit only"),
        ("imbalance>0.5x", "multiples of an even part above 1"),
        ("hot disks>3", "'disks' after 'hot'"),
        ("", "no subject ''"),
        ("a" * 40 + ": hot", "1 to 32 printable characters"),
        ("x" * 400, "at most 300 characters"),
        ("disks await_ms>nan", "is no limit"),
        ("disks await_ms>1e999", "is no limit"),
        ("disks \x1b[2J>3", "no field"),
    ],
)
def test_what_is_wrong_is_said_in_one_printable_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as wrong:
        parse_rule(text)
    assert said in str(wrong.value)
    assert str(wrong.value).isprintable()


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alerts = 3", "alerts must be a table"),
        ("[alerts]\nrule = 3", "unknown setting 'rule'; did you mean 'rules'?; known: rules, bell, command"),
        ("[alerts]\nrules = []", "rules must be a table"),
        ("[alerts]\nbell = 'yes'", "bell must be true or false"),
        ("[alerts]\ncommand = 3", "command must be text"),
        ('[alerts]\ncommand = "a \'b"', "close the quote"),
        ("[alerts.rules]\n" + "\n".join(f"r{number} = 'hot'" for number in range(101)), "has 101 rules"),
    ],
)
def test_broken_settings_are_one_line_each(tmp_path: Path, text: str, said: str) -> None:
    (problem,) = load_alert_settings(settings_of(tmp_path, text)).problems
    assert said in problem
    assert str(tmp_path) in problem


def test_without_a_file_or_with_a_broken_one_there_are_no_rules(tmp_path: Path) -> None:
    assert load_alert_settings(tmp_path / "none.toml").rules == ()
    assert load_alert_settings(settings_of(tmp_path, "[alerts")).rules == ()


def test_options_replace_settings_of_the_same_name(tmp_path: Path) -> None:
    settings = load_alert_settings(settings_of(tmp_path, "[alerts.rules]\nslow = 'disks await_ms>20ms'\nhot = 'hot'"))
    merged = settings.with_options([parse_rule("slow: disks await_ms>5ms")])
    assert [(rule.name, rule.limit) for rule in merged.rules] == [("hot", 80.0), ("slow", 5.0)]
    with pytest.raises(UsageError, match="two rules are named 'hot'"):
        settings.with_options([parse_rule("hot"), parse_rule("hot>90")])


def test_a_command_is_split_without_a_shell() -> None:
    assert parse_command("notify 'two words' $HOME;id") == ("notify", "two words", "$HOME;id")
    with pytest.raises(UsageError, match="empty"):
        parse_command("  ")
