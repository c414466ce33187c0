"""Lines of CSV that spreadsheets do not interpret as formulas."""

from __future__ import annotations

import csv
from collections.abc import Iterable

_FORMULA_STARTS = ("=", "+", "-", "@")


class _LineEcho:
    """Returns each written line: csv.writer returns the result of `write`."""

    def write(self, line: str) -> str:
        return line


_WRITER = csv.writer(_LineEcho(), lineterminator="")


def csv_line(cells: Iterable[object]) -> str:
    """Write one line, without its end."""
    return str(_WRITER.writerow(cells))


def text_cell(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would interpret as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
