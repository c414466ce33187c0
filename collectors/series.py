"""History of one row of a frame table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """History of one row: wall times of shape (n,), int64, and per field float64 of shape (n,), NaN for gaps."""

    times_ns: NDArray[np.int64]
    values: Mapping[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.times_ns)
