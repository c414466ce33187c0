"""Histograms of an interval in little memory, shared by all who keep the interval."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from msgspec import Struct

from collectors.model import Histograms, HistogramScale, Rows
from engine import _native

_MOST_AT_ONCE = 1 << 21
"""Cells that the encoder takes."""
_OVERHEAD_BYTES = 200
"""What an object and its bytes take beside the cells."""


class PackedCells(Struct, frozen=True, eq=False):
    """Histograms as a recording stores them: a byte per cell as a rule, in place of 15."""

    scale: HistogramScale
    rows: Rows
    series: tuple[str, ...]
    data: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, without its rows."""
        return sum(map(len, self.data)) + _OVERHEAD_BYTES

    @property
    def histograms(self) -> Histograms:
        """The histograms, their cells in the order of row, series and bucket."""
        parts = zip(*map(_native.decode_cells, self.data), strict=True)
        row, series, bucket, count = (part[0] if len(part) == 1 else np.concatenate(part) for part in parts)
        return Histograms(self.scale, self.rows, self.series, row, series, bucket, count)


@lru_cache(maxsize=8)
def pack_cells(histograms: Histograms) -> PackedCells:
    """Pack histograms; results for the newest ones are kept, so that two histories have the same object."""
    arrays = histograms.row, histograms.series_index, histograms.bucket, histograms.count
    row, series, bucket, count = map(np.ascontiguousarray, arrays)
    parts = [slice(first, first + _MOST_AT_ONCE) for first in range(0, max(1, len(row)), _MOST_AT_ONCE)]
    data = tuple(_native.encode_cells(row[part], series[part], bucket[part], count[part]) for part in parts)
    return PackedCells(histograms.scale, histograms.rows, histograms.series, data)
