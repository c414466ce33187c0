"""A search from its first trial to what it prints, in simulated time."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import UsageError
from engine.job.spec import Arrival, Backend, JobSpec
from engine.rate_search.answer import RateVerdict
from engine.rate_search.document import open_loop, rate_document
from engine.rate_search.plan import RatePlan, RateRange, make_rate_plan
from engine.rate_search.runner import RateResult, RateRunner
from engine.rate_search.trial import RateTrial
from engine.replacing import replace
from engine.study.trial_file import TrialFile
from engine.sweep.limit import Limit
from tests.unit.documents.printed import printed
from tests.unit.rate_search.fake_open_load import FakeOpenLoad

# P(T > t) = exp(-(mu - lambda) t) with mu = 20,000/s.
P99 = Limit.parse("p99<=2ms")
P99_RATE = 17_697


def _plan(*limits: str, **options: Any) -> RatePlan:
    return make_rate_plan(JobSpec(), tuple(map(Limit.parse, limits or (P99.text,))), **options)


def _run(load: FakeOpenLoad, plan: RatePlan | None = None, **options: Any) -> RateResult:
    return RateRunner(plan or _plan(), load, clock=load.clock, **options).run()


def test_search_over_a_load_finds_the_rate_and_says_so() -> None:
    notes: list[tuple[str, Any]] = []
    load = FakeOpenLoad()
    result = _run(load, note=lambda text, data: notes.append((text, data)))
    (answer,) = result.curves[0].answers.limits
    assert (result.ended, result.troubles, answer.verdict) == ("complete", (), RateVerdict.FOUND)
    assert answer.lower is not None
    assert answer.lower.rate == pytest.approx(P99_RATE, rel=0.05)
    assert result.elapsed_s <= 180
    text = printed(result)
    for words in ("[Open loop]", "I/Os arrive (poisson)", "p99<=2ms: 16,", "IOPS keep it", "conditional throughput"):
        assert words in text
    assert "caution" not in text
    assert [data["rate_search"] for _, data in notes] == ["begin", *["trial"] * len(result.curves[0].trials), "end"]


def test_trials_at_the_same_rate_follow_each_other_without_a_turn() -> None:
    load = FakeOpenLoad()
    trials = _run(load).curves[0].trials
    rates = [knobs.rate_iops for knobs in load.turns]
    assert all(one != other for one, other in itertools.pairwise(rates))
    assert len(load.turns) < len(trials) / 2
    assert load.epochs == len(load.turns) + len(trials)


def test_document_is_json_with_bounds_in_order() -> None:
    result = _run(FakeOpenLoad(), _plan("p99<=2ms", "p50<=1us", "p99.9<=10s", rates=RateRange(100.0, 12_000.0)))
    document = json.loads(json.dumps(rate_document(result, ("disk a",)), allow_nan=False))
    assert document["schema"] == "lunscope.sweep/1"
    assert document["curves"] == []
    (search,) = document["open_loop"]["searches"]
    assert search["maximum_iops"] == 12_000
    assert search["maximum_is_capped"]
    verdicts = {each["limit"]: each["verdict"] for each in search["limits"]}
    assert verdicts == {"p99<=2ms": "all_keep", "p50<=1us": "none_keeps", "p99.9<=10s": "all_keep"}
    text = printed(result)
    assert "even the highest rate asked for keeps it, 12,000 IOPS" in text
    assert "no rate keeps it: not even 100 IOPS, the lowest tried" in text
    assert all(trial["rate"] >= 100 for trial in search["trials"])


def test_stop_keeps_what_was_measured_and_says_undecided() -> None:
    load = FakeOpenLoad()
    kept: list[RateTrial] = []
    runner = RateRunner(_plan(), load, lambda _curve, trial: kept.append(trial), clock=load.clock)
    load.on_wait = lambda: runner.stop() if len(kept) == 20 else None
    result = runner.run()
    assert result.ended == "stopped"
    assert result.curves[0].trials == tuple(kept)
    assert len(kept) == 20
    assert "- not complete: stopped; 20 trials were made" in printed(result).splitlines()
    assert "undecided" in printed(result)
    json.dumps(open_loop(result), allow_nan=False)


def test_load_that_ends_is_named() -> None:
    load = FakeOpenLoad()
    load.ends_at_s = 110.0
    assert _run(load).ended == "load failed: gone"


def test_stopped_process_costs_one_trial_only() -> None:
    load = FakeOpenLoad()
    load.gap_after_s = 115.0
    result = _run(load)
    assert result.ended == "complete"
    assert result.curves[0].answers.limits[0].verdict is RateVerdict.FOUND


def test_failing_target_is_named_and_keeps_no_limit() -> None:
    load = FakeOpenLoad()
    load.fails_above = 15_000.0
    result = _run(load)
    (answer,) = result.curves[0].answers.limits
    assert len(result.troubles) == 1
    assert result.troubles[0].startswith("disk b: its I/Os failed at")
    assert answer.lower is not None
    assert answer.lower.rate < 15_000


def test_old_ios_that_hold_up_an_epoch_make_it_bad_not_endless() -> None:
    load = FakeOpenLoad()
    load.opens_late_s = 30.0
    (answer,) = _run(load).curves[0].answers.limits
    assert answer.verdict is RateVerdict.NONE_KEEPS


def test_search_goes_on_from_its_file(tmp_path: Path) -> None:
    path, plan = tmp_path / "trials", _plan()
    whole = _run(FakeOpenLoad(), plan)
    with TrialFile(path, plan) as file:
        for trial in whole.curves[0].trials[:30]:
            file.append(0, trial)
    with path.open("ab") as out:
        out.write(b'{"curve": 0, "rate"')
    with TrialFile(path, plan) as file:
        done = tuple(file.done)
    assert [trial for _, trial in done] == list(whole.curves[0].trials[:30])
    resumed = _run(FakeOpenLoad(), plan, done=done)
    assert [trial.rate for trial in resumed.curves[0].trials] == [trial.rate for trial in whole.curves[0].trials]


@pytest.mark.parametrize("damage", [b"{}", b'{"curve": 7}', b"[]", b"\xff"])
def test_damaged_file_and_that_of_another_search_are_refused(tmp_path: Path, damage: bytes) -> None:
    path, plan = tmp_path / "trials", _plan()
    with TrialFile(path, plan):
        pass
    with pytest.raises(UsageError, match="another job"), TrialFile(path, _plan("p50<=1ms")):
        pass
    with path.open("ab") as out:
        out.write(damage + b"\n")
    with pytest.raises(UsageError, match="line 2 is damaged"), TrialFile(path, plan):
        pass


def test_damaged_figures_of_a_trial_are_refused(tmp_path: Path) -> None:
    path, plan = tmp_path / "trials", _plan()
    for changes in ({"rate": -1.0}, {"duration_s": 0.0}, {"stage": "?"}, {"latencies_ns": {"p99": 1e40}}):
        path.unlink(missing_ok=True)
        trial = replace(RateTrial(1000.0, 1.0, 1000.0, stage="ladder"), **changes)
        with TrialFile(path, plan) as file:
            file.append(0, trial)
        with pytest.raises(UsageError, match="damaged"), TrialFile(path, plan):
            pass


def test_what_cannot_be_searched_is_refused() -> None:
    with pytest.raises(UsageError, match="give --slo"):
        make_rate_plan(JobSpec(), ())
    with pytest.raises(UsageError, match="comes twice"):
        _plan("p99<=2ms", "p99<=2000us")
    with pytest.raises(UsageError, match="--rate: the search chooses it"):
        make_rate_plan(replace(JobSpec(), knobs=replace(JobSpec().knobs, rate_iops=5.0)), (P99,))
    with pytest.raises(UsageError, match="closed loops only"):
        make_rate_plan(JobSpec(backend=Backend.AIO), (P99,))
    assert make_rate_plan(JobSpec(arrival=Arrival.CONSTANT), (P99,)).job.arrival is Arrival.CONSTANT
