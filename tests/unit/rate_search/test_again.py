"""Searches beside stalls: a rate that one of them spoiled is measured again, and the answer stays near the truth."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from engine.job.spec import JobSpec
from engine.rate_search.answer import RateAnswer, RateVerdict, rate_answers
from engine.rate_search.document import open_loop
from engine.rate_search.goal import RateGoal
from engine.rate_search.plan import make_rate_plan
from engine.rate_search.rounds import MOST_ROUNDS, on_grid
from engine.rate_search.runner import RateCurve, RateResult
from engine.rate_search.search import RateSearch, WantedTrial
from engine.rate_search.text import cautions
from engine.rate_search.trial import RateStage, RateTrial
from engine.replacing import replace
from engine.sweep.limit import Limit
from tests.unit.rate_search.open_model import OpenModel, search_all, true_rate

P99 = Limit.parse("p99<=2ms")
SEARCH = RateSearch((P99,))


@dataclass
class StalledModel(OpenModel):
    """Stalls begin at random and take one second after the other, or spoil chosen trials."""

    every_s: float = math.inf
    shortest_s: float = 0.0
    longest_s: float = 0.0
    spoiled: Mapping[int, float] = field(default_factory=dict)
    """Share of the time of a trial, by its number, in which nothing is served."""
    bad_below: float = 0.0
    """Rates that exceed the limit although higher ones do not, as of a device that falls asleep."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._stalls = [(math.inf, math.inf)] if math.isinf(self.every_s) else [(0.0, 0.0)]

    def _stalled_s(self, start_s: float, end_s: float) -> float:
        while self._stalls[-1][1] < end_s:
            begin_s = self._stalls[-1][1] + self._random.expovariate(1 / self.every_s)
            self._stalls.append((begin_s, begin_s + self._random.uniform(self.shortest_s, self.longest_s)))
        stalled_s = sum(max(min(end, end_s) - max(begin, start_s), 0.0) for begin, end in self._stalls)
        return max(stalled_s, self.spoiled.get(len(self.trials), 0.0) * (end_s - start_s))

    def measure(self, wanted: WantedTrial) -> RateTrial:
        trial = super().measure(wanted)
        if wanted.rate < self.bad_below:
            trial = self.trials[-1] = replace(trial, excess={P99.text: 0.2})
        return trial


def _answer(model: OpenModel) -> RateAnswer:
    return rate_answers(SEARCH, search_all(SEARCH, model)).limits[0]


@pytest.mark.slow
@pytest.mark.parametrize("stalls", [(60.0, 0.05, 0.5), (120.0, 0.2, 2.0), (300.0, 0.5, 3.0)])
@pytest.mark.parametrize("service_rate", [20_000.0, 3_000.0])
def test_answers_beside_random_stalls_are_within_the_width_of_the_truth(
    stalls: tuple[float, float, float], service_rate: float
) -> None:
    every_s, shortest_s, longest_s = stalls
    stalled = (shortest_s + longest_s) / 2 / every_s
    limit = Limit.parse("p99<=2ms") if service_rate > 1e4 else Limit.parse("p99<=20ms")
    search, runs, hits = RateSearch((limit,)), 60, 0
    slowest, highest = (true_rate(limit, 0.0, share, service_rate) for share in (stalled, 0.0))
    for seed in range(runs):
        model = StalledModel((limit,), seed, 0.05, *(math.inf, 0.0, service_rate), 0.0, [], *stalls)
        (found,) = rate_answers(search, search_all(search, model)).limits
        if found.verdict is RateVerdict.FOUND and found.lower is not None and found.upper is not None:
            hits += found.lower.rate <= 1.05 * highest and 1.05 * found.upper.rate >= slowest
    assert hits >= 0.95 * runs


LADDER = {78.12: 4, 1250.0: 5, 5000.0: 6}
"""Rates of the ladder far below the answer, by the number of their trial."""


@pytest.mark.parametrize("share", [0.6, 1.0])
@pytest.mark.parametrize("number", LADDER.values())
def test_a_low_rate_that_a_stall_spoiled_is_measured_again_and_named(number: int, share: float) -> None:
    model = StalledModel((P99,), spoiled={number: share})
    found = _answer(model)
    assert found.verdict is RateVerdict.FOUND
    assert found.lower is not None
    assert found.upper is not None
    assert found.kept_above is None
    assert found.lower.rate <= true_rate(P99) <= found.upper.rate
    spoiled = model.trials[number]
    rounds = [trial for trial in model.trials if trial.rate == spoiled.rate]
    if rounds[1:]:
        assert rounds[1].stage == RateStage.AGAIN
        (again,) = found.again
        assert (again.before.rate, again.before.bad, again.now.bad, again.is_kept) == (spoiled.rate, 1, 0, True)
        assert sum("were measured again: they keep it" in each for each in cautions(found)) == 1
        assert spoiled not in on_grid(model.trials)[spoiled.rate]


