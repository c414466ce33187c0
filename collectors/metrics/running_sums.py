"""What is added up over the life of the process: latency histograms, and counters of ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, aligned, column_deltas, wrap_limit
from collectors.derive.percentiles import bucket_bounds_ns
from collectors.derive.roles import Roles
from collectors.metrics.family import MetricHistogram
from collectors.model import Histograms, HistogramScale, Rows, Step
from collectors.subject import interval_s

LOWEST_OCTAVE, HIGHEST_OCTAVE = 13, 33
"""Borders from 2^13 ns (8.2 us) to 2^33 ns (8.6 s)."""
PER_OCTAVE = (1, 2, 4, 8)
"""Buckets per octave that can be chosen; the scale has 16."""


def border_buckets(scale: HistogramScale, per_octave: int) -> NDArray[np.uint16]:
    """Buckets of the scale that end at a border, in order."""
    bucket = np.arange(HIGHEST_OCTAVE << scale.sub_bits, dtype=np.uint16)
    _, above = bucket_bounds_ns(scale, bucket)
    octaves = range(LOWEST_OCTAVE, HIGHEST_OCTAVE)
    wanted = [(1 << octave) * (per_octave + part) // per_octave for octave in octaves for part in range(per_octave)]
    return bucket[np.isin(above, [*wanted, 1 << HIGHEST_OCTAVE])]


class LatencySums:
    """Histograms of some series by key, and the time of their I/Os.

    Every bucket of the source lies within one bucket here, so merging is exact. A border is the largest whole
    nanosecond inside its bucket, because `le` includes its value and our upper bounds do not.
    """

    def __init__(self, scale: HistogramScale, series: Sequence[str], per_octave: int) -> None:
        self.scale = scale
        self.series = tuple(series)
        self._last_buckets = border_buckets(scale, per_octave)
        _, above = bucket_bounds_ns(scale, self._last_buckets)
        self.borders_s = tuple(repr((int(border) - 1) / 1e9) for border in above)
        self._rows: dict[str, int] = {}
        self._counts = np.zeros((0, len(self.series), len(self._last_buckets) + 1), np.uint64)
        self._sums_ns = np.zeros((0, len(self.series)), np.float64)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys in the order of the rows."""
        return tuple(self._rows)

    @property
    def series_per_key(self) -> int:
        """Number of time series that one key has."""
        return len(self.series) * (len(self.borders_s) + 3)

    def add(self, owners: Sequence[str], cells: Histograms, times_ns: NDArray[np.float64]) -> None:
        """Add the cells of an interval and the time of their I/Os.

        Args:
            owners: key to which each row of the histograms belongs, empty for none.
            cells: histograms of the interval.
            times_ns: total time by row of `cells` and series, shape (len(owners), len(series)).

        Raises:
            ValueError: another scale.
        """
        if cells.scale != self.scale:
            raise ValueError("histograms of another scale cannot be added")
        row_of = self._positions(owners)
        owned = np.flatnonzero(row_of >= 0)
        np.add.at(self._sums_ns, row_of[owned], times_ns[owned])
        series_of = np.array([_index(self.series, name) for name in cells.series], np.intp)
        within = np.flatnonzero((cells.row < len(owners)) & (cells.series_index < len(cells.series)))
        row, series = row_of[cells.row[within]], series_of[cells.series_index[within]]
        # Cells of buckets up to and including a border's bucket are below the border.
        slot = np.searchsorted(self._last_buckets, cells.bucket[within], side="left")
        kept = (row >= 0) & (series >= 0)
        np.add.at(self._counts, (row[kept], series[kept], slot[kept]), cells.count[within][kept])

    def keep(self, keys: Iterable[str]) -> None:
        """Forget all but these keys."""
        wanted = set(keys)
        if wanted.issuperset(self._rows):
            return
        kept = [key for key in self._rows if key in wanted]
        at = [self._rows[key] for key in kept]
        self._counts, self._sums_ns = self._counts[at], self._sums_ns[at]
        self._rows = {key: position for position, key in enumerate(kept)}

    def distribution(self, series: str, chosen: Sequence[tuple[str, str]]) -> MetricHistogram:
        """Histograms of one series.

        Args:
            series: one of `series`.
            chosen: key and rendered labels of each row wanted; keys without I/O are left out.
        """
        found = [(self._rows[key], rendered) for key, rendered in chosen if key in self._rows]
        at, which = [row for row, _ in found], self.series.index(series)
        rendered = [labels for _, labels in found]
        return MetricHistogram(rendered, self.borders_s, self._counts[at, which], self._sums_ns[at, which] / 1e9)

    def _positions(self, owners: Sequence[str]) -> NDArray[np.intp]:
        """Row of each owner, -1 for none; rows of new owners are added."""
        for key in owners:
            if key and key not in self._rows:
                self._rows[key] = len(self._rows)
        missing = len(self._rows) - len(self._counts)
        if missing:
            self._counts = np.concatenate([self._counts, np.zeros((missing, *self._counts.shape[1:]), np.uint64)])
            self._sums_ns = np.concatenate([self._sums_ns, np.zeros((missing, len(self.series)))])
        return np.array([self._rows[key] if key else -1 for key in owners], np.intp)


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1


QUANTITIES = ("reads", "writes", "read_sectors", "write_sectors", "read_ms", "write_ms")
"""Columns of the disk table that add up."""


GroupsOfPaths = Callable[[Roles], tuple[Rows, NDArray[np.intp]]]
"""Returns groups, such as HBA ports, and the group of each row of the disk table, -1 for none."""


class PortSums:
    """Sums of the paths of each port, by its key.

    Increases are added, not counters: a path that goes away would make a sum of counters fall, which a server takes
    for a restart and counts everything again.
    """

    def __init__(self, groups: GroupsOfPaths) -> None:
        self._groups = groups
        self._sums: dict[str, Values] = {}

    def add(self, step: Step, roles: Roles) -> None:
        """Add the interval of a step; ports that are gone are forgotten."""
        now = step.current.tables.get("disk")
        ports, port_of_row = self._groups(roles)
        increases = np.zeros((len(ports), len(QUANTITIES)))
        if now is not None and step.previous is not None:
            elapsed_s = interval_s(step.previous, step.current)
            wrap = wrap_limit(step.current.topology.host.long_bits, elapsed_s)
            before = aligned(step.previous.tables.get("disk"), now)
            wanted = [now.schema.index(name) for name in QUANTITIES]
            columns = [now.schema.columns[at] for at in wanted]
            at = roles.path_at[port_of_row[roles.path_at] >= 0]
            old, new = before[at][:, wanted], now.values[at][:, wanted]
            deltas = column_deltas(columns, old, new, elapsed_s=elapsed_s, wrap=wrap)
            for position, name in enumerate(QUANTITIES):
                np.add.at(increases[:, position], port_of_row[at], np.nan_to_num(deltas[name]))
        nothing = np.zeros(len(QUANTITIES))
        keyed = zip(ports.keys, increases, strict=True)
        self._sums = {key: self._sums.get(key, nothing) + increase for key, increase in keyed}

    def column(self, quantity: str) -> dict[str, float]:
        """One quantity by port."""
        at = QUANTITIES.index(quantity)
        return {key: float(values[at]) for key, values in self._sums.items()}
