"""Searches on devices of a known law: what they answer, and that bounds, maximum and sentences agree."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest

from engine.rate_search.answer import RateAnswers, RateVerdict, rate_answers
from engine.rate_search.bounds import LoadClass, classify
from engine.rate_search.goal import parse_goal
from engine.rate_search.known import KnownTrials
from engine.rate_search.rounds import on_grid
from engine.rate_search.search import RateSearch
from engine.rate_search.text import answer_lines, cautions
from engine.replacing import replace
from engine.sweep.limit import Limit
from tests.unit.rate_search.law_device import Law, LawDevice, true_excess

SLOW_TAIL = Law(8, 0.008, slow_share=0.02, slow_factor=6)
"""2 % take 48 ms at any rate."""
EXPONENTIAL = Law(8, 0.0088, is_exponential=True)
CONSTANT = Law(8, 0.008)
ONE = Law(1, 0.008)


def searched(law: Law, *texts: str, seed: int = 1, **options: Any) -> tuple[RateAnswers, LawDevice, RateSearch]:
    limits = tuple(map(Limit.parse, texts))
    # What arrives far beyond the maximum takes time and shows nothing.
    search = RateSearch(limits, high=1.3 * law.maximum)
    device, known = LawDevice(law, limits, seed, **options), KnownTrials()
    while (wanted := search.next_trial(device.trials, known)) is not None:
        device.measure(wanted)
    return rate_answers(search, device.trials), device, search


@pytest.mark.parametrize(("law", "text"), [(SLOW_TAIL, "p99<=30ms"), (EXPONENTIAL, "p99<=30ms"), (ONE, "p90<=7ms")])
def test_limit_that_no_rate_keeps_gets_no_rate(law: Law, text: str) -> None:
    for seed in range(4):
        found, device, _ = searched(law, text, seed=seed)
        (answer,) = found.limits
        assert answer.verdict is RateVerdict.NONE_KEEPS
        assert answer.lower is None
        assert answer.upper is not None
        assert answer.upper.over is not None
        assert answer.upper.over > 10
        assert f"of {answer.upper.ios:,} I/Os over it" in next(answer_lines(answer, found))
        assert device.now_s < 300


@pytest.mark.parametrize(
    ("law", "text"),
    [
        (CONSTANT, "p99<=30ms"),
        (EXPONENTIAL, "p99<=60ms"),
        (EXPONENTIAL, "mean<=15ms"),
        (ONE, "p90<=30ms"),
        (Law(8, 0.008, slow_share=0.005, slow_factor=6), "p99<=30ms"),
        (Law(3, 0.002, is_exponential=True), "p99.9<=30ms"),
    ],
)
def test_rate_that_is_found_keeps_its_limit_and_little_more_does_not(law: Law, text: str) -> None:
    limit = Limit.parse(text)
    for seed in range(2):
        (answer,) = searched(law, text, seed=seed)[0].limits
        assert answer.verdict is RateVerdict.FOUND
        assert answer.lower is not None
        assert answer.upper is not None
        assert answer.lower.ios * (1 - (limit.percent or 0) / 100) >= 9.99
        assert true_excess(law, limit, 0.95 * answer.lower.rate) < 1.25
        assert true_excess(law, limit, 1.1 * answer.upper.rate) > 1


@pytest.mark.parametrize(
    "law", [ONE, CONSTANT, EXPONENTIAL, SLOW_TAIL, Law(24, 0.002), Law(3, 0.002, is_exponential=True)]
)
def test_maximum_is_that_of_the_law(law: Law) -> None:
    for seed in range(2):
        search = RateSearch((Limit.parse("mean<=1us"),), high=1.5 * law.maximum)
        device = LawDevice(law, search.limits, seed)
        while search.grid(device.trials) is None:
            wanted = search.next_trial(device.trials)
            assert wanted is not None
            device.measure(wanted)
        grid = search.grid(device.trials)
        assert grid is not None
        is_exact = not law.is_exponential and not law.slow_share
        assert grid.highest == pytest.approx(law.maximum, rel=0.002 if is_exact else 0.03)


def _rates(line: str) -> Iterator[float]:
    yield from (float(text.replace(",", "")) for text in re.findall(r"([0-9][0-9,.]*) (?:IOPS|exceed)", line))


@pytest.mark.parametrize("texts", [("p99<=30ms", "p90<=20ms"), ("p99.9<=60ms",), ("mean<=12ms", "max<=200ms")])
@pytest.mark.parametrize("law", [EXPONENTIAL, SLOW_TAIL, ONE])
def test_answer_never_contradicts_itself(law: Law, texts: tuple[str, ...]) -> None:
    found, device, search = searched(law, *texts, seed=3, stall_every_s=40, stall_s=0.3)
    assert found.maximum is not None
    phase = search.phases[-1]
    for answer in found.limits:
        for bound, is_kept in ((answer.lower, True), (answer.upper, False)):
            if bound is None:
                continue
            assert bound.rate <= found.maximum
            group = on_grid(device.trials)[bound.rate]
            assert (classify(group, answer.limit, phase, 0.5) is LoadClass.LOWER) is is_kept
            if answer.limit.percent and is_kept:
                assert bound.excess is not None
                assert bound.excess <= 1 - answer.limit.percent / 100 + 1e-6
        lines = list(answer_lines(answer, found))
        rates = list(_rates(lines[0].partition("(")[0]))
        assert all(one < other for one, other in itertools.pairwise(rates))
        assert [line for line in lines if "caution" in line] == [f"  caution: {each}" for each in cautions(answer)]


def test_too_few_ios_are_undecided_and_say_after_how_many() -> None:
    found, _, _ = searched(Law(1, 0.04), "p99.9<=2s")
    (answer,) = found.limits
    assert answer.verdict is RateVerdict.UNDECIDED
    assert answer.needed_s is not None
    line = next(answer_lines(answer, found))
    assert line.startswith(f"p99.9<=2s: undecided after {answer.undecided_ios:,} I/Os")
    parse_goal(line.partition("--goal ")[2])


def test_bounds_measured_on_a_busy_host_carry_that_as_a_caution() -> None:
    _, device, search = searched(SLOW_TAIL, "p99<=30ms")
    for busy_pct, said in ((None, ()), (60.0, ()), (99.0, ("99 % of the time: repeat when the host is idle",))):
        trials = [replace(trial, host_busy_pct=busy_pct) for trial in device.trials]
        (answer,) = rate_answers(search, trials).limits
        assert len(cautions(answer)) == len(said)
        assert all(words in caution for words, caution in zip(said, cautions(answer), strict=True))
