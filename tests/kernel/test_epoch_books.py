"""The books balance in every layout: with mirrors, paths, open loops and storage that fails meanwhile.

Every I/O is in one epoch, measured or transient; what its parts, paths and histograms say adds up to the same.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine._native import LoadEngine, LoadPath, LoadTarget
from engine.backend.protocol import EpochStats, LoadSettings
from engine.job.spec import BlockShare, Knobs, PathPolicy
from tests.kernel.backends import ERRORS, IN_FLIGHT, READS, SKIPPED, WRITES, eventually, filled_file, measuring
from tests.kernel.paths import BACKENDS, PATH_ERRORS, PATH_IN_FLIGHT

MIB = 1 << 20
TARGETS = 4
IOS, BYTES, EPOCH_ERRORS = 0, 1, 5
SERVICE = 2
"""From this direction on cells are of service times."""
_BLOCKS = st.sampled_from([4096, 65536, 3 * 65536]).map(lambda size: (BlockShare(size),))


@dataclass(frozen=True, slots=True)
class Layout:
    """What is fixed for a run."""

    arrival: Literal["closed", "constant", "poisson"]
    copies: int
    paths: int
    total_queue_depth: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """What happens next: other knobs, and what of the storage fails from then on."""

    knobs: Knobs
    broken: frozenset[int]
    pause_s: float


_LAYOUTS = st.builds(
    Layout,
    st.sampled_from(["closed", "constant", "poisson"]),
    st.sampled_from([1, 2]),
    st.integers(1, 3),
    st.booleans(),
)


@st.composite
def turns(draw: st.DrawFn, layout: Layout, files: int) -> Turn:
    closed = layout.arrival == "closed"
    rates = st.sampled_from([300.0, 5000.0])
    knobs = Knobs(
        queue_depth=draw(st.integers(TARGETS, 24)),
        stripe_width=draw(st.sampled_from([layout.copies, TARGETS])),
        blocks=draw(_BLOCKS),
        read_pct=draw(st.sampled_from([0.0, 50.0, 100.0])),
        rate_iops=draw(st.none() | rates if closed else rates),
        threads=draw(st.integers(1, 4)),
        fsync_every=draw(st.none() | st.just(5)),
        policy=draw(st.sampled_from(PathPolicy)),
    )
    broken = draw(st.frozensets(st.integers(0, files - 1), max_size=files // 2))
    return Turn(knobs, broken, draw(st.sampled_from([0.0, 0.01, 0.15])))


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_io_is_in_one_epoch_whatever_the_layout_and_whatever_fails(backend: str, data: st.DataObject) -> None:
    layout = data.draw(_LAYOUTS)
    plan = data.draw(st.lists(turns(layout, TARGETS * layout.paths), min_size=2, max_size=8))
    with tempfile.TemporaryDirectory() as folder:
        files = [filled_file(Path(folder, f"data{number}")) for number in range(TARGETS * layout.paths)]
        with targets_over(files, layout.paths) as targets:
            engine = LoadEngine(
                targets,
                plan[0].knobs,
                LoadSettings(
                    backend="uring" if backend == "uring" else "threads",
                    arrival=layout.arrival,
                    copies=layout.copies,
                    total_queue_depth=layout.total_queue_depth,
                ),
            )
            _follow(engine, plan, files)
    assert engine.fault == ""
    _balances(engine, [turn.knobs for turn in plan], layout.arrival)


@contextmanager
def targets_over(files: list[Path], paths: int) -> Iterator[list[LoadTarget]]:
    """Targets of so many paths each; every path has a file of its own, so that each can fail by itself."""
    with ExitStack() as stack:
        targets = []
        for number in range(TARGETS):
            own = []
            for file in files[number * paths : (number + 1) * paths]:
                fd = os.open(file, os.O_RDWR | os.O_DIRECT)
                stack.callback(os.close, fd)
                own.append(LoadPath(fd, str(file)))
            targets.append(LoadTarget(fd, str(number), MIB, 512, writable=True, paths=own if paths > 1 else ()))
        yield targets


def _follow(engine: LoadEngine, plan: list[Turn], files: list[Path]) -> None:
    """Turn by the plan; a file that is cut off fails every read (a short one) until it is whole again."""
    engine.start()
    for number, turn in enumerate(plan):
        if number:
            engine.apply(turn.knobs)
        for index, file in enumerate(files):
            os.truncate(file, 0 if index in turn.broken else MIB)
        time.sleep(turn.pause_s)
    for file in files:
        os.truncate(file, MIB)
    eventually(lambda: measuring(engine), "the last epoch to be measured")
    assert engine.stop()


def _balances(engine: LoadEngine, plan: list[Knobs], arrival: str) -> None:
    epochs, counters = engine.epochs(), engine.counters().astype(np.int64)
    assert [epoch.knobs for epoch in epochs] == plan
    assert (counters[:, IN_FLIGHT] == 0).all()
    done = int(counters[:, [READS, WRITES]].sum())
    assert _sum(epochs, "counts", IOS) + sum(epoch.transient_ios for epoch in epochs) == done
    _, series, _, cells = engine.cells()
    assert int(cells[series < SERVICE].sum()) == done
    assert int(cells[series >= SERVICE].sum()) == (0 if arrival == "closed" else done)
    assert sum(error[4] for error in engine.errors()) == int(counters[:, ERRORS].sum())
    assert _sum(epochs, "counts", EPOCH_ERRORS) <= int(counters[:, ERRORS].sum())
    assert sum(int(epoch.skipped.sum()) for epoch in epochs if len(epoch.skipped)) <= int(counters[:, SKIPPED].sum())
    for epoch in epochs:
        _epoch_balances(epoch)
    _paths_balance(engine, counters)


def _sum(epochs: Sequence[EpochStats], name: str, column: int) -> int:
    return sum(int(getattr(epoch, name)[:, :, column].sum()) for epoch in epochs)


def _epoch_balances(epoch: EpochStats) -> None:
    counts, logical = epoch.counts.astype(np.int64), epoch.logical_counts.astype(np.int64)
    assert int(epoch.cells[3].sum()) == int(counts[:, :, IOS].sum())
    assert int(epoch.logical_cells[3].sum()) == int(logical[:, :, IOS].sum())
    assert int(epoch.delays[:, 0].sum()) <= int(logical[:, :, IOS].sum())
    if len(epoch.path_counts):
        assert (epoch.path_counts[:, :, [IOS, BYTES]].sum(axis=0) == counts[:, :, [IOS, BYTES]].sum(axis=0)).all()
        assert int(epoch.path_cells[3].sum()) == int(counts[:, :, IOS].sum())
    if len(epoch.service_cells[3]):
        assert int(epoch.service_cells[3].sum()) == int(counts[:, :, IOS].sum())


def _paths_balance(engine: LoadEngine, counters: NDArray[np.int64]) -> None:
    paths = engine.path_counters().astype(np.int64)
    if not len(paths):
        return
    own = [READS, READS + 1, WRITES, WRITES + 1]
    assert (paths[:, own].sum(axis=0) == counters[:, own].sum(axis=0)).all()
    assert (paths[:, PATH_IN_FLIGHT] == 0).all()
    # An I/O that failed on one path was tried on another: only the last attempt is the target's error.
    assert int(paths[:, PATH_ERRORS].sum()) >= int(counters[:, ERRORS].sum())
