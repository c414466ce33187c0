"""A tracer whose counters the test moves, and which can go away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.exact.tracer import PROCESS_COLUMNS, SLOW_COLUMNS, Cells, ProcessIos
from collectors.model import Kind
from collectors.tables.block.schema import TRACE

_PEAKS = [place for place, column in enumerate(TRACE.columns) if column.kind is Kind.PEAK]
Cell = tuple[int, int, int, int]


class HandTracer:
    """Rows are added by name and number; `grow` adds to counters and sets gauges and peaks."""

    def __init__(self) -> None:
        self.generation = 0
        self.trouble = ""
        self.closed = 0
        self.groups: list[list[str]] = []
        self.group_values: list[list[int]] = []
        self.tag_wait: list[bool] = []
        self.rescans = 0
        self.lost: dict[str, int] = {}
        self._names: list[str] = []
        self._numbers: list[tuple[int, int]] = []
        self._values = np.zeros((0, len(TRACE.columns)), np.uint64)
        self._cells: list[Cell] = []
        self._slow: list[dict[str, int]] = []
        self._commands: list[str] = []
        self._processes: list[list[int]] = []
        self._process_cells: list[tuple[int, int, int]] = []

    def add(self, name: str, major: int, minor: int, **counters: int) -> int:
        """A device that did its first I/O."""
        self._names.append(name)
        self._numbers.append((major, minor))
        self._values = np.vstack([self._values, np.zeros((1, len(TRACE.columns)), np.uint64)])
        self.generation += 1
        self.grow(len(self._names) - 1, **counters)
        return len(self._names) - 1

    def grow(self, row: int, **counters: int) -> None:
        for name, value in counters.items():
            place = TRACE.index(name)
            counts = TRACE.columns[place].kind is Kind.COUNTER
            self._values[row, place] = int(self._values[row, place]) * counts + value

    def finish(self, row: int, series: int, bucket: int, count: int = 1) -> None:
        self._cells.append((row, series, bucket, count))

    def slow(self, row: int, command: str = "", **values: int) -> None:
        self._slow.append({"row": row, **values})
        self._commands.append(command)

    def process(self, row: int, command: str, cells: Mapping[int, int] | None = None, **values: int) -> None:
        """What a process did on a device since the last reading; histogram cells by bucket."""
        words = np.frombuffer(command.encode().ljust(32, b"\0"), "<u8").tolist()
        known = {"row": row, "kind": 1, **{f"command_{at}": word for at, word in enumerate(words)}, **values}
        self._process_cells += [(len(self._processes), bucket, count) for bucket, count in (cells or {}).items()]
        self._processes.append([known.get(name, 0) for name in PROCESS_COLUMNS])

    def processes(self) -> ProcessIos:
        rows, cells = self._processes, self._process_cells
        self._processes, self._process_cells = [], []
        return np.array(rows, np.uint64).reshape(-1, len(PROCESS_COLUMNS)), np.array(cells, np.uint64).reshape(-1, 3)

    def _check(self) -> None:
        if self.trouble:
            raise OSError(5, self.trouble)

    def names(self) -> list[str]:
        return self._names

    def numbers(self) -> NDArray[np.uint32]:
        return np.array(self._numbers, np.uint32).reshape(-1, 2)

    def read(self) -> NDArray[np.uint64]:
        self._check()
        values = self._values.copy()
        self._values[:, _PEAKS] = 0
        return values

    def cells(self) -> Cells:
        cells, self._cells = np.array(self._cells, np.int64).reshape(-1, 4), []
        types = (np.uint32, np.uint8, np.uint16, np.uint64)
        row, series, bucket, count = (column.astype(kind) for column, kind in zip(cells.T, types, strict=True))
        return row, series, bucket, count

    def regroup(self, groups: Sequence[Sequence[str]]) -> None:
        self.groups = [list(members) for members in groups]
        self.group_values = [[0, 0] for _ in groups]

    def read_groups(self) -> NDArray[np.uint64]:
        return np.array(self.group_values, np.uint64).reshape(-1, 2)

    def watch_tag_wait(self, on: bool) -> None:
        self.tag_wait.append(on)

    def rescan(self) -> None:
        self.rescans += 1

    def slowest(self) -> tuple[NDArray[np.uint64], list[str]]:
        rows = [[one.get(name, 0) for name in SLOW_COLUMNS] for one in self._slow]
        commands, self._slow, self._commands = self._commands, [], []
        return np.array(rows, np.uint64).reshape(-1, len(SLOW_COLUMNS)), commands

    def losses(self) -> Mapping[str, int]:
        return self.lost

    def close(self) -> None:
        self.closed += 1
