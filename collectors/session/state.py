"""Codec state of the tables of one tick, the base of the next one, in encoder and decoder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.model import Rows, Schema
from engine._native import TableCodec


@dataclass(slots=True)
class _Held:
    schema: Schema
    rows: Rows
    codec: TableCodec


class TickState:
    """Values by table; writer and reader apply the same steps to it."""

    def __init__(self) -> None:
        self._tables: dict[str, _Held] = {}

    @property
    def cells(self) -> int:
        """Numbers in all tables."""
        return sum(len(held.rows) * len(held.schema.columns) for held in self._tables.values())

    def copy(self) -> TickState:
        """Return an independent copy."""
        other = TickState()
        other._tables = {name: _Held(held.schema, held.rows, held.codec.copy()) for name, held in self._tables.items()}
        return other

    def codec(self, schema: Schema, rows: Rows) -> TableCodec:
        """Return the codec of a table for these rows, with the values of rows that existed before.

        Raises:
            ValueError: more cells than a table may have.
        """
        held = self._tables.get(schema.name)
        if held is None or held.schema != schema:
            codec = TableCodec(len(rows), len(schema.columns))
        elif held.rows is rows or held.rows.keys == rows.keys:
            codec = held.codec
        else:
            codec = held.codec.rearranged(_sources(held.rows, rows))
        self._tables[schema.name] = _Held(schema, rows, codec)
        return codec

    def keep(self, names: Iterable[str]) -> None:
        """Drop all tables but these."""
        wanted = set(names)
        self._tables = {name: held for name, held in self._tables.items() if name in wanted}

    def settle(self) -> None:
        """To be called by both sides after a tick that was not encoded against the previous one."""
        for held in self._tables.values():
            held.codec.settle()


def _sources(old: Rows, new: Rows) -> NDArray[np.int64]:
    positions = {key: position for position, key in enumerate(old.keys)}
    return np.fromiter((positions.get(key, -1) for key in new.keys), np.int64, len(new))
