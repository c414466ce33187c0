"""Rates that are measured again, because they exceed a limit that a higher rate keeps, or did so in one trial only.

Latencies do not fall as the rate rises, so one of the two rates met something else, such as a stall. RFC 9971 believes
the lower one for good; here it is measured again, and only its new round of trials counts. If it exceeds the limit in
the last round, too, it is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from engine.rate_search.bounds import LoadClass, has_usual_time
from engine.rate_search.goal import Phase
from engine.rate_search.pooled import Pooled
from engine.rate_search.trial import RateStage, RateTrial
from engine.sweep.limit import Limit

MOST_ROUNDS = 4
"""Most rounds of trials at one rate."""
_STALLED = 0.05
"""Share of the I/Os of a trial over a limit from which something may have stalled; bursts of arrivals make less."""


Rounds: TypeAlias = dict[float, list[list[RateTrial]]]
"""Trials by their rate and round."""


def rounds_by_rate(trials: Iterable[RateTrial]) -> Rounds:
    """Group the trials of ladder and search by their rate and round, from the last one to the maximum on."""
    rounds: Rounds = {}
    for trial in trials:
        if trial.stage == RateStage.MAXIMUM:
            rounds.clear()
        else:
            add_to_round(rounds, trial)
    return rounds


def add_to_round(rounds: Rounds, trial: RateTrial) -> None:
    """Add a trial to the newest round at its rate, or begin one."""
    of_rate = rounds.setdefault(trial.rate, [[]])
    if trial.stage == RateStage.AGAIN:
        of_rate.append([])
    of_rate[-1].append(trial)


def on_grid(trials: Iterable[RateTrial]) -> dict[float, list[RateTrial]]:
    """Return the trials that count at each rate: those of its newest round."""
    return {rate: rounds[-1] for rate, rounds in rounds_by_rate(trials).items()}


def is_contradicted(
    rate: float,
    groups: Mapping[float, Sequence[RateTrial]],
    classes: Mapping[float, LoadClass],
    limit: Limit,
    phase: Phase,
) -> bool:
    """Whether a higher rate keeps the limit that this one exceeds.

    Where this one was refused before its usual time, as by a stall, as many I/Os of a higher rate are enough; else that
    must be a lower bound.
    """
    higher = [each for each in groups if each > rate]
    if any(classes.get(each) is LoadClass.LOWER for each in higher):
        return True
    worst = max(trial.excess_of(limit) for trial in groups[rate])
    if worst < _STALLED or has_usual_time(groups[rate], limit, phase):
        return False
    enough = min(Pooled.of(groups[rate], limit).ios, phase.least_ios(limit))
    pooled = (Pooled.of(groups[each], limit) for each in higher)
    return any(each.ios >= enough and each.keeps(limit) and not each.unsustained_s for each in pooled)


def rests_on_one_trial(group: Sequence[RateTrial], limit: Limit) -> bool:
    """Whether all trials of a refused rate keep the limit but one that met a stall, or there is no other."""
    each = [Pooled.of((trial,), limit) for trial in group]
    worst = max(range(len(each)), key=lambda index: each[index].over + each[index].mean_ns * each[index].ios)
    rest = Pooled.of((*group[:worst], *group[worst + 1 :]), limit)
    is_stalled = group[worst].excess_of(limit) >= _STALLED
    return is_stalled and rest.keeps(limit) and not rest.unsustained_s
