"""What a sweep says of the devices below its targets, on loop devices one of which is slow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from collectors.advice import point_watch
from collectors.advice.finding import FindingKind
from collectors.advice.of_sweep import findings_of_sweep
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.running.control import LoadControl
from engine.statistics.batch_means import StopRule
from engine.sweep.axes import parse_axis
from engine.sweep.plan import make_plan
from engine.sweep.runner import SweepResult, SweepRunner
from tests import needs
from tests.kernel.forked_command import lunscope
from tests.kernel.throttle import slowed, throttle
from tests.unit.documents.printed import printed, unwrapped
from tui.headless.measuring import Sampling
from tui.options.watching import Watching, open_source

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
MakeLoop = Callable[..., str]
HASTY = StopRule(half_width=1.0, least_s=0.6, most_s=1.5, least_warm_up_s=0.3, most_warm_up_s=0.5, percent=50)

pytestmark = [needs.root, needs.loop]


@pytest.fixture(autouse=True)
def patient_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the samples of a point however long a busy host takes: a sweep goes on without them after 0.2 s."""
    monkeypatch.setattr(point_watch, "_SAMPLE_S", 60.0)


@contextmanager
def sampled(control: LoadControl) -> Iterator[Sampling]:
    source, _ = open_source(Watching(1.0, Path("/proc"), Path("/sys"), None, overwrite=False), control)
    sampling = Sampling.of(source, control, Watching(1.0, Path("/proc"), Path("/sys"), None, overwrite=False))
    sampling.monitor.start()
    try:
        sampling.monitor.wait_for_next(60)
        yield sampling
    finally:
        sampling.monitor.close()


def swept(devices: tuple[str, ...], *axes: str, slow: bool) -> SweepResult:
    """Sweep over devices, the last of which may do 500 I/Os per second only."""
    targets = tuple(map(TargetSpec, devices))
    job = JobSpec(targets=targets, knobs=Knobs(stripe_width=len(targets), rate_iops=2000.0))
    plan, control = make_plan(job, tuple(map(parse_axis, axes)), rule=HASTY), LoadControl()
    with sampled(control) as sampling, slowed(devices[-1], 500) if slow else nullcontext():
        try:
            control.arm(plan.armed, Permissions())
            control.turn(plan.first)
            control.start()
            result = SweepRunner(plan, control, watch=sampling.watch).run()
            host = sampling.watch.host()
        finally:
            control.close()
    assert result.ended == "complete"
    assert host is not None
    assert [disk["name"] for disk in host["disks"]] == [Path(each).name for each in devices]  # type: ignore[attr-defined]
    return result


def test_each_point_has_the_devices_of_its_own_interval(make_loop: MakeLoop, tmp_path: Path) -> None:
    device = make_loop(16 * MIB, folder=tmp_path)
    (curve,) = swept((device,), "qd=1,8", slow=False).curves
    for trial in curve.trials:
        assert trial.devices is not None
        disk = trial.devices["disks"][0]
        assert (disk["name"], disk["targets"], disk["top"]) == (Path(device).name, [device], True)
        assert trial.devices["elapsed_s"] >= trial.duration_s
        # The samples are taken right before and right after the epoch, during which the load goes on.
        assert disk["iops"] * trial.devices["elapsed_s"] >= 0.9 * trial.ios
        assert disk["in_flight"] <= 1.5 * trial.load + 1
        assert disk["tiers"]["iops"] == "kernel"


@throttle
def test_the_slow_one_of_two_is_named_with_its_cost(make_loop: MakeLoop, tmp_path: Path) -> None:
    fast, slow = (make_loop(16 * MIB, folder=tmp_path) for _ in range(2))
    result = swept((fast, slow), "qd=2,4", slow=True)
    named = {found.kind: found for found in findings_of_sweep(result)}
    assert named[FindingKind.SLOW_TARGET].about == (slow,)
    assert FindingKind.UNKNOWN not in named
    text = unwrapped(printed(result))
    assert f"without the lag of {slow} the mean latency would be" in text
    for trial in result.curves[0].trials:
        assert trial.devices is not None
        rates = {disk["name"]: disk["iops"] for disk in trial.devices["disks"]}
        assert {Path(fast).name, Path(slow).name} <= rates.keys()
        assert rates[Path(slow).name] <= 750


@pytest.mark.waits
def test_the_verb_measures_both_loops_and_its_file_has_host_and_devices(make_loop: MakeLoop, tmp_path: Path) -> None:
    device, trials = make_loop(16 * MIB, folder=tmp_path), tmp_path / "trials"
    arguments = ("-t", device, "--vary", "qd=2", "--rate", "5000", "--tier", "kernel", "--open-loop", "--json")
    done = lunscope("sweep", *arguments, "--trials", str(trials), timeout_s=600)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    (search,) = document["open_loop"]["searches"]
    rates = [trial["rate"] for trial in search["trials"]]
    assert rates == sorted(rates)
    assert len(rates) == 10
    assert rates[-1] == pytest.approx(10 * rates[0], rel=0.01)
    measured = [*document["curves"][0]["trials"], *search["trials"]]
    assert all(trial["devices"]["disks"][0]["name"] == Path(device).name for trial in measured)
    assert any(found["section"] == "limit" for found in document["findings"])
    assert document["host"]["cpus"] >= 1
    assert document["host"]["disks"][0]["scheduler"]
    for file in (trials, trials.with_name("trials.open")):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert lines[1]["host"]["kernel"] == document["host"]["kernel"]
        # A notice that comes up meanwhile changes the facts of the host, and they are written once more.
        kept = [line for line in lines[1:] if "host" not in line]
        assert kept
        assert all(line["devices"]["disks"] for line in kept)
