"""A sweep from its first point to its answer, in simulated time."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.errors import LunscopeError, UsageError
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.statistics.batch_means import Stop
from engine.statistics.warmup import Trend
from engine.study.trial_file import TrialFile
from engine.sweep.axes import parse_axis
from engine.sweep.knee import Shape
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan, make_plan
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.trial import SearchStage, Trial
from tests.unit.sweep.fake_load import FakeLoad
from tests.unit.sweep.queue_model import SERVICE_S, corner


def _plan(*axes: str) -> SweepPlan:
    return make_plan(JobSpec(), tuple(map(parse_axis, axes or ("qd=1..64",))))


def _run(load: FakeLoad, plan: SweepPlan | None = None, **options: Any) -> SweepResult:
    return SweepRunner(plan or _plan(), load, clock=load.clock, **options).run()


def test_sweep_finds_the_knee_of_a_steady_device_within_three_minutes() -> None:
    load = FakeLoad(corner(16))
    result = _run(load)
    found = result.curves[0].answer
    assert (result.ended, result.troubles) == ("complete", ())
    assert found.shape is Shape.KNEE
    assert found.balance is not None
    assert found.balance.found == pytest.approx(16, rel=0.1)
    assert found.little is not None
    assert found.little.holds
    assert result.elapsed_s <= 180
    # 2,000 IOPS at a depth of 1 are too few for p99 within 3 s.
    assert {trial.stop for trial in result.curves[0].trials if trial.load > 1} == {Stop.PRECISE}


def test_knee_of_a_slow_device_takes_no_longer_though_its_percentiles_are_short_of_ios() -> None:
    load = FakeLoad(lambda depth: min(depth, 8) / 0.005)
    result = _run(load, _plan("qd=1..256"))
    found = result.curves[0].answer
    assert found.balance is not None
    assert found.balance.found == pytest.approx(8, rel=0.1)
    assert result.elapsed_s <= 180
    assert {trial.stop for trial in result.curves[0].trials} == {Stop.TIME}


@pytest.mark.parametrize(("limit", "ios"), [("p99<=1s", 10_000), ("p99.9<=1s", 24_000), ("p50<=1s", 10_000)])
def test_percentile_of_a_limit_gets_the_ios_it_needs(limit: str, ios: int) -> None:
    """Or as many as there are in 15 s."""
    plan = make_plan(JobSpec(), (parse_axis("qd=8..16"),), (Limit.parse(limit),))
    trials = _run(FakeLoad(lambda _: 1600.0), plan).curves[0].trials
    assert min(trial.ios for trial in trials) >= 0.95 * ios


def test_slow_ios_of_before_cost_time_and_no_figure() -> None:
    load = FakeLoad(corner(16))
    load.settling_s = 4.0
    trials = _run(load, _plan("qd=16,32")).curves[0].trials
    assert min(trial.duration_s for trial in trials) >= 0.9
    assert {round(trial.iops, -3) for trial in trials} == {32_000}
    load = FakeLoad(corner(16))
    load.settling_s = 1e6
    assert {trial.ios for trial in _run(load, _plan("qd=16,32")).curves[0].trials} == {0}


def test_point_goes_on_until_its_slowest_ios_are_among_its_latencies() -> None:
    load = FakeLoad(lambda _: 400.0)
    load.outlasting_s = 8.0
    trials = _run(load, _plan("qd=32,64")).curves[0].trials
    assert min(trial.duration_s for trial in trials) >= 7.5
    assert all(trial.little == pytest.approx(0, abs=0.05) for trial in trials)
    load = FakeLoad(lambda _: 400.0)
    assert max(trial.duration_s for trial in _run(load, _plan("qd=32,64")).curves[0].trials) <= 4


def test_point_whose_figures_never_fit_takes_no_longer_than_any_other() -> None:
    slow, fast = FakeLoad(lambda _: 400.0), FakeLoad(lambda _: 40_000.0)
    slow.outlasting_s = fast.outlasting_s = 1e6
    assert max(trial.duration_s for trial in _run(slow, _plan("qd=32,64")).curves[0].trials) <= 15.5
    # Many rounds of I/Os: no few that outlast the epoch explain it.
    assert max(trial.duration_s for trial in _run(fast, _plan("qd=32,64")).curves[0].trials) <= 4


@pytest.mark.slow
def test_noisy_device_is_called_noisy_and_does_not_take_for_ever() -> None:
    result = _run(FakeLoad(corner(16), noise=3.0))
    stops = [trial.stop for trial in result.curves[0].trials]
    assert stops.count(Stop.NOISY) > len(stops) / 2
    assert all(trial.duration_s <= 16 for trial in result.curves[0].trials)


def test_warm_up_is_in_no_figure() -> None:
    load = FakeLoad(corner(16))
    load.warm_up_s = 1.0
    trials = _run(load).curves[0].trials
    assert all(trial.is_settled for trial in trials)
    assert all(trial.iops == pytest.approx(corner(16)(trial.load), rel=0.03) for trial in trials)


def test_device_that_never_settles_is_called_warming_up() -> None:
    load = FakeLoad(corner(16))
    load.warm_up_s = 60.0
    result = _run(load)
    assert result.curves[0].answer.shape is Shape.WARMING
    trends = [trial.trend for trial in result.curves[0].trials]
    assert trends.count(Trend.WARMING) > len(trends) / 2
    assert Trend.SLOWING not in trends


def test_every_combination_has_its_curve_and_repetitions_are_mixed() -> None:
    load = FakeLoad(corner(8))
    result = _run(load, _plan("qd=1..32", "bs=4k,8k"))
    assert [each.curve.name for each in result.curves] == ["bs=4k", "bs=8k"]
    assert all(each.answer.shape is Shape.KNEE for each in result.curves)
    repeats = sum(trial.stage == SearchStage.REPEAT for each in result.curves for trial in each.trials)
    sizes = [knobs.blocks for knobs in load.turns[-repeats:]]
    assert sum(before != after for before, after in itertools.pairwise(sizes)) > 3


def test_sweep_without_load_axis_measures_each_point_and_makes_no_curve() -> None:
    result = _run(FakeLoad(corner(8)), _plan("bs=4k,8k,64k"))
    assert [len(each.trials) for each in result.curves] == [3, 3, 3]
    assert result.plan.trials == 9
    assert all(each.answer.shape is Shape.UNKNOWN for each in result.curves)


def test_stop_keeps_what_was_measured() -> None:
    load = FakeLoad(corner(16))

    def keep(_curve: int, trial: Trial) -> None:
        if trial.load >= 8:
            runner.stop()

    runner = SweepRunner(_plan(), load, keep, clock=load.clock)
    result = runner.run()
    assert result.ended == "stopped"
    assert [trial.load for trial in result.curves[0].trials] == [1, 2, 4, 8]


def test_point_that_is_skipped_is_named_and_the_others_are_measured() -> None:
    load = FakeLoad(corner(16))
    runner = SweepRunner(_plan(), load, clock=load.clock)

    def skip_four() -> None:
        if runner.now_name == "qd=4" and not runner.troubles:
            runner.skip()

    load.on_wait = skip_four
    result = runner.run()
    assert result.is_complete
    assert result.troubles == ("qd=4: left out",)
    assert 4 not in {trial.load for trial in result.curves[0].trials if trial.stage == SearchStage.LADDER}


def test_pause_measures_nothing_until_it_goes_on() -> None:
    load = FakeLoad(corner(16))
    runner = SweepRunner(_plan("qd=1,2"), load, clock=load.clock)
    runner.pause()
    assert runner.is_paused
    waits = []

    def go_on() -> None:
        waits.append(len(load.turns))
        if len(waits) == 2:
            runner.resume()

    load.on_wait = go_on
    assert runner.run().is_complete
    assert waits[:2] == [0, 0]


def test_refused_point_is_named_and_the_rest_goes_on() -> None:
    load = FakeLoad(corner(16))
    load.refuses[8] = LunscopeError("no room")
    result = _run(load)
    assert result.is_complete
    assert result.troubles == ("qd=8: left out: no room",)


def test_target_that_dies_is_named_and_its_points_are_in_no_curve() -> None:
    load = FakeLoad(corner(4))
    load.fails_at_depth = 32
    result = _run(load)
    assert result.is_complete
    (trouble,) = result.troubles
    assert trouble.startswith("disk b: its I/Os failed from qd=32 on")
    marked = {trial.load for trial in result.curves[0].trials if trial.failing}
    assert marked == {32, 64}
    assert result.curves[0].answer.shape is Shape.KNEE


def test_target_that_died_beyond_the_stripe_width_spoils_no_point() -> None:
    load = FakeLoad(corner(4))
    load.fails_at_depth, load.driven = 8, 1
    result = _run(load)
    assert (result.is_complete, result.troubles) == (True, ())
    assert result.curves[0].answer.shape is Shape.KNEE


def test_load_that_ends_ends_the_sweep_with_its_reason() -> None:
    load = FakeLoad(corner(16))
    load.ends_at_s = 115.0
    result = _run(load)
    assert result.ended == "load failed: every I/O failed"
    assert 1 <= len(result.curves[0].trials) < 9


def test_point_during_which_the_process_was_stopped_is_measured_again() -> None:
    load = FakeLoad(corner(16))
    load.gap_after_s = 101.5
    result = _run(load)
    assert result.is_complete
    assert all(trial.iops == pytest.approx(corner(16)(trial.load), rel=0.03) for trial in result.curves[0].trials)


def test_progress_counts_down() -> None:
    load = FakeLoad(corner(16))
    left = []
    runner = SweepRunner(_plan(), load, clock=load.clock, keep=lambda _c, _t: left.append(runner.left_s))
    runner.run()
    assert left[0] > left[-1]
    assert runner.done == len(left)


# ------------------------------------------------------------------------------------------------ the file of trials


def _killed_after(path: Path, plan: SweepPlan, count: int) -> None:
    """Leave the file as a process does that is killed while it writes a line."""
    load = FakeLoad(corner(16))
    with TrialFile(path, plan) as file:

        def keep(index: int, trial: Trial) -> None:
            file.append(index, trial)
            if len(path.read_bytes().splitlines()) > count:
                runner.stop()

        runner = SweepRunner(plan, load, keep, clock=load.clock)
        runner.run()
    path.write_bytes(path.read_bytes() + b'{"curve": 0, "load": 1')


def test_sweep_goes_on_from_its_file(tmp_path: Path) -> None:
    path, plan = tmp_path / "trials", _plan()
    _killed_after(path, plan, 5)
    load = FakeLoad(corner(16))
    with TrialFile(path, plan) as file:
        assert [trial.load for _, trial in file.done] == [1, 2, 4, 8, 16]
        result = SweepRunner(plan, load, clock=load.clock, keep=file.append, done=tuple(file.done)).run()
    assert [knobs.queue_depth for knobs in load.turns[:2]] == [32, 64]
    assert result.curves[0].answer.shape is Shape.KNEE
    starts = [trial.start_s for trial in result.curves[0].trials]
    assert starts == sorted(starts)
    with TrialFile(path, plan) as file:
        assert [trial for _, trial in file.done] == list(result.curves[0].trials)
        again = SweepRunner(plan, load, clock=load.clock, done=tuple(file.done)).run()
    assert again.curves[0].answer == result.curves[0].answer


def test_file_is_private(tmp_path: Path) -> None:
    with TrialFile(tmp_path / "trials", _plan()):
        assert (tmp_path / "trials").stat().st_mode & 0o777 == 0o600


def test_file_of_another_sweep_is_refused(tmp_path: Path) -> None:
    _killed_after(tmp_path / "trials", _plan(), 2)
    with pytest.raises(UsageError, match="other axes"), TrialFile(tmp_path / "trials", _plan("qd=1..32")):
        pass


@pytest.mark.parametrize("head", [b"hello", b"{}\n", b"[1]\n", b"\n", b'{"schema": 1}\n', b"[" * 100_000 + b"\n"])
def test_file_that_is_no_sweep_is_refused_and_kept(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "trials"
    path.write_bytes(head)
    with pytest.raises(UsageError, match="not a file of a sweep"), TrialFile(path, _plan()):
        pass
    assert path.read_bytes() == head


@pytest.mark.parametrize(
    "change",
    [
        {"curve": 7},
        {"curve": "0"},
        {"iops": "many"},
        {"iops": -1},
        {"latencies_ns": [1]},
        {"stage": "x"},
        {"stop": None},
    ],
)
def test_damaged_line_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    path, plan = tmp_path / "trials", _plan()
    _killed_after(path, plan, 3)
    lines = path.read_bytes().splitlines()[:-1]
    lines[2] = json.dumps({**json.loads(lines[2]), **change}).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(UsageError, match="line 3 is damaged"), TrialFile(path, plan):
        pass


def test_file_in_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LunscopeError, match="No such file"), TrialFile(tmp_path / "no" / "trials", _plan()):
        pass


# ------------------------------------------------------------------------------------------------ strategies


_MOST_NS = 2.05 * SERVICE_S * 1e9


def _highest_within(left: Sequence[int], trials: Sequence[Trial]) -> int | None:
    """Halve what is open between the highest load within a latency and the lowest one beyond it."""
    low = max((trial.load for trial in trials if trial.latency_ns <= _MOST_NS), default=0)
    high = min((trial.load for trial in trials if trial.latency_ns > _MOST_NS), default=math.inf)
    between = [load for load in left if low < load < high]
    return between[len(between) // 2] if between else None


def _measured(path: Path, plan: SweepPlan, load: FakeLoad, most: int) -> tuple[Trial, ...]:
    """What the file has once so many trials were made at most."""
    with TrialFile(path, plan) as file:

        def keep(curve: int, trial: Trial) -> None:
            file.append(curve, trial)
            if runner.done == most:
                runner.stop()

        runner = SweepRunner(plan, load, keep, tuple(file.done), clock=load.clock)
        return runner.run().curves[0].trials


def test_each_point_follows_from_those_before(tmp_path: Path) -> None:
    plan = _plan(f"qd={','.join(map(str, range(1, 65)))}")
    curves = tuple(replace(each, search=replace(each.search, next_load=_highest_within)) for each in plan.curves)
    plan, load = replace(plan, curves=curves), FakeLoad(corner(16), noise=0.001)
    load.refuses[33] = LunscopeError("no room")
    assert [trial.load for trial in _measured(tmp_path / "trials", plan, load, 3)] == [32, 49, 41]
    done = [trial.load for trial in _measured(tmp_path / "trials", plan, load, 99)]
    assert done[:3] == [32, 49, 41]
    assert (len(set(done)), min(done), 34 in done) == (len(done), 32, True)
    assert len(done) <= 7
