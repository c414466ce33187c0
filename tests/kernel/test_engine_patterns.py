"""Distributions, mixes per direction, streams and full coverage, as they land on a file."""

from __future__ import annotations

import math
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.backend.protocol import LoadBackend
from engine.job.distribution import Distribution, Normal, Pareto, Permutation, Zipf, Zone, Zones, locality
from engine.job.spec import BlockShare, Knobs
from tests.kernel.backends import (
    BACKENDS,
    NATIVE,
    READ_BYTES,
    READS,
    WRITE_BYTES,
    WRITES,
    empty_file,
    eventually,
    filled_file,
    ios,
    knobs_of,
    make_engine,
    opened,
    running,
)

MIB = 1 << 20
BLOCK = 4096
"""The aio engine draws evenly only."""


def _sequences(path: Path, block_bytes: int = BLOCK) -> dict[int, int]:
    """Number of the last write of every block that was written."""
    content = path.read_bytes()
    stamps = {offset: struct.unpack_from("<QQ", content, offset) for offset in range(0, len(content), block_bytes)}
    return {offset // block_bytes: sequence for offset, (_, sequence) in stamps.items() if sequence}


def _written(backend: str, path: Path, knobs: Knobs, count: int, **settings: Any) -> tuple[dict[int, int], int]:
    """Blocks that a load of writes left behind, and how many writes there were."""
    empty_file(path, 4 * MIB)
    with (
        opened(path, size_bytes=4 * MIB, writable=True) as targets,
        running(backend, targets, knobs, **settings) as engine,
    ):
        eventually(lambda: ios(engine) >= count, f"{count} writes")
    return _sequences(path), ios(engine)


def _writes(distribution: Distribution, **others: Any) -> Knobs:
    return knobs_of(4, read_pct=0.0, distribution=distribution, **others)


@pytest.mark.parametrize("backend", NATIVE)
def test_a_permutation_visits_every_block_once_before_any_again(backend: str, tmp_path: Path) -> None:
    blocks = 4 * MIB // BLOCK
    seen, count = _written(backend, tmp_path / "data", _writes(Permutation(), rate_iops=2000.0), 300)
    assert count < blocks, "one pass took less time than one read of the counter"
    assert len(seen) == count
    halves = Counter(block >= blocks // 2 for block in seen)
    assert abs(halves[True] - halves[False]) < 5 * math.sqrt(count)
    everywhere, _ = _written(backend, tmp_path / "data", _writes(Permutation()), blocks)
    assert set(everywhere) == set(range(blocks))


@pytest.mark.parametrize("backend", NATIVE)
def test_a_permutation_covers_a_stripe_too(backend: str, tmp_path: Path) -> None:
    paths = [empty_file(tmp_path / f"data{number}", 4 * MIB) for number in range(2)]
    depth = 4
    knobs = knobs_of(depth, 131072, stripe_width=2, read_pct=0.0, distribution=Permutation(), threads=2)
    with (
        opened(*paths, size_bytes=4 * MIB, writable=True) as targets,
        running(backend, targets, knobs, stripe_unit_bytes=65536) as engine,
    ):
        eventually(lambda: ios(engine) >= 2 * 64 + 8, "one pass of 64 blocks, in halves")
    for path in paths:
        # What was outstanding when the load was stopped may be of the first pass, where a thread did not run meanwhile.
        assert len(set(range(64)) - set(_sequences(path, 65536))) <= depth


@pytest.mark.parametrize("backend", NATIVE)
@pytest.mark.parametrize(
    ("distribution", "first_half"),
    [
        (Zones((Zone(90, 10), Zone(10, 90))), 0.9 + 0.1 * 40 / 90),
        (locality([25.0, 0.0, 75.0, 0.0]), 0.25),
        (Normal(5.0, 25.0), 1.0),
    ],
)
def test_writes_go_where_the_distribution_says(
    backend: str, distribution: Distribution, first_half: float, tmp_path: Path
) -> None:
    """The first write of many loads is looked at: later ones would cover earlier ones."""
    path = empty_file(tmp_path / "data", 4 * MIB)
    knobs = Knobs(read_pct=0.0, distribution=distribution, rate_iops=1.0)
    low = 0
    with opened(path, size_bytes=4 * MIB, writable=True) as targets:
        for seed in range(40):
            engine = make_engine(backend, targets, knobs, seed=seed)
            low += _first_writes_below(engine, path, 2 * MIB)
    expected = 40 * first_half
    assert abs(low - expected) <= 5 * math.sqrt(40 * first_half * (1 - first_half)) + 1e-9


def _first_writes_below(engine: LoadBackend, path: Path, bound: int) -> int:
    """Whether the first write of a load lies below an offset."""
    engine.start()
    eventually(lambda: ios(engine) >= 1, "a write")
    assert engine.stop()
    (block,) = _sequences(path)
    empty_file(path, 4 * MIB)
    return int(block * BLOCK < bound)


@pytest.mark.parametrize("backend", NATIVE)
@pytest.mark.parametrize("distribution", [Zipf(1.3), Pareto(0.1)])
def test_skewed_loads_touch_few_blocks_all_over_the_space(
    backend: str, distribution: Distribution, tmp_path: Path
) -> None:
    count = 1500
    seen, done = _written(backend, tmp_path / "data", _writes(distribution, rate_iops=5000.0), count)
    blocks = 4 * MIB // BLOCK
    # Even draws would touch 1 - e^(-done/blocks) of the blocks.
    assert len(seen) < 0.75 * blocks * (1 - math.exp(-done / blocks))
    assert min(seen) < blocks // 8
    assert max(seen) >= blocks - blocks // 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_direction_has_its_own_sizes(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    shares = (BlockShare(8192, 75.0), BlockShare(32768, 25.0))
    knobs = Knobs(queue_depth=4, blocks=(BlockShare(4096),), write_blocks=shares, read_pct=50.0)
    with opened(path, size_bytes=MIB, writable=True) as targets, running(backend, targets, knobs) as engine:
        eventually(lambda: ios(engine) >= 3000, "3000 I/Os")
    counters = engine.counters()[0].astype(np.int64)
    assert counters[READ_BYTES] == 4096 * counters[READS]
    writes = int(counters[WRITES])
    large = (int(counters[WRITE_BYTES]) - 8192 * writes) / (32768 - 8192) / writes
    assert abs(large - 0.25) < 5 * math.sqrt(0.25 * 0.75 / writes)


@pytest.mark.parametrize("backend", NATIVE)
def test_streams_take_turns_in_their_slices(backend: str, tmp_path: Path) -> None:
    knobs = knobs_of(1, read_pct=0.0)
    seen, count = _written(backend, tmp_path / "data", knobs, 40, sequential=True, streams=4)
    each = 4 * MIB // BLOCK // 4
    expected = {stream * each + place for place in range(each) for stream in range(4) if place * 4 + stream < count}
    assert set(seen) == expected


@pytest.mark.parametrize("backend", NATIVE)
def test_a_distribution_turns_live_and_opens_an_epoch(backend: str, tmp_path: Path) -> None:
    path = empty_file(tmp_path / "data", 4 * MIB)
    with (
        opened(path, size_bytes=4 * MIB, writable=True) as targets,
        running(backend, targets, _writes(locality([100.0, 0.0]))) as engine,
    ):
        eventually(lambda: ios(engine) >= 500, "writes into the first half")
        assert max(_sequences(path)) < 2 * MIB // BLOCK
        assert engine.apply(_writes(locality([0.0, 100.0]))) == 1
        before = ios(engine)
        eventually(lambda: ios(engine) >= before + 500, "writes into the second half")
        assert max(_sequences(path)) >= 2 * MIB // BLOCK


@pytest.mark.parametrize("backend", NATIVE)
@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        (knobs_of(distribution=Permutation(), write_distribution=Zipf(1.0)), "alike"),
        (
            Knobs(blocks=(BlockShare(4096, 50.0), BlockShare(8192, 50.0)), distribution=Permutation()),
            "needs one block size",
        ),
        (knobs_of(distribution=Zipf(0.0)), r"distribution zipf \[0.0\] is out of range"),
        (knobs_of(distribution=Zones(())), r"distribution zones \[\] is out of range"),
    ],
)
def test_patterns_that_cannot_be_had_are_refused(backend: str, knobs: Knobs, words: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets, pytest.raises(ValueError, match=words):
        make_engine(backend, targets, knobs)


@pytest.mark.parametrize("backend", NATIVE)
def test_more_streams_than_there_is_room_for(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets:
        with pytest.raises(ValueError, match="less than two blocks of 65536"):
            make_engine(backend, targets, knobs_of(block_bytes=65536), sequential=True, streams=9)
        with pytest.raises(ValueError, match=r"streams 0 is not in 1\.\.1024"):
            make_engine(backend, targets, knobs_of(), sequential=True, streams=0)


def test_the_aio_engine_says_what_it_cannot_draw(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets:
        for knobs in (knobs_of(distribution=Zipf(1.1)), knobs_of(write_distribution=locality([50, 50]))):
            with pytest.raises(ValueError, match="draws offsets evenly only: use the uring or threads engine"):
                make_engine("aio", targets, knobs)
