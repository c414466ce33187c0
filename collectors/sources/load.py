"""Collector of the counters of lunscope's own load, so that load and devices share one time axis."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from collectors.model import Histograms, HistogramScale, Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.load.schema import LOAD, LOAD_LOGICAL, LOAD_PATH, SLOW_LOAD
from engine.backend.protocol import Cells
from engine.results.histogram import SUB_BITS, UNIT_NS
from engine.running.counter_reader import LayoutReading
from engine.running.status import LoadReading

if TYPE_CHECKING:
    from engine.running.load import Loads

SCALE = HistogramScale(unit_ns=UNIT_NS, sub_bits=SUB_BITS)
SERIES = ("read", "write")
SERVICE = "load_service"
"""Name of the histograms of service times, which an open loop has besides its latencies."""


class LoadCollector:
    """Reads the load of a control, which is owned by the caller and not closed here.

    It is the one caller of the control's `reading` and `take_events`.
    """

    def __init__(self, control: Loads) -> None:
        self._control = control
        self._driving = False
        self._rows = Rows((), ())
        self._path_rows = Rows((), ())
        self._logical_rows = Rows((), ())

    @property
    def target_paths(self) -> tuple[str, ...]:
        """Files and devices that the load drives now; scratch files have no path here."""
        return tuple(name for name in self._rows.names if name.startswith("/")) if self._driving else ()

    def read(self) -> Reading:
        """Read counters and events since the last call; no tables while there is no load."""
        reading = self._control.reading()
        events = self._control.take_events()
        self._driving = reading is not None
        if reading is None:
            return Reading(events=events)
        rows = self._rows_of(reading)
        table = Table(LOAD, rows, reading.values)
        histograms = {LOAD.name: _histograms(rows, reading.cells, 0)}
        if (reading.cells[1] >= len(SERIES)).any():
            histograms[SERVICE] = _histograms(rows, reading.cells, len(SERIES))
        tables = {LOAD.name: table, SLOW_LOAD.name: _slowest(reading), **self._layout_tables(reading.layout)}
        return Reading(tables, histograms, events)

    def _layout_tables(self, layout: LayoutReading | None) -> dict[str, Table]:
        tables: dict[str, Table] = {}
        if layout is not None and len(layout.paths):
            if layout.path_keys is not self._path_rows.keys:
                self._path_rows = Rows(layout.path_keys, layout.path_names)
            tables[LOAD_PATH.name] = Table(LOAD_PATH, self._path_rows, layout.paths)
        if layout is not None and len(layout.logical):
            if layout.logical_keys is not self._logical_rows.keys:
                self._logical_rows = Rows(layout.logical_keys, layout.logical_names)
            tables[LOAD_LOGICAL.name] = Table(LOAD_LOGICAL, self._logical_rows, layout.logical)
        return tables

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _rows_of(self, reading: LoadReading) -> Rows:
        if reading.keys is not self._rows.keys:
            self._rows = Rows(reading.keys, reading.names)
        return self._rows


def _histograms(rows: Rows, cells: Cells, first: int) -> Histograms:
    """Make the histograms of reads and writes; `first` is the series number of reads."""
    row, series, bucket, count = cells
    kept = (series >= first) & (series < first + len(SERIES))
    return Histograms(SCALE, rows, SERIES, row[kept], series[kept] - np.uint8(first), bucket[kept], count[kept])


def _slowest(reading: LoadReading) -> Table:
    """Make the table of the slowest I/Os with their devices."""
    numbers = np.array(reading.device_numbers, np.uint64).reshape(-1, 2)
    values = np.hstack((reading.slowest, numbers[reading.slowest[:, 0].astype(np.intp)]))
    return Table(SLOW_LOAD, _ranks(len(values)), values)


@functools.cache
def _ranks(count: int) -> Rows:
    ranks = tuple(str(rank) for rank in range(count))
    return Rows(ranks, ranks)
