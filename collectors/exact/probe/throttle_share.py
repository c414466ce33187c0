"""Waits for limits of control groups, timed by one program for all readers of the probe helper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectors.exact.probe.message import Message
from collectors.exact.probe.share import ProgramShare
from collectors.sampling.throttle_program import CELL_COLUMNS, ThrottleProgram

MOST_CELLS = 1 << 16
"""Histogram cells of one reader before equal ones are merged."""


class ThrottleShare(ProgramShare[ThrottleProgram, list[NDArray[np.uint64]]]):
    """The programs on the block throttle."""

    WHAT = "waits for limits"

    def answer(self, reader: object) -> Message:
        """Return all waits since attaching, and what histograms have grown since this reader's last request."""
        program = self._attached()
        self._untaken.setdefault(reader, [])
        rows, cells = program.read()
        for kept in self._untaken.values():
            _keep(kept, cells)
        mine, self._untaken[reader] = self._untaken[reader], []
        head = {"error": "", "losses": list(program.losses())}
        return Message(head, {"waits": rows, "cells": np.concatenate([_no_cells(), *mine])})

    def kept_cells(self, reader: object) -> int:
        """Count the histogram cells that a reader has not taken."""
        return sum(map(len, self._untaken.get(reader, ())))


def _no_cells() -> NDArray[np.uint64]:
    return np.zeros((0, CELL_COLUMNS), np.uint64)


def _keep(kept: list[NDArray[np.uint64]], cells: NDArray[np.uint64]) -> None:
    """Add cells to those of a reader; equal ones are merged once they are many."""
    if not len(cells):
        return
    kept.append(cells)
    if len(kept) > 1 and sum(map(len, kept)) > MOST_CELLS:
        kept[:] = [_merged(np.concatenate(kept))]


def _merged(cells: NDArray[np.uint64]) -> NDArray[np.uint64]:
    places, cell_of = np.unique(cells[:, :2], axis=0, return_inverse=True)
    count = np.zeros(len(places), np.uint64)
    np.add.at(count, cell_of.reshape(-1), cells[:, 2])
    return np.column_stack([places, count])
