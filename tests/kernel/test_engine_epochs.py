"""Whatever knobs are turned, every I/O is in exactly one epoch or its transient."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.backend.protocol import LoadBackend
from engine.job.distribution import Distribution, Normal, Permutation, Uniform, Zipf, hot_and_cold, locality
from engine.job.spec import BlockShare, Knobs, Mode
from tests.kernel.backends import (
    BACKENDS,
    IN_FLIGHT,
    READ_BYTES,
    READS,
    WRITE_BYTES,
    WRITES,
    filled_file,
    ios,
    make_engine,
    measuring,
    opened,
)

MIB = 1 << 20
_SIZES = st.sampled_from([512, 4096, 12288, 65536])
_MIXES = _SIZES.map(lambda size: (BlockShare(size),)) | st.just((BlockShare(4096, 60.0), BlockShare(16384, 40.0)))
_SHAPES: list[Distribution] = [Uniform(), Zipf(1.1), Normal(10.0), hot_and_cold(90, 10), locality([50, 30, 20])]


@st.composite
def knobs(draw: st.DrawFn, *, plain: bool) -> Knobs:
    """Any knobs that two files of 1 MiB can take, or only those of the aio engine."""
    shapes = st.just(Uniform()) if plain else st.sampled_from(_SHAPES)
    modes = [mode for mode in Mode if mode.is_direct or not plain]
    turned = Knobs(
        queue_depth=draw(st.integers(1, 20)),
        stripe_width=draw(st.integers(1, 2)),
        blocks=draw(_MIXES),
        read_pct=draw(st.sampled_from([0.0, 30.0, 100.0])),
        rate_iops=draw(st.none() | st.sampled_from([500.0, 20_000.0])),
        write_blocks=draw(st.none() | _MIXES),
        distribution=draw(shapes),
        write_distribution=draw(st.none() | shapes),
        mode=draw(st.sampled_from(modes)),
        threads=draw(st.integers(1, 5)),
        fsync_every=None if plain else draw(st.none() | st.sampled_from([1, 7])),
    )
    if not plain and len(turned.blocks) == 1 and draw(st.booleans()):
        return Knobs(turned.queue_depth, turned.stripe_width, turned.blocks, 100.0, distribution=Permutation())
    return turned


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_epochs_and_transients_add_up_to_the_totals(backend: str, data: st.DataObject) -> None:
    turns = data.draw(st.lists(knobs(plain=backend == "aio"), min_size=2, max_size=12))
    pauses_s = data.draw(st.lists(st.sampled_from([0.0, 0.002, 0.15]), min_size=len(turns), max_size=len(turns)))
    with tempfile.TemporaryDirectory() as folder:
        paths = [filled_file(Path(folder, f"data{number}")) for number in range(2)]
        with opened(*paths, size_bytes=MIB, writable=True, direct=turns[0].mode.is_direct) as targets:
            engine = make_engine(backend, targets, turns[0])
            engine.start()
            for turn, pause_s in zip(turns[1:], pauses_s, strict=False):
                time.sleep(pause_s)
                engine.apply(turn)
            _wait_until_measuring(engine)
            assert engine.stop()
    assert engine.fault == ""
    assert engine.errors() == []
    _adds_up(engine, turns)


def _wait_until_measuring(engine: LoadBackend) -> None:
    deadline_s = time.monotonic() + 20
    while not measuring(engine) and time.monotonic() < deadline_s:
        time.sleep(0.002)


def _adds_up(engine: LoadBackend, turns: list[Knobs]) -> None:
    epochs, counters = engine.epochs(), engine.counters().astype(np.int64)
    assert [epoch.knobs for epoch in epochs] == turns
    assert (counters[:, IN_FLIGHT] == 0).all()
    measured = sum(epoch.counts[:, :, 0].astype(np.int64) for epoch in epochs)
    assert (measured <= counters[:, [READS, WRITES]]).all()
    assert int(np.sum(measured)) + sum(epoch.transient_ios for epoch in epochs) == ios(engine)
    assert int(engine.cells()[3].sum()) == ios(engine)
    for epoch in epochs:
        _holds_only_its_own(epoch.knobs, epoch.counts.astype(np.int64))
        assert int(epoch.cells[3].sum()) == int(epoch.counts[:, :, 0].sum())
    for column, direction in ((READ_BYTES, 0), (WRITE_BYTES, 1)):
        assert sum(int(epoch.counts[:, direction, 1].sum()) for epoch in epochs) <= counters[:, column].sum()


def _holds_only_its_own(turned: Knobs, counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
    """What an epoch counted can have come of its knobs alone."""
    assert (counts[turned.stripe_width :] == 0).all()
    for direction, share, blocks in (
        (0, turned.read_pct, turned.blocks),
        (1, 100 - turned.read_pct, turned.drawn_write_blocks),
    ):
        done, moved = int(counts[:, direction, 0].sum()), int(counts[:, direction, 1].sum())
        assert share > 0 or done == 0
        sizes = [one.block_bytes for one in blocks]
        # Blocks beyond one stripe unit, or that do not divide it, fan out into parts.
        if turned.stripe_width == 1 or all(65536 % size == 0 for size in turned.block_sizes):
            assert min(sizes) * done <= moved <= max(sizes) * done
