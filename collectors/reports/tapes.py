"""Averages of tape drives over a whole report: from added-up growth, each drive over the time it could be measured."""

from __future__ import annotations

import numpy as np

from collectors.derive.tape import tape_figures, tape_sums
from collectors.model import FrameTable, Rows, Step
from collectors.rates import interval_s


class TapeAverages:
    """Adds up the intervals of a report."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._sums: dict[str, dict[str, float]] = {}

    def add(self, step: Step) -> None:
        """Add the interval of a step; one without a previous sample has none."""
        table, elapsed_s = step.current.tables.get("tape"), interval_s(step.previous, step.current)
        if step.previous is None or table is None or np.isnan(elapsed_s):
            return
        sums = tape_sums(step.previous.tables.get("tape"), table, elapsed_s)
        for row, (key, name) in enumerate(zip(table.rows.keys, table.rows.names, strict=True)):
            self._names[key] = name
            total = self._sums.setdefault(key, dict.fromkeys(sums, 0.0))
            if not np.isnan(sums["reads"][row]):
                for quantity, values in sums.items():
                    total[quantity] += float(values[row])
                total["in_flight"] = float(sums["in_flight"][row])

    def table(self) -> FrameTable | None:
        """Figures of all drives that were ever there; None if there was none."""
        if not self._names:
            return None
        quantities = next(iter(self._sums.values()))
        sums = {name: np.array([self._sums[key][name] for key in self._names]) for name in quantities}
        return FrameTable(Rows(tuple(self._names), tuple(self._names.values())), tape_figures(sums))
