"""How kernel files write values, and which values are legal."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.tune.forms import Bracketed, DeviceKey, Throttle, ValueForm, Weight, devices_of, words_of_brackets
from engine.tune.legal import Legal, read_value
from engine.tune.registry import BY_ID, TUNABLES, find_tunable

MAX = "8:0 rbps=1048576 wbps=max riops=500 wiops=max\n8:16 rbps=max wbps=max riops=max wiops=7\n"


@pytest.mark.parametrize(
    ("form", "text", "device", "value"),
    [
        (Bracketed(), "none [mq-deadline] kyber", "", "mq-deadline"),
        (Bracketed(), "none", "", "none"),
        (DeviceKey("riops"), MAX, "8:0", "500"),
        (DeviceKey("wiops"), MAX, "8:16", "7"),
        (DeviceKey("wiops"), MAX, "8:1", "max"),
        (DeviceKey("target"), "8:0 target=1000", "8:0", "1000"),
        (Weight(), "default 100\n8:0 200", "", "100"),
        (Weight(), "default 100\n8:0 200", "8:0", "200"),
        (Weight(), "default 100\n8:0 200", "8:16", "default"),
        (Weight(), "100", "", "100"),
        (Throttle(), "8:0 1024\n8:16 5", "8:16", "5"),
        (Throttle(), "", "8:16", "max"),
    ],
)
def test_values_are_found_in_files(form: ValueForm, text: str, device: str, value: str) -> None:
    assert form.value(text, device) == value


@pytest.mark.parametrize(
    ("form", "value", "device", "line"),
    [
        (Bracketed(), "kyber", "", "kyber"),
        (DeviceKey("riops"), "9", "8:0", "8:0 riops=9"),
        (Weight(), "50", "", "default 50"),
        (Weight(), "default", "8:0", "8:0 default"),
        (Throttle(), "9", "8:0", "8:0 9"),
        (Throttle(), "max", "8:0", "8:0 0"),
    ],
)
def test_lines_are_written_as_the_kernel_reads_them(form: ValueForm, value: str, device: str, line: str) -> None:
    assert form.line(value, device) == line


def test_devices_and_words() -> None:
    assert devices_of(MAX + "default 100") == ("8:0", "8:16")
    assert words_of_brackets("none [mq-deadline] kyber") == ("none", "mq-deadline", "kyber")


@pytest.mark.parametrize(
    ("legal", "good", "bad"),
    [
        (Legal((), 4, 256), ["4", "256"], ["3", "257", "x", "-5", "4.5"]),
        (Legal(("max",), 1), ["max", "99999999999999"], ["0", "min"]),
        (Legal(("none", "kyber")), ["none"], ["1", "bfq"]),
        (Legal((), None, 2), ["-7", "2"], ["3"]),
        (Legal(), ["anything"], []),
    ],
)
def test_legal_values(legal: Legal, good: list[str], bad: list[str]) -> None:
    assert [legal.refusal(value) for value in good] == [""] * len(good)
    assert all(legal.text in legal.refusal(value) for value in bad)


def test_what_people_write() -> None:
    assert read_value("1m", "B/s") == "1048576"
    assert read_value("1m", "requests") == "1m"
    assert read_value(" 007 ", "") == "7"
    assert read_value("write back", "") == "write back"
    assert read_value("max", "B/s") == "max"
    for text in ("", " ", "a\nb", "\x1b[0m"):
        with pytest.raises(UsageError, match="is no value"):
            read_value(text, "")


def test_every_tunable_is_described() -> None:
    assert len({tunable.id for tunable in TUNABLES}) == len(TUNABLES)
    assert BY_ID.keys() > {tunable.id for tunable in TUNABLES}
    for tunable in TUNABLES:
        assert tunable.help
        assert len(f"{tunable.id}: {tunable.help}") <= 80
        assert not tunable.file.startswith("/")


def test_unknown_names_are_answered_with_those_alike() -> None:
    with pytest.raises(UsageError, match="is it queue_depth"):
        find_tunable("queue_dep")
    with pytest.raises(UsageError, match="tune list --names"):
        find_tunable("../../etc/passwd")
