"""Keys of a focused grid."""

from __future__ import annotations

from textual.binding import Binding, BindingType

GRID_BINDINGS: tuple[BindingType, ...] = (
    Binding("up,k", "move(-1)", "Row up", show=False, id="row-up"),
    Binding("down,j", "move(1)", "Row down", show=False, id="row-down"),
    Binding("pageup", "page(-1)", "Page up", show=False, id="page-up"),
    Binding("pagedown", "page(1)", "Page down", show=False, id="page-down"),
    Binding("home", "first", "Follow the first row", show=False, id="row-first"),
    Binding("end", "last", "Last row", show=False, id="row-last"),
    Binding("left", "columns(-1)", "Columns left", show=False, id="columns-left"),
    Binding("right", "columns(1)", "Columns right", show=False, id="columns-right"),
    Binding("enter", "select", "Open", show=False, id="row-select"),
    Binding("less_than_sign", "sort(-1)", "Sort by the previous column", show=False, id="sort-previous"),
    Binding("greater_than_sign", "sort(1)", "Sort by the next column", show=False, id="sort-next"),
    Binding("I", "sort_reverse", "Reverse the order", show=False, id="sort-reverse"),
    Binding("slash", "filter", "Filter by words and figures: nvme busy>50", show=False, id="filter"),
    Binding("H", "idle", "Hide rows without I/O, or show them", show=False, id="rows-idle"),
    Binding("K", "pin", "Keep the row at the top, or no longer", show=False, id="row-pin"),
    Binding("V", "choose_columns", "Choose and order the columns", show=False, id="columns-choose"),
    Binding("E", "explain", "What the columns mean: unit, source, thresholds", show=False, id="columns-explain"),
    Binding("u", "units", "Units: K of 1024, k of 1000, or microseconds (250u)", show=False, id="columns-units"),
)

PALETTE_IDS = frozenset(
    {
        "filter",
        "sort-previous",
        "sort-next",
        "sort-reverse",
        "rows-idle",
        "row-pin",
        "columns-choose",
        "columns-explain",
        "columns-units",
    }
)
"""Bindings of a focused grid that the palette offers: all but the movements."""
