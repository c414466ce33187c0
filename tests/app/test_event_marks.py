"""Events on a time axis: groups share marks, labels neither collide nor break words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Event, EventKind
from tui.text.glyphs import UNICODE
from tui.widgets.chart.axes import TimeScale
from tui.widgets.chart.model import ChartFrame
from tui.widgets.time_axis import (
    MOST_CELLS,
    EventGroup,
    groups_in_sight,
    mark_cells,
    place_labels,
    shortened,
)

SECOND = 1_000_000_000
CELLS = 100
FRAME = ChartFrame(6, CELLS, 12, True)
SCALE = TimeScale(0, SECOND, CELLS)


def _event(cell: int, text: str = "sdb added", kind: EventKind = EventKind.HOTPLUG) -> Event:
    return Event(kind, text, cell * SECOND, 0)


def test_events_of_one_kind_that_follow_closely_share_a_mark() -> None:
    events = [
        _event(10),
        _event(12, "sdc gone"),
        _event(14, "sdd gone"),
        _event(30),
        _event(11, "note", EventKind.NOTE),
    ]
    groups = groups_in_sight(events, SCALE, FRAME)
    assert [(group.cell, group.text) for group in groups] == [(10, "3 x hot-plug"), (11, "note"), (30, "sdb added")]


def test_equal_texts_are_kept() -> None:
    (group,) = groups_in_sight([_event(10), _event(10)], SCALE, FRAME)
    assert group.text == "2 x sdb added"


def test_a_flood_has_marks_all_along_the_axis() -> None:
    groups = groups_in_sight([_event(cell) for cell in range(CELLS)], SCALE, FRAME)
    assert sum(len(group.events) for group in groups) == CELLS
    assert len(groups) == -(-CELLS // MOST_CELLS)
    marks = mark_cells(groups, CELLS, UNICODE.event_marks)
    assert "".join(marks.get(cell, " ") for cell in range(5)) == "±12  "


def test_events_out_of_sight_are_left_out() -> None:
    assert groups_in_sight([_event(-1), _event(CELLS)], SCALE, FRAME) == []


def test_a_number_never_covers_the_next_mark() -> None:
    groups = groups_in_sight([_event(10), _event(10, "x"), _event(11, "note", EventKind.NOTE)], SCALE, FRAME)
    assert mark_cells(groups, CELLS, UNICODE.event_marks) == {10: "±", 11: "¶"}


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("queue depth 8 -> 16", 19, "queue depth 8 -> 16"),
        ("queue depth 8 -> 16", 18, "queue depth 8 ->…"),
        ("queue depth 8 -> 16", 12, "queue depth…"),
        ("queue depth 8 -> 16", 8, ""),
        ("unbreakable", 8, ""),
        ("", 0, ""),
    ],
)
def test_words_are_never_cut(text: str, width: int, shown: str) -> None:
    assert shortened(text, width, "…") == shown


@given(
    st.lists(
        st.tuples(st.integers(0, CELLS - 1), st.sampled_from(list(EventKind)), st.text("ab ", max_size=40)), max_size=40
    ),
    st.integers(1, 12),
)
def test_labels_never_collide(found: list[tuple[int, EventKind, str]], rows: int) -> None:
    groups = groups_in_sight([_event(cell, text, kind) for cell, kind, text in found], SCALE, FRAME)
    taken: set[tuple[int, int]] = set()
    for label in place_labels(groups, rows, lambda _, cell: max(0, CELLS - cell), "…"):
        cells = {(label.row, label.cell + number) for number in range(len(label.text))}
        assert not cells & taken
        assert label.cell + len(label.text) <= CELLS
        assert label.row < rows
        taken |= cells


def test_a_label_that_finds_no_room_beside_a_curve_takes_the_next_row() -> None:
    groups = [EventGroup(10, (_event(10, "sdc gone"),))]
    (label,) = place_labels(groups, 12, lambda row, _: 4 if row == 0 else 50, "…")
    assert (label.row, label.cell, label.text) == (1, 11, "sdc gone")
