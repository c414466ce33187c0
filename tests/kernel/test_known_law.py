"""A knee of a file whose law is known; many more are in tests/truth (make truth)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl
from engine.statistics.batch_means import StopRule
from engine.sweep.axes import parse_axis
from engine.sweep.knee import Shape
from engine.sweep.plan import SweepPlan, each_once, make_plan
from engine.sweep.runner import SweepRunner
from tests import needs
from tests.truth.law_files import law_files, where_the_law_holds
from tests.unit.rate_search.law_device import Law

LAW = Law(2, 0.025)
HASTY = StopRule(least_s=0.5, most_s=0.7, least_warm_up_s=0.2, most_warm_up_s=0.4)


def _each_once(plan: SweepPlan) -> SweepPlan:
    curves = tuple(replace(curve, search=replace(curve.search, next_load=each_once)) for curve in plan.curves)
    return replace(plan, curves=curves)


@needs.law_files
@pytest.mark.waits
def test_knee_of_a_real_file_is_that_of_its_law(tmp_path: Path, control: LoadControl) -> None:
    with law_files(tmp_path, {"two": LAW}) as files:
        job = JobSpec(targets=(TargetSpec(path=files.path("two")),))
        plan = _each_once(make_plan(job, (parse_axis("qd=1,2,3,4,6,8,16,32"),), rule=HASTY))
        control.arm(plan.armed, Permissions())
        control.start()
        (curve,) = SweepRunner(plan, control).run().curves
        control.stop()
        found = curve.answer
        with where_the_law_holds(files):
            assert found.shape is Shape.KNEE
            assert found.balance is not None
            assert 1 <= found.balance.found <= 4
            assert found.highest is not None
            assert found.highest.at.iops == pytest.approx(LAW.maximum, rel=0.15)
