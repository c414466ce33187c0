"""Averages over a whole report of a subject with additive sums: from summed deltas, never a mean of means."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from collectors.derive.counter_deltas import Values
from collectors.model import FrameTable, Rows, Schema, Step, Table
from collectors.subject import interval_s

Sums = Callable[[Table | None, Table, float], Mapping[str, Values]]
Figures = Callable[[Mapping[str, Values]], Mapping[str, Values]]


class AddedSums:
    """Adds up the sums of intervals, each row over the time in which it was measured.

    `sums` computes the quantities of an interval, one value per row, and `figures` the fields of such sums. `counted`
    is a quantity that is NaN for rows that were not measured; `latest` are not additive: the last value is used.
    """

    def __init__(
        self,
        table: str,
        raw: Schema,
        sums: Sums,
        figures: Figures,
        *,
        counted: str = "reads",
        latest: tuple[str, ...] = ("in_flight",),
    ) -> None:
        self._table, self._raw = table, raw.name
        self._make_sums, self._make_figures = sums, figures
        self._counted, self._latest = counted, latest
        self._names: dict[str, str] = {}
        self._sums: dict[str, dict[str, float]] = {}

    def add(self, step: Step) -> None:
        """Add the interval of a step; one without a previous sample has none."""
        table, elapsed_s = step.current.tables.get(self._raw), interval_s(step.previous, step.current)
        if step.previous is None or table is None or np.isnan(elapsed_s):
            return
        sums = self._make_sums(step.previous.tables.get(self._raw), table, elapsed_s)
        for row, (key, name) in enumerate(zip(table.rows.keys, table.rows.names, strict=True)):
            self._names[key] = name
            total = self._sums.setdefault(key, dict.fromkeys(sums, 0.0))
            if not np.isnan(sums[self._counted][row]):
                for quantity, values in sums.items():
                    value = float(values[row])
                    total[quantity] = value if quantity in self._latest else total[quantity] + value

    def tables(self) -> dict[str, FrameTable]:
        """Figures of all rows ever present; no table if there were none."""
        if not self._names:
            return {}
        quantities = next(iter(self._sums.values()))
        sums = {name: np.array([self._sums[key][name] for key in self._names]) for name in quantities}
        rows = Rows(tuple(self._names), tuple(self._names.values()))
        return {self._table: FrameTable(rows, dict(self._make_figures(sums)))}
