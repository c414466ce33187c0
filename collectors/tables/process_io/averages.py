"""Figures of processes by device over a report."""

from __future__ import annotations

from collectors.graph import Graph
from collectors.model import FrameTable, Step
from collectors.tables.process_io.schema import PROCESS_IO, TABLE
from collectors.tables.process_io.sums import AddedProcesses, device_times, figures, interval_sums, with_heads


class ProcessAverages:
    """Figures over a report."""

    def __init__(self) -> None:
        self._added = AddedProcesses()
        self._graph = Graph()

    def add(self, step: Step) -> None:
        """Add the interval of a step."""
        table = step.current.tables.get(PROCESS_IO.name)
        if step.previous is None or table is None:
            return
        sums = interval_sums(step.previous, step.current, table)
        self._added.add(sums, device_times(step.previous, step.current))
        self._graph = step.current.topology.graph

    def tables(self) -> dict[str, FrameTable]:
        """Figures of all rows that were ever there."""
        sums = self._added.sums()
        return {} if sums is None else {TABLE: figures(with_heads(sums, self._graph))}
