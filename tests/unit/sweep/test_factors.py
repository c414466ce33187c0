"""The factor table: each factor alone, in rounds, over disks whose law says which signs are right."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest

from collectors.advice.measured import answer_sections
from engine.errors import UsageError
from engine.job.knobs import Knobs
from engine.job.spec import JobSpec, PathSpec, Permissions, TargetSpec
from engine.replacing import replace
from engine.study.trial_file import TrialFile
from engine.sweep.axes import parse_axis
from engine.sweep.knee import Answer, Shape
from engine.sweep.plan import Curve, SweepPlan
from engine.sweep.presets.factors import FACTORS
from engine.sweep.presets.outcome import PresetOutcome
from engine.sweep.presets.plans import PresetPlan, plan_preset
from engine.sweep.presets.preset import HostSize
from engine.sweep.runner import CurveResult, SweepResult, SweepRunner
from engine.sweep.trial import Trial
from tests.unit.documents.printed import shown, unwrapped
from tests.unit.sweep.fake_load import FakeLoad

ROUNDS = FACTORS.rounds
SERVICE_S = 0.0005
BYTES_PER_S = 2e9
"""What one disk transfers beside its service time."""


def _plan(*vary: str, targets: int = 4, job: JobSpec | None = None) -> PresetPlan:
    job = job or JobSpec(targets=(TargetSpec(),) * targets)
    changes = tuple(map(parse_axis, vary))
    return plan_preset(FACTORS, job, changes, Permissions(), host=HostSize(4, 1 << 34), point_s=5.0)


def _slower(block_bytes: int) -> float:
    """How many times as long a block takes as one of 8k."""
    return (SERVICE_S + block_bytes / BYTES_PER_S) / (SERVICE_S + 8192 / BYTES_PER_S)


def _iops(curve: Curve, servers: int, thread_iops: float, port_iops: float) -> float:
    """So many servers on each disk, whose time grows with the block, and limits of each engine thread and each port."""
    knobs, ports = curve.knobs, next((value for knob, value in curve.values if knob.key == "controllers"), 1)
    service_s = SERVICE_S + knobs.block_sizes[0] / BYTES_PER_S
    of_disks = knobs.stripe_width * min(knobs.queue_depth, servers) / service_s
    return min(of_disks, knobs.threads * thread_iops, ports * port_iops)


def _outcome(
    plan: PresetPlan,
    servers: int,
    *,
    thread_iops: float = math.inf,
    port_iops: float = math.inf,
    noise: float = 0.004,
    drift: float = 0.0,
    seed: int = 1,
) -> PresetOutcome:
    """Measure round by round, with noise and a drift over the whole of it."""
    (_, sweep), chance = plan.parts[0], random.Random(seed)
    trials: list[list[Trial]] = [[] for _ in sweep.curves]
    points = ROUNDS * len(sweep.curves)
    for at, curve in enumerate(curve for number in range(ROUNDS) for curve in sweep.in_round(number)):
        iops = (
            _iops(curve, servers, thread_iops, port_iops) * math.exp(chance.gauss(0, noise)) * (1 + drift * at / points)
        )
        latency_ns = curve.knobs.stripe_width * curve.knobs.queue_depth / iops * 1e9
        trials[curve.index].append(_trial(curve.knobs, iops, latency_ns, at * 7.0))
    unfitted = Answer(Shape.UNKNOWN, "")
    curves = tuple(CurveResult(curve, tuple(each), unfitted) for curve, each in zip(sweep.curves, trials, strict=True))
    return PresetOutcome(plan, (SweepResult(sweep, curves, "complete", (), 300.0),), ())


def _trial(knobs: Knobs, iops: float, latency_ns: float, start_s: float) -> Trial:
    return Trial(
        load=1.0,
        in_flight=knobs.stripe_width * knobs.queue_depth,
        iops=iops,
        latency_ns=latency_ns,
        bytes_per_s=iops * knobs.block_sizes[0],
        average_peak_ns=4 * latency_ns,
        start_s=start_s,
        duration_s=5.0,
        ios=10_000,
    )


def _signs(outcome: PresetOutcome) -> dict[str, tuple[int | None, ...]]:
    """Effects on IOPS, MB/s, mean and peak: in per cent, 0 for none, None where it is undecided."""
    return {str(row.cells[0]): tuple(map(_sign, row.cells[3:])) for row in outcome.tables[0].rows}


def _sign(cell: object) -> int | None:
    return None if cell == "undecided" else 0 if cell == "none" else int(str(cell).removesuffix(" %").replace(",", ""))


@pytest.mark.parametrize("drift", [0.0, -0.1])
@pytest.mark.parametrize("seed", range(3))
def test_signs_are_those_of_the_law_below_the_knee(seed: int, drift: float) -> None:
    """16 servers: 8 outstanding leave half of them idle."""
    found = _signs(_outcome(_plan(), 16, seed=seed, drift=drift))
    assert found["disks"] == pytest.approx((100, 100, 0, 0), abs=2)
    assert found["queue depth"] == pytest.approx((100, 100, 0, 0), abs=2)
    assert found["striping"] == (0, 0, 0, 0)
    assert found["threads"] == (0, 0, 0, 0)
    assert found["block size"] == pytest.approx((0, 100 * (2 / _slower(16384) - 1), 0, 0), abs=3)


@pytest.mark.parametrize("seed", range(3))
def test_signs_are_those_of_the_law_beyond_the_knee(seed: int) -> None:
    """4 servers: 8 outstanding wait for each other, so that more disks or less depth shorten the wait."""
    found = _signs(_outcome(_plan("bs=8k,256k"), 4, seed=seed))
    assert found["disks"] == pytest.approx((100, 100, 0, 0), abs=2)
    assert found["striping"] == pytest.approx((100, 100, -50, -50), abs=2)
    assert found["queue depth"] == pytest.approx((0, 0, 100, 100), abs=2)
    slower = _slower(262144)
    longer = 100 * (slower - 1)
    assert found["block size"] == pytest.approx(
        (100 * (1 / slower - 1), 100 * (32 / slower - 1), longer, longer), rel=0.02, abs=2
    )


def test_threads_have_an_effect_where_the_processor_is_the_limit() -> None:
    found = _signs(_outcome(_plan(), 16, thread_iops=10_000.0))
    assert found["threads"] == pytest.approx((100, 100, -50, -50), abs=2)
    assert found["disks"] == pytest.approx((0, 0, 100, 100), abs=2)


def test_noise_is_undecided_and_intervals_hold_as_often_as_they_say() -> None:
    noisy = _signs(_outcome(_plan(), 16, noise=0.1))
    assert None in noisy["striping"]
    held = Counter[bool]()
    for seed in range(60):
        table = _outcome(_plan(), 16, noise=0.02, seed=seed).tables[1]
        for row in table.rows:
            if row.cells[0] in {"striping", "disks"} and row.cells[3] == "IOPS":
                _, _, _, _, _, low, high, rounds = row.cells
                truth = 100.0 if row.cells[0] == "disks" else 0.0
                assert isinstance(low, float)
                assert isinstance(high, float)
                assert rounds == ROUNDS
                held[low <= truth <= high] += 1
    assert held[True] >= 0.9 * held.total()


def test_each_step_of_an_axis_is_a_row() -> None:
    rows = [row.cells[:3] for row in _outcome(_plan("qd=4,8,16", "threads=1"), 16).tables[0].rows]
    assert rows == [
        ("block size", "8k", "16k"),
        ("disks", "2", "4"),
        ("striping", "2 x QD 4", "4 x QD 2"),
        ("queue depth", "4", "8"),
        ("queue depth", "8", "16"),
    ]


def _on_ports(monkeypatch: pytest.MonkeyPatch, *counts: int) -> JobSpec:
    """Make a job over targets of HBA ports, so many of each."""
    port_of = {f"/dev/p{port}d{disk}": f"host{port}" for port, count in enumerate(counts) for disk in range(count)}
    monkeypatch.setattr("engine.sweep.setting_axis.port_of", lambda node: port_of.get(node, ""))
    return JobSpec(targets=tuple(map(TargetSpec, port_of)))


def test_controllers_are_a_factor_over_the_same_number_of_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan(job=_on_ports(monkeypatch, 4, 4))
    assert not any("controllers" in remark for remark in plan.remarks)
    sweep = plan.plans[0]
    used = {
        {knob.key: value for knob, value in curve.values}["controllers"]: [
            target.path for target in sweep.job_at(curve).targets[: curve.knobs.stripe_width]
        ]
        for curve in sweep.curves
        if curve.knobs == sweep.curves[0].knobs
    }
    assert used == {1: ["/dev/p0d0", "/dev/p0d1"], 2: ["/dev/p0d0", "/dev/p1d0"]}
    found = _signs(_outcome(plan, 16, port_iops=20_000.0))
    assert found["controllers"] == pytest.approx((57, 57, -36, -36), abs=3)
    assert found["disks"] == pytest.approx((0, 0, 100, 100), abs=3)


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((8,), "all targets are on host0"),
        ((4, 3), "it takes 4 targets on each of two, and one has 3"),
    ],
)
def test_controllers_that_are_no_factor_are_said_with_the_reason(
    counts: tuple[int, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _plan(job=_on_ports(monkeypatch, *counts))
    assert f"the number of controllers is no factor: {why}" in plan.remarks
    assert "controllers" not in {axis.knob.key for axis in plan.plans[0].axes}


def test_what_has_no_controller_or_several_paths_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the number of controllers is no factor: scratch files are on one" in _plan().remarks
    _on_ports(monkeypatch, 1)
    unknown = _plan(job=JobSpec(targets=(TargetSpec("/dev/x"),)))
    assert any("no HBA port is known of /dev/x" in remark for remark in unknown.remarks)
    lun = _plan(job=JobSpec(targets=(TargetSpec.lun((PathSpec("/dev/a"), PathSpec("/dev/b"))),)))
    assert any("the targets have several paths" in remark for remark in lun.remarks)


def test_a_tunable_that_varies_is_a_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sweep.presets.plans.check_tuning", lambda _plan: None)  # The targets are no disks.
    rows = [row.cells for row in _outcome(_plan("tune.nr_requests=32,64", "bs=8k", "threads=1"), 16).tables[0].rows]
    assert [row[0] for row in rows] == ["disks", "striping", "queue depth", "tune.nr_requests"]
    assert rows[-1] == ("tune.nr_requests", "32", "64", "none", "none", "none", "none")


def test_one_target_leaves_disks_and_striping_out_with_the_reason() -> None:
    plan = _plan(targets=1)
    assert "one target: neither the number of disks nor striping is a factor" in " ".join(plan.remarks)
    assert [row.cells[0] for row in _outcome(plan, 16).tables[0].rows] == ["block size", "threads", "queue depth"]
    with pytest.raises(UsageError, match="leave out --qd-total"):
        _plan(job=JobSpec(targets=(TargetSpec(),) * 2, total_queue_depth=True))


def _runner(plan: SweepPlan, load: FakeLoad, file: TrialFile[Trial] | None = None) -> SweepRunner:
    keep = (lambda _curve, _trial: None) if file is None else file.append
    done = () if file is None else tuple(file.done)
    return SweepRunner(plan, load, keep, done, clock=load.clock)


def test_rounds_have_all_points_in_another_order_each_and_go_on(tmp_path: Path) -> None:
    ((_, plan),) = _plan().parts
    assert plan.trials == ROUNDS * len(plan.curves) == 36
    load = FakeLoad(lambda depth: 1000 * depth)
    with TrialFile(tmp_path / "trials", plan) as file:
        first = _runner(plan, load, file)
        load.on_wait = lambda: first.stop() if first.done == 8 else None
        first.run()
    load = FakeLoad(lambda depth: 1000 * depth)
    with TrialFile(tmp_path / "trials", plan) as file:
        assert len(file.done) == 8
        result = _runner(plan, load, file).run()
        assert result.is_complete
        assert [len(curve.trials) for curve in result.curves] == [ROUNDS] * len(plan.curves)
    load = FakeLoad(lambda depth: 1000 * depth)
    _runner(plan, load).run()
    count = len(plan.curves)
    rounds = [tuple(load.turns[at : at + count]) for at in range(0, len(load.turns), count)]
    assert all(set(each) == {curve.knobs for curve in plan.curves} for each in rounds)
    assert len(set(rounds)) > 1


def test_a_table_of_what_was_measured_up_to_now_has_what_is_known() -> None:
    outcome = _outcome(_plan(), 16)
    (result,) = outcome.results
    curves = tuple(replace(curve, trials=curve.trials[: 1 + (curve.curve.index < 2)]) for curve in result.curves)
    early = replace(outcome, results=(replace(result, curves=curves, ended="stopped"),))
    signs = {row.cells[0]: row.cells[3] for row in early.tables[0].rows}
    assert signs["threads"] is None
    assert signs["block size"] is not None
    none = replace(outcome, results=(replace(result, curves=(replace(curves[0], trials=()), *curves[1:])),))
    assert [table.title for table in none.tables] == ["every measurement"]


def test_text_says_what_was_published() -> None:
    text = unwrapped(shown(answer_sections([_outcome(_plan(), 16)])))
    assert "striping alone adds none" in text
    assert "effects with their 95 % intervals" in text
