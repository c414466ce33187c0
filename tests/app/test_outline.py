"""Rows as an outline: branches open, siblings are sorted, filters show what they find and what it hangs on."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.field import Unit
from collectors.filtering.expression import Mask
from collectors.filtering.fields import FilterField
from collectors.model import FrameTable, Rows
from tui.widgets.grid.filtering import NO_TEXTS, GridFilter, GridRows
from tui.widgets.grid.outline import Outline
from tui.widgets.grid.rows import NAME, RowNames, Sorting

NAMES = ("a", "b", "c", "a1", "a2", "b1", "b2", "b2x")
PARENTS = (-1, -1, -1, 0, 0, 1, 1, 6)
VALUES = (1.0, 3.0, 2.0, 5.0, 9.0, np.nan, 4.0, 1.0)


def grown(*opened: str) -> tuple[Outline, FrameTable, RowNames]:
    rows = Rows(NAMES, NAMES)
    outline = Outline()
    outline.adopt(rows, np.array(PARENTS), np.isin(np.arange(len(NAMES)), PARENTS))
    outline.opened = set(opened)
    return outline, FrameTable(rows, {"iops": np.array(VALUES)}), RowNames(rows, None)


def found(outline: Outline, table: FrameTable, names: RowNames, text: str) -> Mask | None:
    grid_filter = GridFilter((FilterField("iops", "IOPS", Unit.PER_SECOND),))
    grid_filter.text = text
    return grid_filter.found(GridRows(table, names, NO_TEXTS, outline.inherited))


def shown(outline: Outline, table: FrameTable, names: RowNames, sort: Sorting, text: str = "") -> list[str]:
    order = outline.order(table, names, sort, found(outline, table, names, text))
    listed = [NAMES[row] for row in order.window(0, len(order))]
    assert [order.position_of(NAMES.index(name)) for name in listed] == list(range(len(order)))
    return listed


@pytest.mark.parametrize(
    ("opened", "sort", "expected"),
    [
        ((), Sorting("iops"), ["b", "c", "a"]),
        (("a",), Sorting("iops"), ["b", "c", "a", "a2", "a1"]),
        (("a", "b"), Sorting("iops"), ["b", "b2", "b1", "c", "a", "a2", "a1"]),
        (("a", "b", "b2"), Sorting(NAME), ["a", "a1", "a2", "b", "b1", "b2", "b2x", "c"]),
        (("b", "b2"), Sorting("iops", reverse=True), ["a", "c", "b", "b2", "b2x", "b1"]),
        (("b2",), Sorting("iops"), ["b", "c", "a"]),
        ((), Sorting("no such field"), ["a", "b", "c"]),
    ],
)
def test_siblings_are_sorted_below_their_parent(opened: tuple[str, ...], sort: Sorting, expected: list[str]) -> None:
    assert shown(*grown(*opened), sort) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b2x", ["b", "b2", "b2x"]),
        ("a", ["a", "a1", "a2"]),
        ("2", ["a", "a2", "b", "b2", "b2x"]),
        ("zz", []),
        ("iops>=5", ["a", "a1", "a2"]),
        ("a -a2", ["a", "a1"]),
        ("b iops<2", ["b", "b2", "b2x"]),
    ],
)
def test_a_filter_opens_the_way_to_what_it_finds(text: str, expected: list[str]) -> None:
    outline, table, names = grown()
    assert shown(outline, table, names, Sorting(NAME), text) == expected
    assert outline.opened == set()


def test_a_choice_of_leaves_leaves_out_branches_without_any() -> None:
    outline, table, names = grown()
    outline.passes = np.isin(np.array(NAMES), ["c", "b2x"])
    assert shown(outline, table, names, Sorting(NAME)) == ["b", "b2", "b2x", "c"]
    assert shown(outline, table, names, Sorting(NAME), "b") == ["b", "b2", "b2x"]


def test_signs_say_what_is_open_without_colour() -> None:
    outline, table, names = grown("a")
    outline.order(table, names, Sorting(NAME), None)
    assert [outline.prefix(NAMES.index(name)) for name in ("a", "b", "c", "a1", "b2x")] == [
        "- ", "+ ", "  ", "    ", "      ",
    ]  # fmt: skip


def test_a_list_without_branches_has_no_indent() -> None:
    rows = Rows(("x",), ("x",))
    outline = Outline()
    outline.adopt(rows, np.array([-1]), np.array([False]))
    assert (outline.prefix(0), outline.prefix_width) == ("", 0)


def test_ties_are_broken_in_octaves_so_that_rows_do_not_dance() -> None:
    rows = Rows(("x", "y", "z"), ("x", "y", "z"))
    outline = Outline()
    outline.ties = "iops"
    outline.adopt(rows, np.full(3, -1), np.zeros(3, bool))
    names = RowNames(rows, None)
    for iops in ((100.0, 101.0, 900.0), (101.0, 100.0, 900.0)):
        table = FrameTable(rows, {"state": np.zeros(3), "iops": np.array(iops)})
        assert outline.order(table, names, Sorting("state"), None).window(0, 3).tolist() == [2, 0, 1]
