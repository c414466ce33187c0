"""Histograms of an interval in little memory, shared by all who keep the interval."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.model import Histograms, HistogramScale, Rows

_NARROW_ROW, _NARROW_COUNT = np.dtype(np.uint16), np.dtype(np.uint32)
_ROW, _COUNT, _BUCKET, _SERIES = np.dtype(np.uint32), np.dtype(np.uint64), np.dtype(np.uint16), np.dtype(np.uint8)
_OVERHEAD_BYTES = 200
"""Of an object and its bytes beside the cells."""


class PackedCells(Struct, frozen=True, eq=False):
    """Histograms whose four arrays are one string of bytes: 9 per cell as a rule, in place of 15 and four arrays."""

    scale: HistogramScale
    rows: Rows
    series: tuple[str, ...]
    cells: int
    data: bytes
    row_type: np.dtype[Any]
    count_type: np.dtype[Any]

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, without its rows."""
        return len(self.data) + _OVERHEAD_BYTES

    @property
    def histograms(self) -> Histograms:
        """The histograms as they were packed."""
        found: list[NDArray[Any]] = []
        start = 0
        for kind in (self.count_type, self.row_type, _BUCKET, _SERIES):
            found.append(np.frombuffer(self.data, kind, self.cells, start))
            start += found[-1].nbytes
        count, row, bucket, series = found
        return Histograms(self.scale, self.rows, self.series, row.astype(_ROW), series, bucket, count.astype(_COUNT))


@lru_cache(maxsize=8)
def pack_cells(histograms: Histograms) -> PackedCells:
    """Pack histograms; of the newest ones the result is kept, so that two histories have the same object."""
    row_type = _NARROW_ROW if len(histograms.rows) <= np.iinfo(_NARROW_ROW).max else _ROW
    largest = int(histograms.count.max(initial=0))
    count_type = _NARROW_COUNT if largest <= np.iinfo(_NARROW_COUNT).max else _COUNT
    arrays: tuple[NDArray[Any], ...] = (
        histograms.count.astype(count_type),
        # A number beyond the rows must stay one.
        np.minimum(histograms.row, np.iinfo(row_type).max).astype(row_type),
        histograms.bucket,
        histograms.series_index,
    )
    data = b"".join(array.tobytes() for array in arrays)
    return PackedCells(
        histograms.scale, histograms.rows, histograms.series, len(histograms.row), data, row_type, count_type
    )
