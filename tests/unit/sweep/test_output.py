"""What a sweep prints, and the keys of its JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.statistics.batch_means import Stop
from engine.sweep.axes import parse_axis
from engine.sweep.document import sweep_document
from engine.sweep.knee import answer
from engine.sweep.limit import Limit
from engine.sweep.optimum import CurveReading, Optimum
from engine.sweep.plan import make_plan
from engine.sweep.runner import CurveResult, SweepResult
from engine.sweep.trial import Trial
from tests.unit.documents.printed import printed, unwrapped
from tests.unit.sweep.queue_model import Curve, ModelDevice, bend, corner, flat, sweep

SOFT = bend(24)
LIMITS = (Limit.parse("mean<=750us"), Limit.parse("p99<=1us"))


def _result(*axes: str, curve: Curve = SOFT, **changes: Any) -> SweepResult:
    plan = make_plan(JobSpec(), tuple(map(parse_axis, axes or ("qd=1..256",))), LIMITS)
    curves = []
    for each in plan.curves:
        device = ModelDevice(curve, 1, noise=0.02)
        sweep(device, each.search.loads)
        trials = [replace(trial, **changes) for trial in device.trials]
        curves.append(CurveResult(each, tuple(trials), answer(trials, LIMITS)))
    return SweepResult(plan, tuple(curves), "complete", ("disk b: its I/Os failed",), 90.0)


def _text(result: SweepResult) -> str:
    return printed(result)


def test_text_names_the_optima_with_interval_and_evidence() -> None:
    text = _text(_result())
    assert "- disk b: its I/Os failed" in text.splitlines()
    head = next(line for line in text.splitlines() if line.split()[:1] == ["qd"])
    assert head.split() == ["qd", "IOPS", "+-", "throughput", "mean", "p50", "p99", "p99.9", "I/Os", "n"]
    assert "knee: throughput rises to the knee and stays. Best balance at qd=2" in text
    rows = {line[:22].strip(): line for line in text.splitlines()}
    assert rows["best with p99<=1us"].endswith("no load keeps it")
    assert rows["best with mean<=750us"].split()[3].startswith("1")
    assert {"best balance", "highest throughput"} <= rows.keys()
    for words in ("fit error", "sigma 0.0"):
        assert words in text
    assert "- Little's law holds: I/Os in flight within 0.0 % of IOPS x latency" in text.splitlines()
    assert "noisy" not in text
    assert "not complete" not in text


def test_text_of_a_flat_curve_names_the_load_to_use() -> None:
    text = _text(_result(curve=flat))
    assert "flat: throughput differs by" in text
    assert "no knee: use 1. Load to use at qd=1 " in unwrapped(text)
    assert any(line.startswith("load to use ") for line in text.splitlines())
    assert "best balance" not in text
    assert "highest throughput" not in text


def test_what_a_limit_rests_on_is_said() -> None:
    result = _result(ios=1200)
    assert re.search(r"best with mean<=750us +1\d .* by [123],[0-9]00 I/Os", _text(result))
    document: Any = sweep_document(result, ())
    found = document["curves"][0]["answer"]
    assert found["best_within"][0]["optimum"]["ios"] in {1200, 2400, 3600}
    assert found["best_balance"]["ios"] is None


def test_the_law_of_equal_servers_is_said_where_it_fits() -> None:
    assert re.search(
        r"^- behaves like 8 servers of 0\.(49|50).* ms: 1[56],", _text(_result(curve=corner(8))), re.MULTILINE
    )
    document: Any = sweep_document(_result(curve=corner(8)), ())
    servers = document["curves"][0]["answer"]["servers"]
    assert servers["count"] == 8
    assert servers["service_us"] == pytest.approx(500, rel=0.05)
    assert "behaves like" not in _text(_result())


def test_text_says_what_makes_figures_less_than_they_seem() -> None:
    text = _text(_result(stop=Stop.NOISY, half_width=0.02, in_flight=1000.0))
    assert text.count("noisy") >= 9
    assert "- measurements are noisy, +-2 %: that is how far the IOPS of a load are certain" in unwrapped(text)
    assert "Little's law" in unwrapped(text)
    assert "disk b fails" in _text(_result(failing=("disk b",)))
    result = replace(_result(), ended="load failed: gone")
    assert "not complete: load failed: gone" in _text(result)


def test_set_back_is_said_where_it_changes_the_knob() -> None:
    base = Optimum(CurveReading(2.0, 1e4, 1e5), 2.03, 1, 3)
    assert (base.whole_load, base.is_set_back) == (2, False)
    assert replace(base, at=CurveReading(27.2, 1e4, 1e5), found=30).is_set_back


def test_table_leaves_out_what_measured_fewer_targets() -> None:
    good = [Trial(load, load, 100.0 * load, 1e6) for load in (1, 2, 4, 8)]
    lost = [replace(trial, iops=1.0, failing=("disk b",)) for trial in good[2:]]
    plan = make_plan(JobSpec(), (parse_axis("qd=1..8"),))
    result = SweepResult(
        plan, (CurveResult(plan.curves[0], (*good, *lost), answer((*good, *lost))),), "complete", (), 1.0
    )
    rows = _text(result).split("Points:\n")[1].splitlines()[2:6]
    assert [row.split()[1] for row in rows] == ["100", "200", "400", "800"]


def test_points_without_a_load_axis_are_one_table() -> None:
    lines = _text(_result("bs=4k,8k")).splitlines()
    assert lines[0] == "[Points]"
    assert [line.split()[0] for line in (lines[1], *lines[3:5])] == ["point", "bs=4k", "bs=8k"]


def test_curves_of_several_axes_are_named() -> None:
    assert "[Sweep]" in _text(_result())
    assert "[Sweep: bs=8k]" in _text(_result("qd=1..64", "bs=4k,8k"))


def _numbers(document: object) -> list[float]:
    match document:
        case dict():
            return [number for value in document.values() for number in _numbers(value)]
        case list():
            return [number for value in document for number in _numbers(value)]
        case bool() | str() | None:
            return []
        case _:
            assert isinstance(document, int | float)
            return [float(document)]


@pytest.mark.parametrize("changes", [{}, {"half_width": math.inf}, {"iops": 0.0, "latency_ns": 0.0}])
def test_json_has_its_keys_and_finite_numbers(changes: dict[str, Any]) -> None:
    result = _result("qd=1..64", "bs=4k,8k", **changes)
    document = json.loads(json.dumps(sweep_document(result, ("disk a",)), allow_nan=False))
    assert next(iter(document)) == "schema"
    assert document["schema"] == "lunscope.sweep/1"
    assert list(document) == [
        "schema",
        "version",
        "targets",
        "axes",
        "load",
        "limits",
        "ended",
        "complete",
        "elapsed_s",
        "troubles",
        "curves",
    ]
    assert document["axes"][1] == {"knob": "blocks", "values": ["4k", "8k"]}
    curve = document["curves"][0]
    assert curve["knobs"] == {"blocks": [{"block_bytes": 4096, "percent": 100.0}]}
    assert list(curve["answer"]) == [
        "shape",
        "text",
        "best_balance",
        "best_within",
        "highest_throughput",
        "left_inflection",
        "right_inflection",
        "fit_error",
        "drift",
        "usl",
        "little",
        "noise",
        "host_busy_pct",
        "servers",
    ]
    assert list(curve["trials"][0]) == [
        "load",
        "stage",
        "start_s",
        "duration_s",
        "ios",
        "errors",
        "iops",
        "iops_half_width",
        "bytes_per_s",
        "in_flight",
        "latency_us",
        "stopped_by",
        "steady",
        "trend",
        "failing",
        "targets",
        "hottest",
        "host_cpu_s_per_gb",
        "engine_cpus",
        "engine_share",
        "engine_waiting_share",
        "host_busy_pct",
        "devices",
    ]
    assert all(math.isfinite(number) for number in _numbers(document))


def test_json_of_an_optimum() -> None:
    document: Any = sweep_document(_result(), ())
    found = document["curves"][0]["answer"]
    assert list(found["best_balance"]) == ["load", "found", "low", "high", "set_back", "iops", "latency_us", "ios"]
    assert found["best_balance"]["low"] <= found["best_balance"]["found"] <= found["best_balance"]["high"]
    assert isinstance(found["best_balance"]["load"], int)
    assert [each["limit"] for each in found["best_within"]] == ["mean<=750us", "p99<=1us"]
    assert found["best_within"][1]["optimum"] is None


def test_spread_over_trials_is_in_the_table() -> None:
    trials = [Trial(load, load, 100.0 * load * share, 1e6) for load in (1, 2, 4, 8) for share in (0.8, 1.0, 1.2)]
    plan = make_plan(JobSpec(), (parse_axis("qd=1..8"),))
    result = SweepResult(plan, (CurveResult(plan.curves[0], tuple(trials), answer(trials)),), "complete", (), 1.0)
    rows = _text(result).split("Points:\n")[1].splitlines()
    assert (rows[1].split()[1], rows[2].split()[2]) == ("%", "27")
