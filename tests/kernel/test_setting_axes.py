"""Settings of a job as axes over real devices: the load begins anew between the curves."""

from __future__ import annotations

import os

import pytest

from engine.job.spec import JobSpec, Knobs, PathSpec, Permissions, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl
from engine.statistics.batch_means import StopRule
from engine.sweep.axes import parse_axis
from engine.sweep.plan import each_once, make_plan
from engine.sweep.runner import SweepRunner
from tests import needs
from tests.kernel.conftest import Storage
from tests.kernel.throttle import slowed_alike, throttle

RULE = StopRule(half_width=1.0, least_s=2.0, most_s=2.0, least_warm_up_s=0.5, most_warm_up_s=0.5, percent=50)

_CAP_IOPS = 300
_MOST_RUNNABLE = 2.0


@throttle
@needs.loop
@pytest.mark.waits
@pytest.mark.alone
def test_four_equally_capped_paths_do_four_times_as_much_as_one(control: LoadControl, storage: Storage) -> None:
    backing = storage.image(8 << 20)
    paths = [storage.loop(backing=backing) for _ in range(4)]
    job = JobSpec(targets=(TargetSpec.lun(tuple(map(PathSpec, paths))),), knobs=Knobs(queue_depth=32))
    plan = make_plan(job, (parse_axis("paths=1,2,4"),), rule=RULE)
    curves = tuple(replace(curve, search=replace(curve.search, next_load=each_once)) for curve in plan.curves)
    plan = replace(plan, curves=curves)
    with slowed_alike(paths, _CAP_IOPS):
        control.arm(plan.armed, Permissions())
        control.turn(plan.first)
        control.start()
        result = SweepRunner(plan, control).run()
        control.stop()
    assert (result.ended, result.troubles) == ("complete", ())
    one, two, four = (curve.trials[0].iops for curve in result.curves)
    runnable = os.getloadavg()[0] / (os.cpu_count() or 1)
    if runnable > _MOST_RUNNABLE and four < 0.97 * 4 * _CAP_IOPS:
        pytest.skip(f"needs an idle host: {runnable:.1f} tasks for each processor let no caps hold")
    assert two / one == pytest.approx(2.0, rel=0.03)
    assert four / one == pytest.approx(4.0, rel=0.03)
