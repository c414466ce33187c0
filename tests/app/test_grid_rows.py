"""Order, filter and cursor of the grid, without a terminal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.field import Unit
from collectors.filtering.expression import Mask
from collectors.filtering.fields import FilterField
from collectors.model import FrameTable, Rows
from collectors.subject import any_above
from tests.app.shows import after, disks
from tui.widgets.grid.filtering import NO_TEXTS, GridFilter, GridRows
from tui.widgets.grid.row_view import PinnedOrder, RowView
from tui.widgets.grid.rows import FLAT, NAME, RowNames, RowOrder, Sorting, natural_key, order_rows

NAN = math.nan


def _found(table: FrameTable, names: RowNames, text: str) -> Mask | None:
    grid_filter = GridFilter(())
    grid_filter.text = text
    return grid_filter.found(GridRows(table, names, NO_TEXTS, FLAT.inherited))


def _names_in_order(table: FrameTable, sorting: Sorting, filter_text: str = "") -> list[str]:
    names = RowNames(table.rows, None)
    order = order_rows(table, names, sorting, _found(table, names, filter_text))
    return [table.rows.names[row] for row in order.window(0, len(order))]


def test_largest_first_missing_last_equals_in_table_order() -> None:
    table = disks(["a", "b", "c", "d", "e"], iops=[1, NAN, 5, 1, 7])
    assert _names_in_order(table, Sorting("iops")) == ["e", "c", "a", "d", "b"]
    assert _names_in_order(table, Sorting("iops", reverse=True)) == ["a", "d", "c", "e", "b"]


def test_names_sort_as_people_count() -> None:
    names = ["sdaa", "nvme10n1", "sdb", "nvme2n1", "sdz"]
    assert _names_in_order(disks(names), Sorting(NAME)) == ["nvme2n1", "nvme10n1", "sdb", "sdz", "sdaa"]
    assert _names_in_order(disks(names), Sorting(NAME, reverse=True))[0] == "sdaa"


def test_field_the_table_lacks_leaves_its_order() -> None:
    assert _names_in_order(disks(["b", "a"]), Sorting("iops")) == ["b", "a"]


def test_filter_is_a_substring_in_any_case() -> None:
    table = disks(["sda", "NVMe0", "nvme1", "dm-0"], iops=[1, 2, 3, 4])
    assert _names_in_order(table, Sorting("iops"), "nvme") == ["nvme1", "NVMe0"]
    assert _names_in_order(table, Sorting("iops"), "zzz") == []


def test_labels_are_what_is_filtered_and_sorted() -> None:
    table = disks(["dm-0", "dm-1"])
    names = RowNames(table.rows, {"key of dm-0": "oradata", "key of dm-1": "backup"})
    order = order_rows(table, names, Sorting(NAME), None)
    assert [names.shown(row) for row in order.window(0, 2)] == ["backup", "oradata"]
    assert order_rows(table, names, Sorting(NAME), _found(table, names, "ORA")).window(0, 9).tolist() == [0]


@pytest.mark.slow
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=False, width=16), min_size=1, max_size=40),
    st.integers(0, 40),
    st.integers(0, 12),
)
def test_window_is_a_slice_of_the_whole_stable_order(values: list[float], top: int, height: int) -> None:
    keys = np.array(values, dtype=np.float64)
    rows = np.arange(len(keys)) * 2
    order = RowOrder(rows, keys)
    whole = rows[np.argsort(keys, kind="stable")].tolist()
    assert order.window(top, height).tolist() == whole[top : top + height]
    assert [order.position_of(row) for row in whole] == list(range(len(whole)))
    assert order.position_of(1) is None


def test_natural_key_of_digits_that_int_does_not_read() -> None:
    assert natural_key("a²") > natural_key("a")


def test_untouched_cursor_stays_on_the_first_row_whichever_it_is() -> None:
    table = disks(["a", "b"], iops=[2, 1])
    view = RowView(Sorting("iops"))
    view.show(table, None)
    assert view.cursor_key == "key of a"
    view.show(after(table, iops=[1, 2]), None)
    assert view.cursor_key == "key of b"


def test_moved_cursor_stays_on_its_key() -> None:
    table = disks(["a", "b", "c"], iops=[3, 2, 1])
    view = RowView(Sorting("iops"))
    view.show(table, None)
    view.move(1)
    view.show(after(table, iops=[3, 9, 1]), None)
    assert (view.cursor, view.cursor_key) == (0, "key of b")
    view.sort(Sorting("iops", reverse=True))
    assert (view.cursor, view.cursor_key) == (2, "key of b")


def test_cursor_of_a_vanished_row_stays_in_place() -> None:
    view = RowView(Sorting("iops"))
    view.show(disks(["a", "b", "c"], iops=[3, 2, 1]), None)
    view.move(2)
    view.show(disks(["a", "b"], iops=[3, 2]), None)
    assert view.cursor_key == "key of b"
    view.show(disks([]), None)
    assert view.cursor == 0
    assert view.key_at(0) is None
    view.show(None, None)
    assert view.key_at(0) is None


def test_names_are_kept_while_rows_and_labels_are_the_same() -> None:
    rows = Rows(("k",), ("n",))
    labels = {"k": "label"}
    names = RowNames(rows, labels)
    assert names.fits(rows, dict(labels))
    assert not names.fits(rows, None)
    assert not names.fits(Rows(("k",), ("n",)), labels)


@pytest.mark.slow
@given(
    st.lists(st.floats(allow_nan=False, width=16), min_size=1, max_size=20),
    st.lists(st.integers(0, 19), max_size=4, unique=True),
    st.integers(0, 25),
    st.integers(0, 8),
)
def test_pinned_rows_come_first_and_once(values: list[float], pinned: list[int], top: int, height: int) -> None:
    found = np.arange(0, len(values), 2)
    order = RowOrder(found, np.array(values)[found])
    whole = [*pinned, *(row for row in order.window(0, len(order)).tolist() if row not in pinned)]
    with_pinned = PinnedOrder(tuple(pinned), order)
    assert len(with_pinned) == len(whole)
    assert with_pinned.window(top, height).tolist() == whole[top : top + height]
    assert [with_pinned.position_of(row) for row in whole] == list(range(len(whole)))
    assert with_pinned.row_at(len(whole)) is None


def test_typing_the_name_of_a_field_hides_nothing_until_it_is_compared() -> None:
    table = disks(["sda", "sdb"], busy_pct=[10, 90])
    view = RowView(Sorting(NAME), grid_filter=GridFilter((FilterField("busy_pct", "Busy", Unit.PERCENT),)))
    view.show(table, None)
    view.grid_filter.editing = True
    seen = []
    for end in range(len("sd busy>50") + 1):
        view.filter("sd busy>50"[:end])
        seen.append(len(view.order))
    assert seen[3:] == [2, 1, 2, 2, 2, 2, 2, 1]  # "sd b" finds sdb; "sd busy>5" finds both
    view.grid_filter.editing = False
    view.filter("busy")
    assert (len(view.order), view.matched) == (0, 0)


def test_a_filter_stays_while_figures_come() -> None:
    table = disks(["a", "b"], busy_pct=[10, 90])
    view = RowView(Sorting(NAME), grid_filter=GridFilter((FilterField("busy_pct", "Busy", Unit.PERCENT),)))
    view.show(table, None)
    view.filter("busy>50")
    assert view.cursor_key == "key of b"
    view.show(after(table, busy_pct=[60, NAN]), None)
    assert (view.cursor_key, view.matched) == ("key of a", 1)


def test_idle_rows_are_hidden_but_pinned_ones_stay() -> None:
    table = disks(["a", "b", "c"], iops=[0, 5, NAN])
    view = RowView(Sorting("iops"), active=any_above("iops"))
    view.show(table, None)
    view.hide_idle(True)
    assert ([view.key_at(0), view.key_at(1)], view.matched) == (["key of b", None], 1)
    view.pin("key of c")
    assert [view.key_at(position) for position in range(3)] == ["key of c", "key of b", None]
    view.pin("key of c")
    assert view.key_at(0) == "key of b"
