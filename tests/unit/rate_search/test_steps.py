"""An open loop at shares of what closed loops reached: its rates, its trials, and how it goes on from its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from collectors.advice.finding import FindingKind
from collectors.advice.of_rates import findings_of_rates
from engine.errors import UsageError
from engine.job.spec import Arrival, JobSpec, Knobs
from engine.rate_search.document import open_loop
from engine.rate_search.plan import RatePlan
from engine.rate_search.runner import RateResult, RateRunner
from engine.rate_search.steps import SHARES, steps_after
from engine.replacing import replace
from engine.study.trial_file import TrialFile
from engine.sweep.axes import parse_axis
from engine.sweep.knee import answer
from engine.sweep.plan import make_plan
from engine.sweep.runner import CurveResult, SweepResult
from engine.sweep.trial import Trial
from tests.unit.documents.printed import printed
from tests.unit.rate_search.fake_open_load import FakeOpenLoad

# Both combinations are served by a queue of 20,000/s.
DEEP = Knobs(queue_depth=64)


def closed(*highest: float) -> SweepResult:
    axes = (parse_axis("qd=1,2"), parse_axis("bs=4k,8k"))[: len(highest)]
    plan = make_plan(JobSpec(), axes)
    trials = [tuple(Trial(load, load, iops * load / 2, 1e6) for load in (1, 2)) for iops in highest]
    curves = (CurveResult(*each, answer(each[1])) for each in zip(plan.curves, trials, strict=True))
    return SweepResult(plan, tuple(curves), "complete", (), 9.0)


def run(plan: RatePlan, **options: Any) -> tuple[RateResult, FakeOpenLoad]:
    load = FakeOpenLoad()
    return RateRunner(plan, load, clock=load.clock, **options).run(), load


def test_each_combination_has_its_own_rates() -> None:
    plan = steps_after(closed(10_000, 2_000), JobSpec(), [("bs=4k", DEEP), ("bs=8k", DEEP)])
    assert plan.job.arrival is Arrival.POISSON
    result, load = run(plan)
    assert result.ended == "complete"
    for curve, highest in zip(result.curves, (10_000, 2_000), strict=True):
        assert [trial.rate for trial in curve.trials] == pytest.approx([highest * share for share in SHARES])
        assert all(trial.iops == pytest.approx(trial.rate, rel=0.01) for trial in curve.trials)
        means = [trial.latencies_ns["mean"] for trial in curve.trials]
        assert means == sorted(means)
    assert [knobs.queue_depth for knobs in load.turns] == [64] * 2 * len(SHARES)


def test_arrivals_that_were_asked_for_stay() -> None:
    job = JobSpec(arrival=Arrival.CONSTANT, knobs=replace(Knobs(), rate_iops=100.0))
    assert steps_after(closed(1_000), job, [("", DEEP)]).job.arrival is Arrival.CONSTANT


def test_rates_that_are_not_carried_are_called_that_and_no_maximum_is_claimed() -> None:
    result, _ = run(steps_after(closed(40_000), JobSpec(), [("", DEEP)]))
    text = printed(result)
    assert "not carried" in next(line for line in text.splitlines() if line.strip().startswith("40,000"))
    assert "not carried" not in next(line for line in text.splitlines() if line.strip().startswith("4,000"))
    assert "maximum" not in text
    (search,) = json.loads(json.dumps(open_loop(result), allow_nan=False))["searches"]
    assert (search["maximum_iops"], search["limits"], {trial["stage"] for trial in search["trials"]}) == (
        None,
        [],
        {"step"},
    )


def test_steps_go_on_from_their_file(tmp_path: Path) -> None:
    plan = steps_after(closed(10_000), JobSpec(), [("", DEEP)])
    with TrialFile(tmp_path / "open", plan) as file:
        whole, _ = run(plan, keep=file.append)
    lines = (tmp_path / "open").read_bytes().splitlines(keepends=True)
    (tmp_path / "open").write_bytes(b"".join(lines[:5]))
    with TrialFile(tmp_path / "open", plan) as file:
        again, load = run(plan, done=tuple(file.done))
    assert len(load.turns) == len(SHARES) - 4
    assert [trial.rate for trial in again.curves[0].trials] == [trial.rate for trial in whole.curves[0].trials]


def test_closed_loops_that_did_nothing_give_no_rates() -> None:
    with pytest.raises(UsageError, match="did no I/O"):
        steps_after(closed(0.0), JobSpec(), [("", DEEP)])


def devices(busy_pct: float, other_pct: float) -> dict[str, Any]:
    rows = [
        {"name": name, "key": name, "targets": ["all targets"], "top": True, "lowest": True, "iops": 100.0}
        | {"busy_pct": busy, "tiers": {"iops": "kernel", "busy_pct": "kernel"}, "members": members}
        for name, busy, members in (("md0", 99.0, ["sda", "sdb"]), ("sda", busy_pct, []), ("sdb", other_pct, []))
    ]
    return {"disks": rows}


def test_the_limit_of_an_open_loop_is_named_where_its_devices_show_it() -> None:
    result, _ = run(steps_after(closed(40_000), JobSpec(), [("", DEEP)]))
    (curve,) = result.curves

    def said(**changes: Any) -> list[FindingKind]:
        trials = tuple(replace(trial, **changes) for trial in curve.trials)
        found = findings_of_rates(replace(result, curves=(replace(curve, trials=trials),)))
        assert all("open loop, rate=" in each.where for each in found)
        return [each.kind for each in found]

    assert said() == [FindingKind.UNKNOWN]
    assert said(devices=devices(40.0, 40.0)) == [FindingKind.UNKNOWN]
    assert said(devices=devices(99.0, 40.0)) == [FindingKind.BUSY_DEVICE]


def test_an_open_loop_that_carries_its_rates_is_limited_by_them() -> None:
    result, _ = run(steps_after(closed(10_000), JobSpec(), [("", DEEP)]))
    assert [each.kind for each in findings_of_rates(result)] == [FindingKind.OWN_RATE]
