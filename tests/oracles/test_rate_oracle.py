"""The search for the highest rate against MLRsearch of FD.io, by the authors of RFC 9971, on the same queue.

"Loss" is there what is here an I/O over the limit, or one that was never served. The classes of a rate and the goal
(exceed ratio, duration sum, width) are the RFC's on both sides. Where they differ:
- MLRsearch is given the maximum of the load, ours finds it; the time for that is not compared;
- its grid is geometric between the lowest and the highest rate, ours ends at the maximum and has half the goal's width;
- its width is a share of the upper bound, ours of the lower;
- its rates pass through an integer number of transactions, ours through three figures;
- its lower bound may exceed the limit over all I/Os together, if it does so for less than half of the time; ours may
  not, so that rates near the limit are measured for the whole time, and for longer where something stalls.
So the bounds are not equal, but both hold what both definitions say they do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine.rate_search.answer import RateAnswer, RateVerdict, rate_answers
from engine.rate_search.goal import RateGoal, allowed_share
from engine.rate_search.search import RateSearch, WantedTrial
from engine.rate_search.trial import RateStage
from engine.sweep.limit import Limit
from tests import needs
from tests.unit.rate_search.open_model import SERVICE_RATE, TURN_S, OpenModel, search_all, true_rate

pytestmark = needs.mlrsearch

LIMIT = Limit.parse("p99<=2ms")
GOAL = RateGoal()
SUM_S = 21.0


def _of_mlrsearch(model: OpenModel) -> tuple[float, float, float]:
    """Lower bound, upper bound and conditional throughput."""
    import MLRsearch

    class Measurer:
        def measure(self, intended_duration: float, intended_load: float) -> Any:
            trial = model.measure(WantedTrial(intended_load, intended_duration, RateStage.SEARCH))
            due = round(intended_load * intended_duration)
            lost = trial.excess_of(LIMIT) if trial.is_sustained else 1.0
            return MLRsearch.MeasurementResult(
                intended_duration,
                intended_load,
                offered_count=due,
                loss_count=math.ceil(due * lost - 1e-6),
                duration_with_overheads=intended_duration + TURN_S,
            )

    config = MLRsearch.Config()
    config.min_load, config.max_load = SERVICE_RATE / 256, SERVICE_RATE
    config.warmup_duration = None
    config.goals = (
        MLRsearch.SearchGoal(
            loss_ratio=allowed_share(LIMIT),
            exceed_ratio=GOAL.exceed_ratio,
            relative_width=GOAL.width,
            initial_trial_duration=GOAL.trial_s,
            final_trial_duration=GOAL.trial_s,
            duration_sum=SUM_S,
        ),
    )
    search = MLRsearch.MultipleLossRatioSearch(config=config)
    (result,) = search.search(Measurer(), debug=lambda _: None).values()
    lower, upper = float(result.relevant_lower_bound), float(result.relevant_upper_bound)
    return lower, upper, float(result.conditional_throughput)


def _ours(model: OpenModel) -> RateAnswer:
    search = RateSearch((LIMIT,), GOAL)
    (found,) = rate_answers(search, search_all(search, model)).limits
    assert found.verdict is RateVerdict.FOUND
    return found


@pytest.mark.parametrize(("noise", "stall_every_s"), [(0.0, math.inf), (0.05, 10.0), (0.2, 10.0)])
def test_bounds_overlap_and_hold_the_true_rate(noise: float, stall_every_s: float) -> None:
    truth, runs, overlapping = true_rate(LIMIT), 20, 0
    for seed in range(runs):
        models = [OpenModel((LIMIT,), seed, noise=noise, stall_every_s=stall_every_s) for _ in range(2)]
        ours, (lower, upper, conditional) = _ours(models[0]), _of_mlrsearch(models[1])
        assert ours.lower is not None
        assert ours.upper is not None
        assert ours.conditional is not None
        for bound in (lower, ours.lower.rate):
            assert bound == pytest.approx(truth, rel=GOAL.width + 0.01)
        assert (upper - lower) / upper <= GOAL.width * 1.001
        assert (ours.upper.rate - ours.lower.rate) / ours.upper.rate <= GOAL.width
        overlapping += ours.lower.rate <= upper and lower <= ours.upper.rate
        # Both are the lower bound less what is over the limit there, at most the goal's share.
        assert conditional >= lower * (1 - allowed_share(LIMIT)) * 0.999
        assert ours.conditional >= ours.lower.rate * (1 - allowed_share(LIMIT)) * 0.999
        assert ours.conditional == pytest.approx(conditional, rel=GOAL.width + 0.01)
    assert overlapping >= 0.95 * runs


def test_search_takes_little_longer_than_mlrsearch() -> None:
    """From the first trial to the last, less the trials to the maximum, which MLRsearch is given."""
    ours_s, theirs_s = [], []
    for seed in range(20):
        ours, theirs = (OpenModel((LIMIT,), seed, noise=0.05, stall_every_s=10.0) for _ in range(2))
        _ours(ours)
        _of_mlrsearch(theirs)
        to_maximum = [trial for trial in ours.trials if trial.stage == RateStage.MAXIMUM]
        ours_s.append(ours.now_s - sum(trial.duration_s + TURN_S for trial in to_maximum))
        theirs_s.append(theirs.now_s)
    assert np.median(ours_s) <= 1.3 * np.median(theirs_s)
