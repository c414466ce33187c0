"""Fields that are quotients of the sums of an interval: rates, and means per I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from collectors.derive.counter_deltas import Values
from collectors.field import Field

_TIME = "elapsed_s"


class Quotients:
    """Computes those of some fields that name their sums, wherever these come from: counters, tracepoints, a report."""

    def __init__(
        self,
        fields: Iterable[Field],
        only: Callable[[Field], bool] = lambda _: True,
        known: Collection[str] | None = None,
    ) -> None:
        """Take the fields of one table.

        Args:
            fields: what is computed, and the fields they are means per.
            only: which of them are computed.
            known: leave out fields of which not all quantities are among these; None: there are all.

        Raises:
            KeyError: a field is a mean per one that is none of them.
        """
        by_id = {field.id: field for field in fields}
        wanted = [field for field in by_id.values() if field.sums and only(field)]
        plan = [(each.id, each.sums, by_id[each.per].sums if each.per else _TIME, each.factor) for each in wanted]
        self._plan = [
            each for each in plan if known is None or {*each[1].split()} | {*each[2].split()} <= {*known, _TIME}
        ]

    def of(self, sums: Mapping[str, Values]) -> dict[str, Values]:
        """Return each field; NaN where it has no time or no I/O to be divided by, or a quantity is unknown."""
        totals: dict[str, Values] = {}
        divisors: dict[str, Values] = {}
        figures = {}
        for field_id, amount, per, factor in self._plan:
            for each in (amount, per):
                if each not in totals:
                    first, *others = each.split()
                    totals[each] = sum((sums[name] for name in others), start=sums[first])
            if per not in divisors:
                divisors[per] = np.where(totals[per] > 0.0, totals[per], np.nan)
            quotient = totals[amount] / divisors[per]
            figures[field_id] = quotient if factor == 1.0 else factor * quotient
        return figures
