"""History of one row of a frame table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class Series(Struct, frozen=True, eq=False):
    """History of one row: wall times of shape (n,), int64, and per field float64 of shape (n,), NaN for gaps."""

    times_ns: NDArray[np.int64]
    values: Mapping[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.times_ns)
