"""Frames in little memory: one array per table instead of one per field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from collectors.model import Frame, FrameTable

Number = TypeVar("Number", bound=np.generic)


class PackedColumns(Mapping[str, NDArray[Number]], Generic[Number]):
    """Columns of equal length in one array of shape (fields, rows)."""

    __slots__ = ("_positions", "_values")

    def __init__(self, positions: Mapping[str, int], values: NDArray[Number]) -> None:
        self._positions = positions
        self._values = values

    def __getitem__(self, field_id: str) -> NDArray[Number]:
        column: NDArray[Number] = self._values[self._positions[field_id]]
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


class FramePacker:
    """Packs frames that follow each other; those with the same fields share their names."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, ...], Mapping[str, int]] = {}

    def pack(self, frame: Frame) -> Frame:
        """Make a frame with the same figures."""
        return replace(frame, tables={name: self._table(table) for name, table in frame.tables.items()})

    def _table(self, table: FrameTable) -> FrameTable:
        columns = self._columns(table.columns, len(table.rows), np.float64)
        return FrameTable(table.rows, columns, self._columns(table.tiers, len(table.rows), np.uint8))

    def _columns(self, columns: Mapping[str, NDArray[Number]], rows: int, dtype: type[Number]) -> PackedColumns[Number]:
        names = tuple(columns)
        positions = self._positions.setdefault(names, {name: position for position, name in enumerate(names)})
        packed = np.stack([*columns.values()]) if columns else np.zeros((0, rows), dtype)
        return PackedColumns(positions, packed)
