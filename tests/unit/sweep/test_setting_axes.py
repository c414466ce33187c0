"""Settings of a job as axes: paths, HBA ports, controllers, stripe unit and copies; the load begins anew with each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.errors import LunscopeError, RefusedError, UsageError
from engine.job.sizes import format_blocks
from engine.job.spec import JobSpec, Knobs, PathSpec, Permissions, TargetSpec
from engine.replacing import replace
from engine.sweep import setting_axis
from engine.sweep.axes import parse_axis
from engine.sweep.document import sweep_document
from engine.sweep.plan import SweepPlan, make_plan, require_write_permission
from engine.sweep.points import Point
from engine.sweep.presets.plans import PresetPlan, plan_preset, preset_points
from engine.sweep.presets.preset import HostSize
from engine.sweep.presets.registry import preset_named
from engine.sweep.runner import SweepRunner
from tests.unit.sweep.fake_load import FakeLoad

PORTS = {"/dev/a": "host3", "/dev/b": "host4", "/dev/c": "host3", "/dev/d": "host4"}
LUN = JobSpec(targets=(TargetSpec.lun(tuple(map(PathSpec, PORTS))),))
DISKS = JobSpec(targets=tuple(map(TargetSpec, PORTS)), knobs=Knobs(stripe_width=4))


@pytest.fixture(autouse=True)
def known_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting_axis, "port_of", lambda node: PORTS.get(node, ""))


def plan_of(job: JobSpec, *axes: str) -> SweepPlan:
    return make_plan(job, tuple(map(parse_axis, axes)))


def nodes(plan: SweepPlan) -> list[list[str]]:
    return [[node for target in plan.job_at(curve).targets for node in target.nodes] for curve in plan.curves]


def test_the_first_paths_ports_and_controllers_are_used() -> None:
    a, b, c, d = PORTS
    assert nodes(plan_of(LUN, "paths=1,2,4")) == [[a], [a, b], [a, b, c, d]]
    assert nodes(plan_of(LUN, "ports=1,2")) == [[a, c], [a, b, c, d]]
    plan = plan_of(DISKS, "controllers=1,2", "qd=1,4")
    assert nodes(plan) == [[a, c], [a, b, c, d]]
    assert [plan.knobs_at(curve, 4).stripe_width for curve in plan.curves] == [2, 4]
    # One of each controller in turn: two disks are on both.
    narrow = plan_of(DISKS, "controllers=2", "stripe_width=2")
    assert [target.path for target in narrow.job_at(narrow.curves[0]).targets[:2]] == [a, b]
    assert plan.with_all_targets.targets == DISKS.targets


def test_units_and_copies_are_those_of_their_options() -> None:
    plan = plan_of(DISKS, "stripe_unit=4k,64k", "mirror=1,2")
    jobs = [plan.job_at(curve) for curve in plan.curves]
    assert [(job.stripe_unit_bytes, job.copies) for job in jobs] == [(4096, 1), (4096, 2), (65536, 1), (65536, 2)]
    assert plan.curves[1].name == "stripe_unit=4k mirror=2"
    assert plan.axes[0].text == "stripe_unit=4k,64k"
    assert parse_axis("stripe_unit=4k..16k").values == (4096, 8192, 16384)
    assert parse_axis("stripe-unit=4k").knob is plan.axes[0].knob


@pytest.mark.parametrize(
    ("job", "axis", "says"),
    [
        (LUN, "paths=1,8", "paths=8 cannot be measured: lun:/dev/a,/dev/b,/dev/c,/dev/d has 4 paths"),
        (DISKS, "paths=1", "name the paths of a LUN, such as --lun sda,sdb"),
        (LUN, "ports=4", "the HBA ports of the targets are 2: host3, host4"),
        (DISKS, "ports=1", "/dev/b has no path through host3: vary controllers instead"),
        (DISKS, "controllers=3", "the controllers of the targets are 2: host3, host4"),
        (LUN, "controllers=1", "several paths: vary ports instead"),
        (JobSpec(targets=(TargetSpec("/dev/loop0"),)), "controllers=1", "no HBA port is known of /dev/loop0"),
        (JobSpec(targets=(TargetSpec("/dev/a"),)), "stripe_unit=4k", "one target: nothing is striped"),
        (DISKS, "mirror=3", "no multiple of the 3 copies"),
        (DISKS, "stripe_unit=1000", "multiples of 512 from 4k"),
        (JobSpec(targets=(TargetSpec(),) * 2), "mirror=1,2", "scratch files would be filled each time"),
        (DISKS, "paths=0", "0 is out of range"),
    ],
)
def test_what_does_not_apply_is_refused_with_the_reason(job: JobSpec, axis: str, says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        plan_of(job, axis)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_writes_are_allowed_for_the_paths_in_use_only_if_all_of_them_are() -> None:
    plan = plan_of(LUN, "ports=1,2", "read_pct=0")
    with pytest.raises(RefusedError, match="--allow-write /dev/b"):
        require_write_permission(plan, Permissions(frozenset({"/dev/a", "/dev/c"})))
    require_write_permission(plan, Permissions(frozenset(PORTS)))


def run(plan: SweepPlan, load: FakeLoad) -> SweepRunner:
    runner = SweepRunner(plan, load, clock=load.clock)
    runner.run()
    return runner


def test_the_load_begins_anew_where_the_job_is_another_one() -> None:
    load = FakeLoad(lambda depth: 1000 * depth)
    plan = plan_of(LUN, "paths=1,2", "qd=1,8")
    runner = run(plan, load)
    assert runner.how_ended == "complete"
    assert [len(job.targets[0].paths) for job in load.jobs][:2] == [2, 1]
    assert {job.knobs.queue_depth for job in load.jobs} == {8}, "there is room for the deepest"
    assert [len(trials) for trials in runner.trials] == [6, 6]
    document = sweep_document(runner.result_so_far("complete"), ())
    assert [curve["knobs"] for curve in document["curves"]] == [{"paths": 1}, {"paths": 2}]  # type: ignore[attr-defined]
    job = runner.job_of(Point(1, 8))
    assert job is not None
    assert len(job.targets[0].paths) == 2
    plain = run(plan_of(LUN, "qd=1,8"), FakeLoad(lambda depth: 1000 * depth))
    assert plain.job_of(Point(0, 8)) is None


def test_a_load_that_cannot_begin_anew_ends_the_sweep() -> None:
    class Refused(FakeLoad):
        def begin_anew(self, *_arguments: object) -> None:
            self.ends_at_s = self.now_s
            raise LunscopeError("/dev/b: it is mounted")

    load = Refused(lambda depth: 1000 * depth)
    runner = run(plan_of(LUN, "paths=1,2"), load)
    assert runner.how_ended == "load failed: every I/O failed"
    assert runner.troubles == ("paths=2: left out: /dev/b: it is mounted",)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("bs=4k:50,16k:50", ["4k:50,16k:50"]),
        ("bs=4k,4k:50,16k:50,64k", ["4k", "4k:50,16k:50", "64k"]),
        ("bs=4k:60,16k:40,8k:30,64k:70", ["4k:60,16k:40", "8k:30,64k:70"]),
        ("bs=4k:99.8,16k:0.2,8k", ["4k:99.8,16k:0.2", "8k"]),
    ],
)
def test_mixes_of_sizes_are_values_of_an_axis(text: str, values: list[str]) -> None:
    axis = parse_axis(text)
    assert list(map(format_blocks, axis.values)) == values
    assert parse_axis(axis.text).values == axis.values


@pytest.mark.parametrize("text", ["bs=4k:50,16k", "bs=4k:50,16k:20", "bs=4k:50,,16k:50", "bs=4k:x,8k:50"])
def test_mixes_that_do_not_add_up_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--vary"):
        parse_axis(text)


def test_shares_of_slices_are_one_distribution() -> None:
    axis = parse_axis("distribution=uniform,locality:50,30,20,zones:60/10,40/90,zipf:1.1")
    assert [value.kind for value in axis.values] == ["uniform", "zones", "zones", "zipf"]
    assert parse_axis(axis.text).values == axis.values


def _preset(name: str, job: JobSpec) -> PresetPlan:
    permissions = Permissions(frozenset(PORTS))
    return plan_preset(preset_named(name), job, (), permissions, host=HostSize(4, 16 << 30), point_s=2.0)


def test_skytap_varies_controllers_over_as_many_disks_as_each_has() -> None:
    plan = _preset("skytap", DISKS)
    assert [part.name for part, _ in plan.parts] == ["", "controllers"]
    swept = plan.parts[1][1]
    assert [axis.text for axis in swept.axes][1:3] == ["controllers=1,2", "stripe_width=2"]
    load = FakeLoad(lambda depth: 1000 * depth)
    result = SweepRunner(swept, load, clock=load.clock).run()
    points = preset_points("controllers", result)
    (table,) = preset_named("skytap").tables(points)[1:]
    assert [row.cells[1:3] for row in table.rows][:2] == [(1.0, 2.0), (2.0, 2.0)]
    alone = _preset("skytap", replace(DISKS, targets=DISKS.targets[:2]))
    assert [part.name for part, _ in alone.parts] == [""]
    assert any("the number of controllers does not vary" in remark for remark in alone.remarks)


def test_multipath_compares_ports_with_one_of_them() -> None:
    plan = _preset("multipath", LUN)
    part, swept = plan.parts[1]
    assert part.name == "ports"
    assert [axis.text for axis in swept.axes][-2:] == ["ports=1,2", "qd=32"]

    class Ports(FakeLoad):
        """Two ports do twice the I/Os of one."""

        def begin_anew(self, job: JobSpec, knobs: Knobs, is_ended: Callable[[], bool]) -> None:
            self._throughput = lambda _depth: 1000 * len(job.targets[0].paths)
            super().begin_anew(job, knobs, is_ended)

    load = Ports(lambda _depth: 2000, noise=0.0)
    points = preset_points("ports", SweepRunner(swept, load, clock=load.clock).run())
    (table,) = (each for each in preset_named("multipath").tables(points) if each.rows and each.published_columns)
    times = {(row.cells[0], row.cells[1], row.cells[2]): row.cells[-1] for row in table.rows}
    assert times["read", "1k", 1.0] == pytest.approx(1.0)
    assert times["read", "1k", 2.0] == pytest.approx(2.0)
    beside = {row.published for row in table.rows if row.published}
    assert beside == {("chart 2, 2 ports, round-robin", "slightly over 2x the IOPS of one")}
    assert [row[0] for row in table.published_only] == ["chart 1, 4 ports, round-robin"]