def test_a_stall_at_the_upper_bound_alone_does_not_make_it() -> None:
    quiet = OpenModel((P99,))
    _answer(quiet)
    last = quiet.trials[-1]
    assert last.stage == RateStage.SEARCH
    for number in range(len(quiet.trials) - 15, len(quiet.trials)):
        found = _answer(StalledModel((P99,), spoiled={number: 0.95}))
        assert found.lower is not None
        assert found.upper is not None
        assert found.lower.rate <= true_rate(P99) * 1.05
        assert found.upper.rate >= true_rate(P99) * 0.999


def test_a_maximum_that_a_stall_made_too_low_is_measured_again() -> None:
    model = StalledModel((P99,), spoiled=dict.fromkeys((1, 2, 3), 0.5))
    found = rate_answers(SEARCH, search_all(SEARCH, model))
    assert found.maximum == pytest.approx(20_000, rel=0.001)
    assert found.limits[0].verdict is RateVerdict.FOUND
    assert found.limits[0].lower is not None
    assert found.limits[0].lower.rate == pytest.approx(true_rate(P99), rel=0.05)


def test_a_limit_that_the_maximum_keeps_is_answered_after_it_was_measured_twice() -> None:
    limit = Limit.parse("max<=30s")
    search, model = RateSearch((limit,)), StalledModel((P99, limit))
    trials = search_all(search, model)
    assert sum(trial.stage == RateStage.MAXIMUM for trial in trials) <= 9
    assert rate_answers(search, trials).maximum == pytest.approx(20_000, rel=0.001)


def test_trials_on_the_grid_of_an_earlier_version_have_the_same_answer() -> None:
    """Rates differed by half the width: 2.5 % where they differ by 2.4 % now."""
    earlier = RateSearch((P99,), RateGoal(width=0.0517))
    trials = search_all(earlier, OpenModel((P99,)))
    (then,), (now,) = (rate_answers(each, trials).limits for each in (earlier, SEARCH))
    assert now.verdict is then.verdict is RateVerdict.FOUND
    assert now.lower is not None
    assert now.lower == then.lower
    assert now.upper == then.upper


def test_a_rate_that_exceeds_its_limit_each_time_is_believed() -> None:
    model = StalledModel((P99,), bad_below=6000.0)
    found = _answer(model)
    assert found.upper is not None
    assert found.upper.rate < 6000
    rounds = Counter(trial.rate for trial in model.trials if trial.stage == RateStage.AGAIN)
    assert max(rounds.values()) == MOST_ROUNDS - 1
    assert model.now_s < 300
    assert found.kept_above is not None
    assert any(f", {MOST_ROUNDS} times, and" in each for each in cautions(found))
    assert not any(each.is_kept for each in found.again)


def test_all_trials_over_the_limit_for_too_long_are_a_caution() -> None:
    for spoiled, is_said in (({}, False), ({6: 1.0}, True)):
        found = _answer(StalledModel((P99,), spoiled=spoiled))
        assert (found.stalled_share is not None) is is_said
        assert any("those set aside too, exceed it for" in each for each in cautions(found)) is is_said


def test_what_was_measured_again_is_in_the_document() -> None:
    model = StalledModel((P99,), spoiled={6: 1.0})
    plan = make_rate_plan(JobSpec(), (P99,))
    trials = tuple(search_all(SEARCH, model))
    curve = RateCurve("", 128, trials, rate_answers(SEARCH, trials))
    (search,) = json.loads(json.dumps(open_loop(RateResult(plan, (curve,), "complete", (), 1.0))))["searches"]
    (limit,) = search["limits"]
    (again,) = limit["measured_again"]
    assert again["before"]["rate"] == again["now"]["rate"] == model.trials[6].rate
    assert again["before"]["exceeded"] == 1
    assert (again["now"]["exceeded"], again["rounds"]) == (0, 1)
    assert "again" in {trial["stage"] for trial in search["trials"]}
