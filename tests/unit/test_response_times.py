"""Response times in the form of NDISK: shares within limits, and a histogram with given edges, step by step."""

from __future__ import annotations

import pytest

from engine.job.spec import JobSpec, Knobs, TargetSpec
from engine.results.response_times import response_document
from engine.results.result import RunResult
from tests.unit.documents.printed import run_text
from tests.unit.synthetic import SECOND_NS, Io, epoch
from tests.unit.test_result import result_of

LIMITS_S, EDGES_S = (0.005, 0.2), (0.002, 0.005, 0.01)
MS = 1_000_000


def steps(limits_s: tuple[float, ...] = LIMITS_S, edges_s: tuple[float, ...] = EDGES_S) -> RunResult:
    """A step of one fast and three slower I/Os, one of a single slow I/O, and one that never settled."""
    stats = [
        epoch([Io(latency_ns=latency_ns * MS) for latency_ns in (1, 3, 3, 8)], knobs=Knobs(queue_depth=1)),
        epoch([Io(latency_ns=50 * MS)], knobs=Knobs(queue_depth=24), index=1, turned_ns=3 * SECOND_NS),
        epoch([], knobs=Knobs(queue_depth=256), index=2, turned_ns=6 * SECOND_NS, settled=False),
    ]
    job = JobSpec(targets=(TargetSpec("/dev/x"),), response_limits_s=limits_s, response_edges_s=edges_s)
    return result_of(stats, job, ("/dev/x",))


def text_of(result: RunResult) -> str:
    return run_text(result, response_times=response_document(result))


def test_a_row_for_each_step_and_one_for_all() -> None:
    lines = text_of(steps()).splitlines()
    at = lines.index("Response time, share of the I/Os within:")
    assert [line.split() for line in lines[at + 1 : at + 7]] == [
        ["QD", "<=5ms", "<=200ms"],
        ["%", "%"],
        ["1", "75.00", "100.00"],
        ["24", "0.00", "100.00"],
        ["256", "-", "-"],
        ["all", "60.00", "100.00"],
    ]
    at = lines.index("Response time, histogram of the I/Os:")
    assert [line.split() for line in (lines[at + 1], *lines[at + 3 : at + 7])] == [
        ["QD", "<=2ms", "<=5ms", "<=10ms", ">10ms"],
        ["1", "25.00", "50.00", "25.00", "0.00"],
        ["24", "0.00", "0.00", "0.00", "100.00"],
        ["256", "-", "-", "-", "-"],
        ["all", "20.00", "40.00", "20.00", "20.00"],
    ]


def test_rows_of_many_limits_go_on_below_and_fit() -> None:
    limits = (0.0000015, *(0.005 * number for number in range(1, 12)), 1.25, 900.0)
    lines = text_of(steps(limits, ())).splitlines()
    titles = " ".join(line for line in lines if line.split()[:1] == ["QD"])
    assert titles.count("<=") == len(limits)
    assert {"<=1.5us", "<=1.25s", "<=900s"} <= set(titles.split())


def test_nothing_asked_for_is_nothing() -> None:
    assert "Response time" not in text_of(steps((), ()))
    assert response_document(steps((), ())) is None
    document = response_document(steps((0.005,), ()))
    assert document is not None
    assert document["buckets"] == []


def test_the_document_has_counts_that_add_up() -> None:
    document = response_document(steps())
    assert document is not None
    assert document["within"] == [{"limit_s": 0.005, "pct": 60.0}, {"limit_s": 0.2, "pct": 100.0}]
    buckets = document["buckets"]
    assert isinstance(buckets, list)
    assert [(one["above_s"], one["to_s"], one["ios"]) for one in buckets] == [
        (None, 0.002, 1),
        (0.002, 0.005, 2),
        (0.005, 0.01, 1),
        (0.01, None, 1),
    ]
    assert sum(one["pct"] for one in buckets) == pytest.approx(100)
    epochs = document["epochs"]
    assert isinstance(epochs, list)
    assert [one["index"] for one in epochs] == [0, 1, 2]
    assert [one["pct"] for one in epochs[1]["buckets"]] == [0, 0, 0, 100]
    assert {one["pct"] for one in epochs[2]["within"]} == {None}
