"""Searches for rates over real files: the runner on a real load, and the verb as a real process."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from engine.config import SCRATCH_ENV
from engine.events import EventKind
from engine.job.spec import JobSpec, Permissions
from engine.rate_search.answer import RateVerdict
from engine.rate_search.goal import RateGoal
from engine.rate_search.plan import RateRange, make_rate_plan
from engine.rate_search.runner import RateRunner
from engine.running.control import LoadControl
from engine.sweep.limit import Limit
from tests.kernel.forked_command import Forked, lunscope

HASTY = ("--size", "4m", "--tier", "kernel", "--goal", "width=20%,sum=1s,trial=200ms,first=200ms")
"""Neither precise nor settled: these tests are about what is done, not about how fast the disk is."""


def test_real_open_loop_is_searched_and_recorded(control: LoadControl) -> None:
    limits = (Limit.parse("p50<=0.1us"), Limit.parse("p90<=20ms"), Limit.parse("mean<=900ms"))
    goal = RateGoal(0.2, duration_sum_s=1.0, trial_s=0.2, first_trial_s=0.2)
    plan = make_rate_plan(JobSpec(size_bytes=4 << 20), limits, goal, RateRange(50.0, 800.0))
    control.arm(plan.armed, Permissions())
    control.start()
    result = RateRunner(plan, control, note=control.note_load).run()
    assert (result.ended, result.troubles) == ("complete", ())
    impossible, middle, _easy = result.curves[0].answers.limits
    assert impossible.verdict is RateVerdict.NONE_KEEPS
    if middle.lower is not None and middle.upper is not None:
        assert middle.lower.rate < middle.upper.rate
    trials = result.curves[0].trials
    assert all(trial.rate >= 50 for trial in trials)
    assert sum(trial.ios for trial in trials) > 0
    for trial in trials:
        assert trial.duration_s >= 0.2
        assert trial.iops > 0
        assert trial.excess["p50<=0.1us"] == 1
    notes = [event for event in control.take_events() if event.kind is EventKind.LOAD and "rate_search" in event.data]
    assert len(notes) == len(trials) + 2


def _process(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return Forked(
        "sweep",
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, SCRATCH_ENV: str(tmp_path / "scratch")},
    )


def _finished(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, SCRATCH_ENV: str(tmp_path / "scratch")}
    return lunscope("sweep", *arguments, env=environment, timeout_s=300)


def _document(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    done = _finished(tmp_path, *HASTY, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_verb_searches_the_rate_of_a_scratch_file(tmp_path: Path) -> None:
    document = _document(tmp_path, "--slo", "p99<=30ms", "--slo", "p50<=30ms", "--vary", "rate=100..4000")
    assert document["complete"]
    assert document["curves"] == []
    assert document["open_loop"]["arrival"] == "poisson"
    (search,) = document["open_loop"]["searches"]
    assert search["queue_depth"] == 128
    for each in search["limits"]:
        lower, upper = each["lower"], each["upper"]
        assert each["verdict"] != "undecided"
        assert lower is not None or upper is not None
        if lower is not None:
            assert 0 < each["conditional_throughput"] <= lower["rate"] <= 4000
            assert lower["kept"] > 0
        if lower is not None and upper is not None:
            assert lower["rate"] < upper["rate"]


@pytest.mark.waits
def test_closed_curve_and_open_rate_come_together(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    arguments = (
        "--vary",
        "qd=4",
        "--vary",
        "rate=200..500",
        "--slo",
        "p90<=500ms",
        "--bs",
        "64k",
        "--trials",
        str(trials),
    )
    document = _document(tmp_path, *arguments)
    (curve,) = document["curves"]
    assert curve["trials"]
    (search,) = document["open_loop"]["searches"]
    assert search["queue_depth"] == 4
    lines = (tmp_path / "trials.open").read_bytes().splitlines()
    assert sum(line.startswith(b'{"curve"') for line in lines) == len(search["trials"])
    # All of it is done: the same command only evaluates.
    again = _document(tmp_path, *arguments)
    assert again["open_loop"]["searches"] == document["open_loop"]["searches"]


def test_search_that_is_interrupted_prints_what_it_has(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    process = _process(tmp_path, "--slo", "p99<=5ms", "--size", "4m", "--trials", str(trials))
    deadline_s = time.monotonic() + 120
    while not trials.exists() or len(trials.read_bytes().splitlines()) < 4:
        assert time.monotonic() < deadline_s, "no trial was ever written"
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "not complete: stopped" in out
    assert "undecided" in out


def test_rates_are_tried_upwards_until_the_load_falls_short(control: LoadControl) -> None:
    goal = RateGoal(trial_s=0.2, first_trial_s=0.2, duration_sum_s=1.0)
    plan = make_rate_plan(JobSpec(size_bytes=4 << 20), (Limit.parse("p50<=0.1us"),), goal)
    control.arm(plan.armed, Permissions())
    control.start()
    result = RateRunner(plan, control).run()
    assert result.is_complete
    maximum = [trial for trial in result.curves[0].trials if trial.stage == "maximum"]
    rates = [trial.rate for trial in maximum]
    assert all(after in {before, 4 * before} for before, after in itertools.pairwise(rates))
    found = result.curves[0].answers.maximum
    last = [trial.iops for trial in maximum[-3:]]
    assert found is not None
    assert 0.999 * min(last) <= found <= 1.001 * max(last)
