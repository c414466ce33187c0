"""Sweeps over real files and loop devices: the runner on a real load, and the verb as a real process."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine.config import SCRATCH_ENV
from engine.job.spec import JobSpec, Knobs, Permissions
from engine.running.control import LoadControl, LoadState
from engine.statistics.batch_means import StopRule
from engine.sweep.axes import parse_axis
from engine.sweep.plan import SweepPlan, make_plan
from engine.sweep.runner import SweepRunner
from engine.sweep.trial import Trial
from tests.kernel.forked_command import Forked, lunscope
from tests.kernel.trial_files import trial_lines, wait_for_trials

ROOT = Path(__file__).parents[2]
HASTY = StopRule(half_width=1.0, least_s=0.3, most_s=1.0, least_warm_up_s=0.3, most_warm_up_s=0.5, percent=50)
"""Neither precise nor settled: these tests are about what is done, not about how fast the disk is."""


def _running(control: LoadControl, *axes: str) -> SweepPlan:
    plan = make_plan(
        JobSpec(knobs=Knobs(rate_iops=500.0), size_bytes=4 << 20), tuple(map(parse_axis, axes)), rule=HASTY
    )
    control.arm(plan.armed, Permissions())
    control.turn(plan.first)
    control.start()
    return plan


@pytest.mark.waits
def test_trials_of_a_real_load_are_its_epochs(control: LoadControl) -> None:
    plan = _running(control, "qd=1,4", "bs=4k,16k")
    result = SweepRunner(plan, control).run()
    assert (result.ended, result.troubles) == ("complete", ())
    control.stop()
    run = control.result()
    assert run is not None
    measured = {(epoch.knobs.queue_depth, epoch.knobs.blocks, epoch.split.total.ios) for epoch in run.epochs}
    for curve in result.curves:
        assert len(curve.trials) >= 4
        for trial in curve.trials:
            # The epoch goes on for a moment after it was read.
            ios = [ios for depth, blocks, ios in measured if (depth, blocks) == (trial.load, curve.curve.knobs.blocks)]
            assert trial.ios > 0
            assert max(ios) >= trial.ios
            assert trial.iops == pytest.approx(trial.ios / trial.duration_s)
            assert trial.latencies_ns["p50"] > 0
            assert 0 < trial.in_flight <= 1.01 * trial.load, "moments of issue are known to 65 us"
            assert trial.errors == 0


def test_few_short_ios_in_flight_are_measured_not_sampled(control: LoadControl) -> None:
    """At 500 a second, in step with the windows of 20 ms, samples find any or none of them.

    A host that stops for a moment at either end of a trial, outside the windows, is in its latencies only: so most of
    the trials count.
    """
    plan = _running(control, "bs=4k,8k,16k")
    trials = SweepRunner(plan, control).run().curves[0].trials
    assert len(trials) >= 3
    by_latency = [trial.iops * trial.latency_ns / 1e9 for trial in trials]
    ratios = [trial.in_flight / expected for trial, expected in zip(trials, by_latency, strict=True)]
    assert statistics.median(ratios) == pytest.approx(1.0, abs=0.5), ratios


def test_load_that_is_stopped_ends_the_sweep(control: LoadControl) -> None:
    plan = _running(control, "qd=1..64")

    def end_load(_curve: int, _trial: Trial) -> None:
        control.stop()

    result = SweepRunner(plan, control, end_load).run()
    assert not result.is_complete
    assert len(result.curves[0].trials) == 1
    assert control.status.state is LoadState.FINISHED


def _environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, SCRATCH_ENV: str(tmp_path / "scratch")}


def _sweep(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return lunscope("sweep", *arguments, env=_environment(tmp_path), timeout_s=300)


def test_writing_needs_permission_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    done = _sweep(tmp_path, "--vary", "read_pct=100,50", "--target", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--allow-write {file}" in done.stderr
    assert file.read_bytes() == bytes(1 << 20)


def test_sweep_that_is_killed_goes_on_from_its_file_and_one_that_is_interrupted_prints(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    arguments = (
        "--vary",
        "qd=1,2",
        "--size",
        "4m",
        "--rate",
        "500",
        "--tier",
        "kernel",
        "--trials",
        str(trials),
        "--json",
    )
    killed = Forked(
        "sweep",
        *arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(tmp_path),
        start_new_session=True,
    )
    wait_for_trials(killed, trials, 1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=60)
    before = trial_lines(trials)[0]
    interrupted = Forked(
        "sweep", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(tmp_path)
    )
    wait_for_trials(interrupted, trials, 2)
    interrupted.send_signal(signal.SIGINT)
    out, errors = interrupted.communicate(timeout=120)
    assert interrupted.returncode == 130
    assert "goes on after 1 measurement in" in errors
    document: dict[str, Any] = json.loads(out)
    assert document["ended"] == "stopped"
    assert not document["complete"]
    assert any(each["section"] == "limit" for each in document["findings"])
    loads = [trial["load"] for trial in document["curves"][0]["trials"]]
    assert loads[:2] == [1, 2]
    assert document["curves"][0]["trials"][0]["ios"] == json.loads(before)["ios"]
