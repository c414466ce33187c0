"""Readings of several loads as one."""

from __future__ import annotations

import numpy as np

from engine.events import Event, EventKind
from engine.running.counter_reader import LayoutReading
from engine.running.group_reading import GroupReadings, named_event
from engine.running.status import LoadReading


def reading(
    key: str, targets: int, slowest_ns: tuple[int, ...] = (), layout: LayoutReading | None = None
) -> LoadReading:
    cells = (
        np.arange(targets, dtype=np.uint32),
        np.zeros(targets, np.uint8),
        np.full(targets, 9, np.uint16),
        np.full(targets, 5, np.uint64),
    )
    slowest = np.array([[targets - 1, 0, 0, 4096, 1, each] for each in slowest_ns], np.uint64).reshape(-1, 6)
    return LoadReading(
        tuple(f"{key}:{index}" for index in range(targets)),
        tuple(f"/dev/{key}{index}" for index in range(targets)),
        np.full((targets, 17), 3, np.uint64),
        cells,
        slowest,
        tuple((8, index) for index in range(targets)),
        layout,
    )


def test_one_load_without_a_name_is_passed_on_as_it_is() -> None:
    alone = reading("a", 2)
    assert GroupReadings().combined([("", alone)]) is alone
    assert GroupReadings().combined([]) is None


def test_rows_are_in_order_and_name_their_load() -> None:
    found = GroupReadings().combined([("x", reading("a", 2)), ("y", reading("b", 1))])
    assert found is not None
    assert found.keys == ("a:0", "a:1", "b:0")
    assert found.names == ("[x] /dev/a0", "[x] /dev/a1", "[y] /dev/b0")
    assert found.values.shape == (3, 17)
    assert found.cells[0].tolist() == [0, 1, 2]
    assert found.cells[0].dtype == np.uint32
    assert found.device_numbers == ((8, 0), (8, 1), (8, 0))


def test_keys_are_the_same_object_as_long_as_the_same_loads_are_read() -> None:
    readings, one, other = GroupReadings(), reading("a", 1), reading("b", 1)
    alone = readings.combined([("x", one), ("y", None)])
    first, again = (readings.combined([("x", one), ("y", other)]) for _ in range(2))
    assert alone is not None
    assert first is not None
    assert again is not None
    assert alone.keys == ("a:0",)
    assert first.keys is again.keys


def test_a_load_that_ended_keeps_its_counters_until_all_have_ended() -> None:
    readings = GroupReadings()
    one, other = reading("a", 1, (900,)), reading("b", 1, (5,))
    first = readings.combined([("x", one), ("y", other)])
    left = readings.combined([("x", None), ("y", other)])
    assert first is not None
    assert left is not None
    assert left.keys is first.keys
    assert left.names == ("[x] /dev/a0", "[y] /dev/b0")
    assert left.values[0, [0, 1, 2, 4, 5, 6]].tolist() == one.values[0, [0, 1, 2, 4, 5, 6]].tolist()
    assert left.values[0, [3, 7, 11]].tolist() == [0, 0, 0]
    assert [left.cells[0].tolist(), left.slowest[:, 5].tolist()] == [[1], [5]]
    assert readings.combined([("x", None), ("y", None)]) is None
    again = readings.combined([("x", None), ("y", other)])
    assert again is not None
    assert again.keys == ("b:0",)


def test_the_slowest_of_all_come_first_with_the_row_of_their_target() -> None:
    found = GroupReadings().combined(
        [("x", reading("a", 2, (900, 500))), ("y", reading("b", 1, tuple(range(700, 600, -5))))]
    )
    assert found is not None
    assert len(found.slowest) == 16
    assert found.slowest[:3, 5].tolist() == [900, 700, 695]
    assert found.slowest[:2, 0].tolist() == [1, 2]


def test_paths_and_whole_ios_name_their_load() -> None:
    paths = np.zeros((2, 12), np.uint64)
    paths[:, 11] = [0, 1]
    whole = np.ones((1, 9), np.uint64)
    layout = LayoutReading(("a:0:0", "a:1:0"), ("p", "q"), paths, ("a:logical",), whole)
    plain = LayoutReading((), (), np.zeros((0, 12), np.uint64), ("b:logical",), np.zeros((0, 9), np.uint64))
    found = GroupReadings().combined([("y", reading("b", 1, layout=plain)), ("x", reading("a", 2, layout=layout))])
    assert found is not None
    assert found.layout is not None
    assert found.layout.path_names == ("[x] p", "[x] q")
    assert found.layout.paths[:, 11].tolist() == [1, 2]
    assert (found.layout.logical_keys, found.layout.logical_names) == (("a:logical",), ("[x] whole I/Os",))


def test_events_say_of_which_load_they_are() -> None:
    event = named_event("x", Event.now(EventKind.LOAD, "load started", job="..."))
    assert (event.text, event.data) == ("[x] load started", {"job": "...", "load_name": "x"})
