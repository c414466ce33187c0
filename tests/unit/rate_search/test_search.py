"""The search over a queue whose highest rate within a limit is known in closed form."""

from __future__ import annotations

import math

import pytest

from engine.rate_search.answer import RateAnswers, RateVerdict, rate_answers
from engine.rate_search.goal import RateGoal
from engine.rate_search.known import KnownTrials
from engine.rate_search.search import RateSearch
from engine.rate_search.trial import RateStage
from engine.sweep.limit import Limit
from tests.unit.rate_search.open_model import SERVICE_RATE, OpenModel, search_all, true_rate

RUNS = 50
"""None of them may miss: where 90 % hit, all of them do in 1 of 200 cases."""
ONE = ("p99<=2ms",)
NEAR = ("p50<=300us", "p99<=2ms", "p99.9<=3ms")
APART = ("p50<=300us", "p99<=1.2ms", "p99.9<=4ms")
FAR = ("p50<=100us", "p99<=1.2ms", "p99.9<=20ms")


def _limits(texts: tuple[str, ...]) -> tuple[Limit, ...]:
    return tuple(map(Limit.parse, texts))


def _answers(texts: tuple[str, ...], model: OpenModel, goal: RateGoal | None = None, **range_: float) -> RateAnswers:
    search = RateSearch(_limits(texts), goal or RateGoal(), **range_)
    return rate_answers(search, search_all(search, model))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "stall_every_s"), [(0.0, math.inf), (0.0, 10.0), (0.05, 10.0), (0.2, math.inf), (0.2, 10.0)]
)
def test_rate_is_found_within_the_goal_width_in_all_runs(noise: float, stall_every_s: float) -> None:
    limit, goal = Limit.parse(ONE[0]), RateGoal()
    runs = 1 if noise == 0 and math.isinf(stall_every_s) else RUNS
    stalled = 0.03 / stall_every_s
    hits = 0
    for seed in range(runs):
        model = OpenModel((limit,), seed, noise=noise, stall_every_s=stall_every_s)
        (found,) = _answers(ONE, model, goal).limits
        assert found.verdict is RateVerdict.FOUND
        assert found.lower is not None
        assert found.upper is not None
        assert found.lower.rate < found.upper.rate <= found.lower.rate * (1 + goal.width)
        hits += abs(found.lower.rate / true_rate(limit, noise, stalled) - 1) <= goal.width
    assert hits == runs


@pytest.mark.slow
@pytest.mark.parametrize("three", [NEAR, APART, FAR])
def test_three_limits_cost_much_less_than_three_times_one(three: tuple[str, ...]) -> None:
    def mean_s(texts: tuple[str, ...]) -> float:
        models = [OpenModel(_limits(texts), seed, noise=0.05, stall_every_s=10) for seed in range(8)]
        for model in models:
            _answers(texts, model)
        return sum(model.now_s for model in models) / len(models)

    dearest = max(mean_s((text,)) for text in three)
    assert mean_s(three) <= 1.75 * dearest


@pytest.mark.parametrize("three", [APART, FAR])
def test_each_of_three_limits_has_its_own_rate(three: tuple[str, ...]) -> None:
    answers = _answers(three, OpenModel(_limits(three)))
    for answer in answers.limits:
        assert answer.lower is not None
        assert answer.lower.rate == pytest.approx(true_rate(answer.limit), rel=0.05)
        assert answer.lower.rate <= true_rate(answer.limit)


def test_limit_that_no_rate_keeps_is_said_without_a_long_search() -> None:
    model = OpenModel(_limits(("p50<=10us",)))
    answers = _answers(("p50<=10us",), model)
    assert answers.limits[0].verdict is RateVerdict.NONE_KEEPS
    assert answers.limits[0].lower is None
    assert answers.limits[0].conditional is None
    assert model.now_s < 60


def test_limit_that_the_highest_rate_keeps_is_said() -> None:
    answers = _answers(ONE, OpenModel(_limits(ONE)), high=8000.0)
    assert answers.is_capped
    assert answers.limits[0].verdict is RateVerdict.ALL_KEEP
    assert answers.limits[0].lower is not None
    assert answers.limits[0].lower.rate == 8000


def test_maximum_of_the_load_bounds_the_search_and_one_stall_does_not_pass_for_it() -> None:
    model = OpenModel(_limits(ONE), stall_every_s=60.0, stall_s=3.0)
    answers = _answers(ONE, model)
    assert answers.maximum == pytest.approx(SERVICE_RATE, rel=0.01)
    rates = [trial.rate for trial in model.trials if trial.stage != RateStage.MAXIMUM]
    assert max(rates) <= SERVICE_RATE


def test_search_goes_on_from_any_trial_as_if_it_had_not_ended() -> None:
    search = RateSearch(_limits(APART))
    whole, other = (search_all(search, OpenModel(_limits(APART), seed, noise=0.2)) for seed in (1, 2))
    known = KnownTrials()
    for count in range(0, len(whole), 7):
        wanted = search.next_trial(whole[:count])
        assert wanted is not None
        assert (wanted.rate, wanted.stage) == (whole[count].rate, whole[count].stage)
        assert search.next_trial(other[: len(other) - count], known) == search.next_trial(other[: len(other) - count])
        assert search.next_trial(whole[:count], known) == wanted


def test_slow_disk_gets_trials_long_enough_for_the_percentile() -> None:
    model = OpenModel(_limits(("p99<=400ms",)), service_rate=150.0)
    answers = _answers(("p99<=400ms",), model)
    assert answers.limits[0].verdict is RateVerdict.FOUND
    assert answers.limits[0].lower is not None
    assert answers.limits[0].lower.rate == pytest.approx(
        true_rate(answers.limits[0].limit, service_rate=150.0), rel=0.05
    )
    assert 5 < max(trial.duration_s for trial in model.trials) <= 10
    assert answers.limits[0].lower.ios >= 1000


def test_stopped_search_is_undecided_and_names_what_it_has() -> None:
    search = RateSearch(_limits(ONE))
    trials = search_all(search, OpenModel(_limits(ONE)))
    assert rate_answers(search, ()).maximum is None
    assert rate_answers(search, ()).limits[0].verdict is RateVerdict.UNDECIDED
    part = rate_answers(search, trials[:-1]).limits[0]
    assert part.verdict is RateVerdict.UNDECIDED
    assert part.undecided
