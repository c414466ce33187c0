from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.aio.stats import Epoch
from engine.job.spec import Access, Backend, BlockShare, JobSpec, Knobs, TargetSpec
from engine.results.badge import Badge, BadgeKind
from engine.results.measured import Split, combine
from engine.results.result import About, EngineFacts, ErrorCount, RunResult, epoch_result
from engine.results.result_document import run_document
from engine.results.waiting import waiting_share
from tests.unit.synthetic import SECOND_NS, Io, epoch

GOLDEN = Path(__file__).parent / "golden" / "run.json"
FACTS = EngineFacts("uring", "the fastest, and it works here", ("defer_taskrun",))


BADGES = (
    Badge(BadgeKind.UNWRITTEN, "unwritten 75 %", "75 % never written: reads of it are memory", ("/dev/loop7",), 0.75),
)


def result_of(stats: list[Epoch], job: JobSpec, names: tuple[str, ...]) -> RunResult:
    epochs = tuple(epoch_result(one, names, 0, 0) for one in stats)
    parts = [one.split for one in epochs]
    total = Split(*(combine([getattr(part, kind) for part in parts]) for kind in ("read", "write", "total")))
    errors = (ErrorCount(names[0], "read", 5, 8192, 3), ErrorCount(names[0], "write", 0, 4096, 1))
    about = About(job, FACTS, names, ("on tmpfs: measures memory",), BADGES, "runtime", 4.5)
    ios = sum(one.transient_ios + one.split.total.ios for one in epochs)
    return RunResult(about, epochs, total, errors, cpu_ns=ios * 2500, completed_ios=ios)


def two_epochs() -> RunResult:
    """One epoch of 200 reads and 1 write on one target, then one that never settled on two."""
    first = Knobs(queue_depth=8, blocks=(BlockShare(4096, 60.0), BlockShare(16384, 40.0)), read_pct=99.5)
    second = Knobs(queue_depth=8, stripe_width=2, blocks=first.blocks, read_pct=99.5, rate_iops=500.0)
    reads = [Io(latency_ns=1000 * (number + 1), at_s=number / 100) for number in range(200)]
    stats = [
        epoch(
            [*reads, Io(direction=1, length=16384, latency_ns=5_000_000, at_s=1.5)], knobs=first, targets=2, transient=7
        ),
        epoch([], knobs=second, targets=2, index=1, turned_ns=3 * SECOND_NS, transient=4, settled=False),
    ]
    job = JobSpec(
        targets=(TargetSpec("/dev/loop7"), TargetSpec(None)),
        knobs=first,
        access=Access.SEQUENTIAL,
        size_bytes=1 << 20,
        runtime_s=4.5,
        name="golden",
    )
    return result_of(stats, job, ("/dev/loop7", "scratch 1 (1 MiB in /tmp)"))


def test_the_document_has_the_shape_that_was_promised() -> None:
    document = run_document(two_epochs())
    document["engine"]["version"] = "0"  # type: ignore[index]
    assert document == json.loads(GOLDEN.read_text())
    assert next(iter(document)) == "schema"


def blocks(document: Any) -> list[Any]:
    return [document, *document["epochs"], *(target for one in document["epochs"] for target in one["targets"])]


def test_figures_of_the_golden_run() -> None:
    document: Any = run_document(two_epochs())
    measured, unsettled = document["epochs"]
    read = measured["read"]["latency_us"]
    assert (read["min"], read["max"], read["mean"]) == (1.0, 200.0, 100.5)
    assert read["p50"] == pytest.approx(100, rel=0.01)
    assert read["p99"] == pytest.approx(198, rel=0.01)
    assert read["p99_9"] is None
    assert read["avg_peak"] == (100 + 200) / 2
    assert measured["write"]["latency_us"]["p50"] is None
    assert measured["total"]["latency_us"]["avg_peak"] == (100 + 5000) / 2
    assert measured["total"]["iops"] == 201 / 2
    assert unsettled["start_s"] is None
    assert unsettled["total"]["iops"] is None
    assert unsettled["total"]["latency_us"]["mean"] is None
    assert [one["transient_ios"] for one in document["epochs"]] == [7, 4]


IOS = st.lists(
    st.builds(
        Io,
        target=st.integers(0, 2),
        direction=st.integers(0, 1),
        length=st.sampled_from([512, 4096, 65536]),
        latency_ns=st.one_of(st.none(), st.integers(1, 2**42)),
        at_s=st.floats(0, 4.9),
    ),
    max_size=60,
)


@pytest.mark.slow
@given(st.lists(st.tuples(IOS, st.booleans(), st.floats(0.001, 5)), min_size=1, max_size=4))
def test_epochs_targets_and_directions_add_up_exactly(parts: list[tuple[list[Io], bool, float]]) -> None:
    stats = [
        epoch(
            sorted(ios, key=lambda io: io.at_s),
            knobs=Knobs(stripe_width=3),
            targets=3,
            index=index,
            duration_s=seconds,
            settled=settled,
        )
        for index, (ios, settled, seconds) in enumerate(parts)
    ]
    result = result_of(stats, JobSpec(targets=(TargetSpec(),) * 3), ("a", "b", "c"))
    text = json.dumps(run_document(result), allow_nan=False)
    document: Any = json.loads(text)
    done = [io for ios, settled, _ in parts if settled for io in ios if io.latency_ns is not None]
    for figure, expected in (("ios", len(done)), ("bytes", sum(io.length for io in done))):
        assert document["total"][figure] == expected
        for holder in blocks(document):
            assert holder["read"][figure] + holder["write"][figure] == holder["total"][figure]
        for direction in ("read", "write", "total"):
            epochs = document["epochs"]
            assert sum(one[direction][figure] for one in epochs) == document[direction][figure]
            for one in epochs:
                assert sum(target[direction][figure] for target in one["targets"]) == one[direction][figure]
    if done:
        latency = document["total"]["latency_us"]
        assert latency["max"] == round(max(io.latency_ns or 0 for io in done) / 1000, 3)
        assert latency["min"] <= latency["mean"] <= latency["max"]
    assert result.total.total.errors == sum(
        1 for ios, settled, _ in parts if settled for io in ios if io.latency_ns is None
    )


@pytest.mark.slow
@given(IOS)
def test_percentiles_of_all_epochs_are_those_of_the_merged_histogram(ios: list[Io]) -> None:
    ios = sorted(ios, key=lambda io: io.at_s)
    together = result_of([epoch(ios, targets=3)], JobSpec(), ("a", "b", "c")).total.total
    halves = [epoch(ios[::2], targets=3), epoch(ios[1::2], targets=3)]
    split = result_of(halves, JobSpec(), ("a", "b", "c")).total.total
    for percent in (50, 90, 99):
        assert split.percentile_ns(percent) == together.percentile_ns(percent)


def test_waits_to_wake_up_for_a_rate_are_no_share_of_the_few_ios_outstanding() -> None:
    paced, free = (epoch_result(epoch([Io()], knobs=Knobs(rate_iops=rate)), ("x",), 0, 0) for rate in (10.0, None))
    assert waiting_share(free, Backend.THREADS) == 1.0
    assert waiting_share(paced, Backend.THREADS) == pytest.approx(100_500 / 2 / SECOND_NS)
    assert waiting_share(paced, Backend.URING) == waiting_share(free, Backend.URING)
