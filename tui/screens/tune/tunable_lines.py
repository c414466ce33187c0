"""Tunables of a scope as lines of text: the list of the drawer, and what it asks for a value."""

from __future__ import annotations

from textual.content import Content

from tui.screens.tune.tunable_rows import TunableRow

_NAME_WIDTH, _VALUE_WIDTH, _DEFAULT_WIDTH, _UNIT_WIDTH = 24, 16, 11, 9


def tunable_heading() -> Content:
    """Return the titles of the columns of `tunable_line`."""
    titles = (("TUNABLE", _NAME_WIDTH), ("VALUE", _VALUE_WIDTH), ("UNIT", _UNIT_WIDTH), ("DEFAULT", _DEFAULT_WIDTH))
    text = "".join(f"{title:<{width}}" for title, width in titles)
    return Content.styled(f"  {text}LEGAL", "bold")


def tunable_line(row: TunableRow) -> Content:
    """Return a tunable with its value, unit, default and legal values; `*` marks a changed one, `r` a read-only one."""
    mark = "r" if row.refusal else "*" if row.is_changed else " "
    cells = (
        (row.tunable.id, _NAME_WIDTH),
        (row.value, _VALUE_WIDTH),
        (row.tunable.unit, _UNIT_WIDTH),
        (row.default, _DEFAULT_WIDTH),
    )
    text = "".join(f"{_cut(cell, width - 1):<{width}}" for cell, width in cells)
    return Content.styled(f"{mark} {text}{row.legal}", "dim" if row.refusal else "bold" if row.is_changed else "")


def value_note(row: TunableRow, value: str) -> str:
    """Say whether a value is the present one or the default."""
    notes = ["now" if value == row.present else "", "default" if value == row.default else ""]
    return ", ".join(filter(None, notes))


def value_question(row: TunableRow, scope: str) -> list[str]:
    """Ask for a value that is typed, with what is known of it."""
    unit = f" ({row.tunable.unit})" if row.tunable.unit else ""
    return [
        f"New value of {row.tunable.id}{unit} for {scope}:",
        f"now {row.value}, default {row.default or 'not known'}, legal {row.legal or 'what the kernel takes'}",
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 2]}.."
