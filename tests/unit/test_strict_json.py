"""JSON from elsewhere: what is none of ours is refused in a few words, whatever the standard library makes of it."""

from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from collectors.reports.export import event_lines
from collectors.session import objects
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.strict_json import MOST_LEVELS, JsonError, dump_json, load_json, load_json_object
from engine.tune.record import from_json

_VALUES = some.recursive(
    some.none() | some.booleans() | some.integers(-(10**30), 10**30) | some.floats() | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(), inner, max_size=4),
    max_leaves=20,
)


def _without_infinities(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    return [_without_infinities(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=50)
@given(_VALUES)
def test_what_is_written_is_read_back_with_what_is_not_finite_missing(value: object) -> None:
    text = dump_json(value)
    assert text.isascii()
    assert load_json(text) == load_json(text.encode()) == _without_infinities(value)
    assert load_json(json.dumps(value), not_finite_is_missing=True) == _without_infinities(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "not JSON"),
        ("[" * 100_000 + "]" * 100_000, "nested more than"),
        ('{"a":' * (MOST_LEVELS + 1) + "1" + "}" * (MOST_LEVELS + 1), "nested more than"),
        ("[{}" + ',[{"a":[]}]' * 30_000 + "]" * 2, "not JSON"),
        ("NaN", "no number"),
        ("[1, -Infinity]", "no number"),
        ("[1e999]", "beyond every float"),
        ("[-1E+400]", "beyond every float"),
        ("9" * 400 + ".5", "beyond every float"),
        ("1" * 50, "more than 40 digits"),
        ("1" * 10_000, "more than 40 digits"),
        ('{"a": 1, "a": 2}', "a key twice"),
        ('{"a": 1', "not JSON"),
        ("", "not JSON"),
        ("\ufeff1", "not JSON"),
        ("1" + " " * 200, "larger than"),
    ],
)
def test_what_is_none_is_refused_with_the_reason(text: str, says: str) -> None:
    begun = time.process_time()
    for data in (text, text.encode()):
        with pytest.raises(JsonError, match=says):
            load_json(data, most_bytes=100 if "larger" in says else 1 << 20)
    assert time.process_time() - begun < 2.0


def test_levels_are_those_of_brackets_outside_of_text() -> None:
    deepest = "[" * MOST_LEVELS + "]" * MOST_LEVELS
    assert load_json(deepest) is not None
    for text in ("[" * 500, '\\"[{' * 100, "\\" * 3 + '"' + "[" * 100):
        assert load_json(json.dumps([text])) == [text]
        assert load_json(json.dumps([[text, text]] * 50)) == [[text, text]] * 50


def test_other_encodings_are_refused() -> None:
    with pytest.raises(JsonError):
        load_json("[1]".encode("utf-16"))
    assert load_json_object(b'{"name": "\\udcff"}') == {"name": "\udcff"}
    with pytest.raises(JsonError, match="not a JSON object"):
        load_json_object("[]")


@pytest.mark.parametrize("text", ['{"schema":' + "[" * 5000 + "]" * 5000 + "}", '{"schema": NaN}', "[" * 10**6])
def test_a_damaged_record_of_a_change_is_one_line(text: str) -> None:
    with pytest.raises(LunscopeError, match=r"^/x/1\.json: no record of a change \(.*\): remove it$"):
        from_json(text, "/x/1.json")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_an_event_with_a_figure_that_is_not_finite_is_exported_as_missing(value: float, format_: str) -> None:
    written = json.dumps({"kind": "note", "text": "x", "time_ns": 1, "monotonic_ns": 1, "data": {"iops": value}})
    recorded = objects.event_from_json(objects.load(written.encode()))
    for event in (recorded, Event(EventKind.NOTE, "x", 1, 1, {"iops": value})):
        (*_, line) = event_lines([event], format_, (), None, None)
        assert "null" in line
        if format_ == "jsonl":
            assert load_json_object(line)["data"] == {"iops": None}
