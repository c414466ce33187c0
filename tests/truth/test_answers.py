"""Answers of lunscope as a user has them, against files whose law says what is right: `make truth`."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.sweep.limit import Limit
from tests import needs
from tests.kernel.forked_command import lunscope
from tests.truth.law_files import LawFiles, law_files, where_the_law_holds
from tests.unit.rate_search.law_device import Law, true_excess

pytestmark = [needs.law_files, needs.truth, pytest.mark.timeout(1200)]

_MOST_S = 1100.0
_NEAR = 1.05
"""How far the end of an interval may be off."""
KERNEL = ("--tier", "kernel")
CONSTANT, EXPONENTIAL = Law(8, 0.008), Law(8, 0.0088, is_exponential=True)
SLOW_TAIL = Law(8, 0.008, slow_share=0.02, slow_factor=6)
"""2 % take 48 ms at any rate."""


@pytest.fixture
def law(request: pytest.FixtureRequest) -> Law:
    """Law of the file of a test."""
    found: Law = request.param
    return found


@pytest.fixture
def files(law: Law, tmp_path: Path) -> Iterator[LawFiles]:
    """One file, "disk", of that law."""
    with law_files(tmp_path, {"disk": law}) as served:
        yield served


def _sweep(files: LawFiles, *arguments: str) -> dict[str, Any]:
    done = lunscope("sweep", "--target", files.path("disk"), *KERNEL, "--json", *arguments, timeout_s=_MOST_S)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["complete"]
    return document


LAWS = [Law(servers, 0.008, is_exponential=is_exp) for servers in (1, 3, 8, 24) for is_exp in (False, True)]


@pytest.mark.parametrize("law", LAWS, indirect=True, ids=lambda law: f"{law.servers} {law.is_exponential}")
def test_knee_and_servers_are_those_of_the_law(law: Law, files: LawFiles) -> None:
    (curve,) = _sweep(files, "--vary", "qd=1..64")["curves"]
    with where_the_law_holds(files):
        _judge_curve(law, curve)


def _judge_curve(law: Law, curve: dict[str, Any]) -> None:
    found = curve["answer"]
    # With one server the curve is flat, unless it idles while an answer is on its way: then its knee is at 1.
    if law.servers == 1 and found["shape"] == "flat":
        assert found["text"].endswith("use 1")
        assert found["highest_throughput"]["load"] == 1
    else:
        balance = found["best_balance"]
        assert found["shape"] == "knee", found["text"]
        assert abs(math.log2(balance["found"] / law.servers)) <= 0.5, balance
        assert balance["low"] / _NEAR <= law.servers <= balance["high"] * _NEAR, balance
    # It is the lowest load within 3 % of the highest throughput.
    assert 0.94 * law.maximum <= found["highest_throughput"]["iops"] <= 1.03 * law.maximum
    deepest = statistics.median(trial["iops"] for trial in curve["trials"] if trial["load"] == 64)
    assert deepest == pytest.approx(law.maximum, rel=_of_chance(law))
    servers = found["servers"]
    # Where chance alone moves a throughput by 5 %, it is not said; what is said is right.
    assert servers is not None or law.is_exponential, found
    if servers is not None:
        assert servers["count"] == pytest.approx(law.servers, abs=max(0.1, law.servers / 8))
        assert servers["service_us"] == pytest.approx(law.service_s * 1e6, rel=0.08)


def _of_chance(law: Law) -> float:
    """How far a throughput may be off: 2 %, and three standard deviations of the number of I/Os at random."""
    return 0.05 if law.is_exponential else 0.02


@pytest.mark.parametrize(
    ("law", "text"),
    [(CONSTANT, "mean<=16ms"), (CONSTANT, "p99<=45ms"), (EXPONENTIAL, "mean<=15ms"), (EXPONENTIAL, "p99<=100ms")],
    indirect=["law"],
)
def test_rate_within_a_limit_is_that_of_the_law(law: Law, text: str, files: LawFiles) -> None:
    (search,) = _sweep(files, "--slo", text)["open_loop"]["searches"]
    with where_the_law_holds(files):
        _judge_rate(law, Limit.parse(text), search)


def _judge_rate(law: Law, limit: Limit, search: dict[str, Any]) -> None:
    assert search["maximum_iops"] == pytest.approx(law.maximum, rel=0.03 if law.is_exponential else 0.02)
    (answer,) = search["limits"]
    assert answer["verdict"] == "found", answer
    truth = _true_rate(law, limit)
    assert 0.9 * truth <= answer["lower"]["rate"] <= 1.06 * truth, answer
    assert answer["lower"]["rate"] < answer["upper"]["rate"] <= search["maximum_iops"] * 1.001
    assert answer["lower"]["ios"] >= 1000


def _true_rate(law: Law, limit: Limit) -> float:
    low, high = 0.0, law.maximum
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if true_excess(law, limit, middle) <= 1 else (low, middle)
    return low


@pytest.mark.parametrize("law", [SLOW_TAIL, EXPONENTIAL], indirect=True, ids=["slow tail", "exponential"])
def test_limit_that_no_rate_keeps_gets_no_rate(law: Law, files: LawFiles) -> None:
    (search,) = _sweep(files, "--slo", "p99<=30ms")["open_loop"]["searches"]
    (answer,) = search["limits"]
    assert answer["verdict"] == "none_keeps", answer
    assert "no rate keeps it" in answer["text"]
    assert answer["upper"]["over"] > 10
    with where_the_law_holds(files):
        assert search["maximum_iops"] == pytest.approx(law.maximum, rel=0.03)


def _run(files: LawFiles, recording: Path, seconds: int) -> Path:
    times = ("--runtime", f"{seconds}s", "--interval", "0.2", "--record", str(recording))
    done = lunscope(
        "run", "--target", files.path("disk"), "--qd", "16", "--headless", *KERNEL, *times, timeout_s=_MOST_S
    )
    assert done.returncode == 0, done.stderr
    return recording


def _verdicts(before: str | Path, after: str | Path) -> dict[str, str]:
    """What `compare` says of the load, by figure."""
    done = lunscope("compare", str(before), str(after), "--table", "load_total", "--json", timeout_s=_MOST_S)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    return {field["id"]: field["verdict"] for field in row["fields"]}


@pytest.mark.parametrize("law", [CONSTANT, EXPONENTIAL], indirect=True, ids=["constant", "exponential"])
def test_two_halves_of_a_steady_run_do_not_differ(law: Law, files: LawFiles, tmp_path: Path) -> None:
    recording = _run(files, tmp_path / "steady.luns", 40)
    found = _verdicts(f"{recording}@1..20", f"{recording}@20..39")
    with where_the_law_holds(files):
        assert found["iops"] in {"equivalent", "undecided"}
        assert not {"better", "worse", "differs"} & set(found.values()), found


@pytest.mark.parametrize("law", [CONSTANT, EXPONENTIAL], indirect=True, ids=["constant", "exponential"])
def test_a_law_that_changes_is_noticed(law: Law, files: LawFiles, tmp_path: Path) -> None:
    before = _run(files, tmp_path / "before.luns", 20)
    files.change("disk", Law(law.servers, law.service_s * 1.4, is_exponential=law.is_exponential))
    after = _run(files, tmp_path / "after.luns", 20)
    found = _verdicts(before, after)
    assert (found["iops"], found["await_ms"]) == ("worse", "worse"), found
    back = _verdicts(after, before)
    assert (back["iops"], back["await_ms"]) == ("better", "better"), back
