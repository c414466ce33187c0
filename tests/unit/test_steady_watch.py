"""A watch over counters that are made up: what it says of rounds, epochs and declines, as badges and in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.errors import UsageError
from engine.job.file import dump_job, parse_job
from engine.job.scenario import Scenario, turn_between, validate_scenario
from engine.job.spec import Access, Arrival, JobSpec, Knobs
from engine.job.validate import validate
from engine.replacing import replace
from engine.results.badge import Badge, BadgeKind
from engine.results.caveats import caveats, run_badges
from engine.results.result import RunResult, nothing_measured
from engine.results.result_document import run_document
from engine.results.steadiness import Steadiness, steadiness_document, steady_badges
from engine.running.knob_turns import InForce
from engine.running.steady_watch import SteadyWatch

WRITES = Knobs(read_pct=0.0)
Speed = Callable[[float], float]
"""I/Os per second of each direction at a time in seconds."""


def watched(
    job: JobSpec, seconds: float, speed: Speed, *, epoch: int = 0, watch: SteadyWatch | None = None, from_s: float = 0
) -> SteadyWatch:
    """Let a load of two targets run, observed every 50 ms; each write takes 1 ms / speed, reads twice that."""
    watch = SteadyWatch(job) if watch is None else watch
    counters = np.zeros((2, 17))
    for step in range(round(seconds * 20) + 1):
        at_s = from_s + step / 20
        ios = speed(at_s) / 20 / 2
        watch.observe(counters.astype(np.uint64), InForce(job.knobs, epoch, is_live=True), round(at_s * 1e9))
        for first, factor, used in ((0, 2, job.knobs.read_pct > 0), (4, 1, job.knobs.read_pct < 100)):
            counters[:, first : first + 3] += np.array([ios, 4096 * ios, factor * 1e9 / 2]) * used
    return watch


def test_an_even_load_is_steady_after_five_rounds_and_each_direction_counts() -> None:
    job = JobSpec(knobs=Knobs(read_pct=50.0), steady_round_s=2.0)
    assert not watched(job, 9.9, lambda _: 4000).found.state.is_checked
    found = watched(job, 14.3, lambda _: 4000).found
    assert (found.figure, found.directions, found.round_s) == ("iops", ("read", "write"), 2.0)
    assert (found.state.rounds, found.state.steady_from) == (7, 5)
    assert [each.mean for each in found.state.windows] == pytest.approx([4000, 4000], rel=0.01)


@pytest.mark.parametrize(
    ("changes", "figure", "mean"),
    [
        ({"access": Access.SEQUENTIAL}, "bytes_per_s", 4096 * 5000),
        ({"arrival": Arrival.POISSON}, "latency_us", 4000),
        ({"knobs": replace(WRITES, rate_iops=5000.0)}, "latency_us", 4000),
    ],
)
def test_the_figure_is_the_one_that_may_vary(changes: dict[str, Any], figure: str, mean: float) -> None:
    job = replace(JobSpec(knobs=WRITES, steady_round_s=1.0), **changes)
    found = watched(job, 6, lambda _: 5000).found
    assert found.figure == figure
    assert found.state.windows[0].mean == pytest.approx(mean, rel=0.01)


def test_rounds_begin_after_the_ramp_and_again_with_every_epoch() -> None:
    job = JobSpec(knobs=WRITES, steady_round_s=1.0, ramp_s=3.0)
    assert watched(job, 5.5, lambda _: 1000).found.state.rounds == 2
    watch = watched(job, 9, lambda _: 1000)
    assert watch.is_steady
    watched(job, 3.5, lambda _: 1000, epoch=1, watch=watch, from_s=9)
    assert not watch.is_steady
    assert watch.found.state.rounds == 0


def test_a_last_round_that_lacks_little_is_a_round() -> None:
    job = JobSpec(knobs=WRITES, steady_round_s=2.0)
    for seconds, rounds in ((9.5, 4), (10.0, 5)):
        watch = watched(job, seconds, lambda _: 1000)
        counters = np.zeros((1, 17), np.uint64)
        counters[0, 4] = round(1000 * seconds)
        watch.end(counters, round(seconds * 1e9))
        assert watch.found.state.rounds == rounds
        assert watch.is_steady is (rounds == 5)


def badges_of(watch: SteadyWatch, job: JobSpec, *, wanted: bool = False) -> dict[BadgeKind, Badge]:
    return {badge.kind: badge for badge in steady_badges(watch.found, job, wanted=wanted)}


def test_what_gets_slower_is_named_with_its_numbers() -> None:
    job = JobSpec(knobs=WRITES, access=Access.SEQUENTIAL)
    watch = watched(job, 200, lambda at_s: 256 * (200 if at_s < 50 else 100))
    badge = badges_of(watch, job)[BadgeKind.SLOWER]
    assert badge.label == "slower over time 50 %"
    assert badge.text.startswith(
        "slower over time: throughput fell 50 % from the first to the last fifth of the run, from 200.0 MiB/s to "
    )
    document = steadiness_document(watch.found)
    assert document is not None
    assert document["slower"] == {
        "first_fifth": pytest.approx(200 << 20, rel=0.02),
        "last_fifth": pytest.approx(100 << 20, rel=0.02),
        "change_pct": pytest.approx(-50, abs=1),
    }


def test_a_latency_that_rises_is_slower_too() -> None:
    job = JobSpec(knobs=WRITES, arrival=Arrival.CONSTANT)
    watch = watched(job, 200, lambda at_s: 4000 - 10 * at_s)
    badge = badges_of(watch, job)[BadgeKind.SLOWER]
    assert "mean latency rose 72 % from the first to the last fifth of the run, from " in badge.text
    document = steadiness_document(watch.found)
    assert document is not None
    assert document["slower"] is not None
    assert document["slower"]["change_pct"] == pytest.approx(72.7, abs=1)  # type: ignore[index]


def test_nothing_is_slower_within_two_minutes_nor_where_it_gets_faster() -> None:
    job = JobSpec(knobs=WRITES)
    assert not badges_of(watched(job, 110, lambda at_s: 4000 - 30 * at_s), job)
    assert not badges_of(watched(job, 200, lambda at_s: 1000 + 30 * at_s), job)


def test_marks_of_a_long_run_stay_few() -> None:
    job = JobSpec(knobs=WRITES, steady_round_s=3600.0)
    watch, counters = SteadyWatch(job), np.zeros((1, 17), np.uint64)
    for step in range(40_000):
        counters[0, 4] += 100 if step < 20_000 else 60
        watch.observe(counters, InForce(WRITES), step * 500_000_000)
    assert len(watch._marks) <= 4096
    assert watch.found.fell_share == pytest.approx(0.4, abs=0.01)
    assert watch.found.state.rounds == 5


def test_the_badge_says_reached_not_reached_lost_and_too_short() -> None:
    job = JobSpec(knobs=WRITES, steady_round_s=1.0)

    def text(seconds: float, speed: Speed, *, wanted: bool = False) -> str:
        badges = badges_of(watched(job, seconds, speed), job, wanted=wanted)
        return badges[BadgeKind.STEADY_STATE].text if badges else ""

    assert text(7.5, lambda _: 1000).startswith(
        "steady state (SNIA) reached at round 5 of 7: over the last 5 rounds of 1s IOPS varied by 0."
    )
    assert text(7.5, lambda at_s: 1000 * 0.9**at_s).startswith("steady state (SNIA) not reached in 7 rounds: over the")
    assert text(7.5, lambda at_s: 1000 if at_s < 6.2 else 100).startswith(
        "steady state (SNIA) lost again at round 7 of 7"
    )
    assert text(7.5, lambda _: 0).endswith("IOPS had rounds without I/O (limits 20 and 10 %)")
    assert text(3.5, lambda _: 1000) == ""
    assert text(3.5, lambda _: 1000, wanted=True) == (
        "steady state (SNIA) not checked: too short: it takes 5 rounds of 1s (--steady-round), and 3 are complete"
    )


def result_with(found: Steadiness, ended: str, *, solid_state: bool = False, until_steady: bool = False) -> RunResult:
    result = nothing_measured(JobSpec(knobs=WRITES, until_steady=until_steady, steady_round_s=1.0))
    about = replace(result.about, ended=ended, solid_state=solid_state, elapsed_s=6.0)
    return replace(result, about=about, steadiness=found)


def test_a_short_run_is_said_to_be_so_only_of_writes_to_what_does_not_rotate() -> None:
    short = watched(JobSpec(knobs=WRITES, steady_round_s=1.0), 3, lambda _: 1000).found
    reads = watched(JobSpec(steady_round_s=1.0), 3, lambda _: 1000).found
    said = [
        [badge.label for badge in run_badges(result_with(found, "runtime", solid_state=solid_state))]
        for found, solid_state in ((short, True), (short, False), (reads, True))
    ]
    assert said == [["steady: not checked"], [], []]


def test_a_run_until_steady_that_never_was_says_so_and_fails() -> None:
    steady = watched(JobSpec(knobs=WRITES, steady_round_s=1.0), 6, lambda _: 1000).found
    falling = watched(JobSpec(knobs=WRITES, steady_round_s=1.0), 6, lambda at_s: 1000 * 0.8**at_s).found
    assert not result_with(steady, "steady", until_steady=True).missed_steady
    assert not result_with(falling, "runtime").missed_steady
    assert not result_with(falling, "stopped", until_steady=True).missed_steady
    missed = result_with(falling, "runtime", until_steady=True)
    assert missed.missed_steady
    assert caveats(missed)[-1] == "--until-steady: no steady state within 6 s: give a longer --runtime"
    document = json.loads(json.dumps(run_document(missed), allow_nan=False))
    assert document["steady_state"]["reached"] is False
    assert len(document["steady_state"]["windows"][0]["values"]) == 5


def test_the_settings_are_keys_of_a_job_file() -> None:
    job = parse_job('until-steady = true\nsteady-round = "30s"\n')
    assert (job.until_steady, job.steady_round_s) == (True, 30.0)
    assert parse_job(dump_job(job)) == job
    assert "steady" not in dump_job(JobSpec())
    with pytest.raises(UsageError, match=r"--steady-round: 0\.5 is out of range: 1s or longer"):
        validate(replace(job, steady_round_s=0.5))
    turned = turn_between(1.0, job.knobs, replace(job.knobs, queue_depth=2))
    with pytest.raises(UsageError, match="--until-steady: a steady state needs knobs that stay"):
        validate_scenario(Scenario(job, (turned,)))
