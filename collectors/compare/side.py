"""One side of a comparison: its rows with the figures of each, however they were obtained.

Which row of A is which row of B is found by identity, never by a kernel name that another device may have taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from collectors.field import Distribution
from collectors.model import Tier
from engine.statistics.difference import Estimate
from engine.statistics.percentile_difference import HistogramBlocks
from engine.statistics.warmup import Trend

Values = NDArray[np.float64]


class Figure(Struct, frozen=True, eq=False):
    """One figure of one row, in the unit of its field."""

    mean: float
    """Over the whole part; NaN if it is not known."""
    values: Values = field(default_factory=lambda: np.zeros(0))
    """Values by time; none if only the whole is known."""
    weights: Values = field(default_factory=lambda: np.zeros(0))
    estimate: Estimate | None = None
    """What is known of a mean without values by time."""
    tier: Tier = Tier.NONE
    varies: bool = False
    """Whether the tier of its field varies by row, so that it is marked."""
    per_value: int = 1
    """Intervals in each value."""


class Spread(Struct, frozen=True, eq=False):
    """Distribution of a row's latencies in milliseconds."""

    percentiles: Mapping[float, float]
    """Value by percentile, without those for which there are too few I/Os."""
    largest: float
    ios: int


class SideRow(Struct, frozen=True, eq=False):
    """A disk, path, port, target ... of one side."""

    table: str
    key: str
    name: str
    identity: str
    """Persistent id, else the key."""
    figures: Mapping[str, Figure]
    """Figures by field id."""
    histograms: Mapping[Distribution, HistogramBlocks] = field(default_factory=dict)
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    """Spreads by title."""
    is_active: bool = True
    cut_s: float = 0.0
    """What was left out of the beginning because it was warming up or slowing down."""
    trend: Trend = Trend.NONE
    """What it did before the cut, or throughout if nothing was cut."""

    @property
    def key_in_table(self) -> tuple[str, str]:
        """What tells it from all other rows of its side."""
        return self.table, self.key


class Side(Struct, frozen=True, eq=False):
    """What was measured of A or of B."""

    text: str
    """Text as it was typed."""
    kind: str
    """"recording", "run" or "sweep"."""
    rows: tuple[SideRow, ...]
    intervals: int = 0
    """0 for results that hold none."""
    interval_s: float = 0.0
    """Mean length of an interval; 0 without intervals."""
    start_ns: int | None = None
    end_ns: int | None = None
    words: str = ""
    """Words for the part that was taken, if none was typed."""
    tier: Tier = Tier.NONE
    growing: bool = False
    """Whether it is still being recorded."""
    notice: str = ""
    """Damage of the file; empty if there is none."""


_Token = tuple[str, str, str] | None


def _by_key(row: SideRow) -> _Token:
    return row.table, row.key, ""


def _by_identity_and_name(row: SideRow) -> _Token:
    return row.table, row.identity, row.name


def _by_identity(row: SideRow) -> _Token:
    return (row.table, row.identity, "") if row.identity != row.key else None


def _by_name(row: SideRow) -> _Token:
    """Return a token for a row without a persistent identity: a loop device, a scratch file, a target."""
    return (row.table, row.name, "") if row.identity == row.key else None


_TOKENS: tuple[Callable[[SideRow], _Token], ...] = (_by_key, _by_identity_and_name, _by_identity, _by_name)


def matched(a: Sequence[SideRow], b: Sequence[SideRow]) -> list[tuple[SideRow, SideRow]]:
    """Pair the rows that are the same object, in the order of A; one that several rows could be is left out.

    Paths of one LUN share its identity, so that the name counts, too.
    """
    partner: dict[int, int] = {}
    for token in _TOKENS:
        left = _unique(a, token, set(partner))
        right = _unique(b, token, set(partner.values()))
        partner |= {left[found]: right[found] for found in left if found in right}
    return [(a[index], b[partner[index]]) for index in sorted(partner)]


def _unique(rows: Sequence[SideRow], token: Callable[[SideRow], _Token], taken: set[int]) -> dict[_Token, int]:
    found = [(token(row), index) for index, row in enumerate(rows) if index not in taken]
    count = Counter(name for name, _ in found)
    return {name: index for name, index in found if name is not None and count[name] == 1}
