"""Order, filter and cursor of the grid, without a terminal."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.model import FrameTable, Rows
from tests.app.shows import after, disks
from tui.widgets.grid.row_view import RowView
from tui.widgets.grid.rows import NAME, RowNames, RowOrder, Sorting, natural_key, order_rows

NAN = math.nan


def _names_in_order(table: FrameTable, sorting: Sorting, filter_text: str = "") -> list[str]:
    order = order_rows(table, RowNames(table.rows, None), sorting, filter_text)
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
    order = order_rows(table, names, Sorting(NAME), "")
    assert [names.shown(row) for row in order.window(0, 2)] == ["backup", "oradata"]
    assert order_rows(table, names, Sorting(NAME), "ORA").window(0, 9).tolist() == [0]


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
