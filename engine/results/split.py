"""The same I/Os by direction and together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.backend.protocol import EpochStats
from engine.results.levels import LevelStats
from engine.results.measured import BOTH, READ, WRITE, Measured, combine, measure


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Reads, writes, and both."""

    read: Measured
    write: Measured
    total: Measured


def split_of(stats: EpochStats | LevelStats, row: int | None) -> Split:
    """Cut one row (None: all) out of the statistics of an epoch or one of its levels."""
    return Split(measure(stats, row, READ), measure(stats, row, WRITE), measure(stats, row, BOTH))


def combine_splits(parts: Sequence[Split]) -> Split:
    """Add up epochs, or any other parts that share no second."""
    return Split(
        combine([part.read for part in parts]),
        combine([part.write for part in parts]),
        combine([part.total for part in parts]),
    )
