"""What shows of widgets, against a search through all cells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Region
from textual.widget import Widget

from tui.textual_internals.lean_compositor import uncovered_parts

SCREEN = Region(0, 0, 12, 8)
REGIONS = st.builds(
    Region,
    st.sampled_from(range(-3, 15)),
    st.sampled_from(range(-3, 11)),
    st.sampled_from(range(15)),
    st.sampled_from(range(11)),
)
PLACES = st.tuples(REGIONS, st.just(SCREEN) | REGIONS)
"""Mostly in sight: what no widget covers, or no widget shows, tests nothing."""


@given(st.lists(PLACES, min_size=2, max_size=8))
def test_each_cell_belongs_to_the_widget_in_front(places: list[tuple[Region, Region]]) -> None:
    widgets = [Widget() for _ in places]
    parts = uncovered_parts(dict(zip(widgets, places, strict=True)), SCREEN)
    assert parts.keys() == set(widgets)
    for y in range(SCREEN.height):
        for x in range(SCREEN.width):
            there = (i for i, (region, clip) in enumerate(places) if region.contains(x, y) and clip.contains(x, y))
            front = next(there, None)
            found = [i for i, widget in enumerate(widgets) for part in parts[widget] if part.contains(x, y)]
            assert found == ([] if front is None else [front]), (x, y)
    assert all(part and SCREEN.contains_region(part) for each in parts.values() for part in each)
