"""Points of an isolation curve that are kept: read back, and not measured again."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from engine.errors import UsageError
from engine.isolation.aggressor_group import AggressorGroup, LimitHierarchy
from engine.isolation.caps import NO_CAP, Cap
from engine.isolation.kept_point import point_document
from engine.isolation.plan import IsolationPlan, plan_isolation
from engine.isolation.runner import IsolationRunner
from engine.isolation.study import AggressorLoad, IsolationPoint, point_name
from engine.running.control import LoadControl
from engine.study.runner import Wanted
from engine.study.trial_file import TrialFile
from tests.app.isolation_states import isolation_plan, isolation_points

GROUP = cast(AggressorGroup, None)


class QuickRunner(IsolationRunner):
    """Measures a device by law, at once, up to `most` points."""

    def __init__(self, plan: IsolationPlan, kept: TrialFile[IsolationPoint], most: int = 1000) -> None:
        hierarchy = LimitHierarchy(Path("/nonexistent"), unified=True)
        sysfs = Path("/nonexistent")
        super().__init__(plan, LoadControl(), kept.append, kept.done, hierarchy=hierarchy, sysfs=sysfs)
        self.measured: list[str] = []
        self._most = most

    def measure(self) -> None:
        """Measure all points."""
        self.run()

    def wanted(self) -> Generator[Wanted[IsolationPoint, IsolationPoint]]:
        return self._points(GROUP)

    def _made(self, load: AggressorLoad | None, cap: Cap) -> IsolationPoint:
        if len(self.measured) == self._most:
            raise KeyboardInterrupt
        self.measured.append(point_name(load, cap))
        return next(each for each in isolation_points(self.plan) if (each.aggressor, each.cap) == (load, cap))

    def _alone(self) -> IsolationPoint:
        return self._made(None, NO_CAP)

    def _beside(self, load: AggressorLoad, cap: Cap, _group: AggressorGroup) -> IsolationPoint:
        return self._made(load, cap)

    @contextmanager
    def _capped(self, _cap: Cap, _group: AggressorGroup) -> Iterator[None]:
        yield


def names(points: tuple[IsolationPoint, ...]) -> list[str]:
    return [point_name(point.aggressor, point.cap) for point in points]


@pytest.mark.parametrize("most", [0, 1, 6, 13])
def test_it_goes_on_from_the_points_kept(tmp_path: Path, most: int) -> None:
    plan, path = isolation_plan(), tmp_path / "points"
    with TrialFile(path, plan) as file, pytest.raises(KeyboardInterrupt):
        QuickRunner(plan, file, most).measure()
    with path.open("ab") as cut_off:
        cut_off.write(b'{"point": {"lo')
    with TrialFile(path, plan) as file:
        assert len(file.done) == most
        second = QuickRunner(plan, file)
        second.measure()
    wanted = isolation_points(plan)
    assert len(second.measured) == len(wanted) - most
    assert list(map(point_document, second.study.points)) == list(map(point_document, wanted))
    with TrialFile(path, plan) as file:
        third = QuickRunner(plan, file)
        third.measure()
    assert third.measured == []
    assert third.study.is_complete


def test_after_a_point_that_was_skipped_the_victim_is_measured_alone_once_more(tmp_path: Path) -> None:
    plan = isolation_plan()
    points = isolation_points(plan)
    with TrialFile(tmp_path / "points", plan) as file:
        for point in (*points[:5], *points[6:]):
            file.append(0, point)
    for again in (False, True):
        with TrialFile(tmp_path / "points", plan) as file:
            runner = QuickRunner(plan, file)
            runner.measure()
        skipped = point_name(points[5].aggressor, points[5].cap)
        assert runner.measured == ([] if again else [skipped, "the victim alone"])
        assert sorted(names(runner.study.points)) == sorted(names(tuple(points)))
        assert runner.study.points[-1].aggressor is None


def test_a_file_of_another_curve_or_with_a_damaged_line_is_refused(tmp_path: Path) -> None:
    plan, path = isolation_plan(), tmp_path / "points"
    with TrialFile(path, plan) as file:
        file.append(0, isolation_points(plan)[0])
    other = plan_isolation(plan.victim, vary=("qd=1,4,16,64",), caps=["riops=7"], seconds=6)
    with pytest.raises(UsageError, match="another job"), TrialFile(path, other):
        pass
    path.write_bytes(path.read_bytes() + b'{"point": {"load": [0, "4k"]}}\n')
    with pytest.raises(UsageError, match="line 3 is damaged"), TrialFile(path, plan):
        pass
