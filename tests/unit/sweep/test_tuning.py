"""Tunables as axes of a sweep, over a fake host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from engine.errors import LunscopeError, UsageError
from engine.hostfs.mounts import MountEntry
from engine.job.spec import JobSpec, TargetSpec
from engine.replacing import replace
from engine.sweep import tuning
from engine.sweep.axes import parse_axis
from engine.sweep.plan import SweepPlan, make_plan
from engine.sweep.tuning import SweepTuning
from engine.tune.held import HeldChanges
from engine.tune.journal import Journal
from engine.tune.planned_writes import TunePlan
from engine.tune.tunable import Tunable
from tests.fake_kernel import FakeKernel
from tests.unit.tune.hosts import make_host


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return make_host(tmp_path / "host")


def plan_of(*axes: str, path: str = "/dev/sda") -> SweepPlan:
    job = JobSpec(size_bytes=4 << 20)
    plan = make_plan(job, tuple(map(parse_axis, axes)))
    return replace(plan, job=replace(job, targets=(TargetSpec(path),)))


def tuning_of(plan: SweepPlan, kernel: FakeKernel) -> SweepTuning:
    journal = Journal(kernel.sysfs.parent / "state")
    return SweepTuning(plan, kernel.sysfs, HeldChanges(kernel.sysfs, journal))


def requests(kernel: FakeKernel, name: str) -> str:
    return (kernel.sysfs / "block" / name / "queue/nr_requests").read_text().strip()


def test_axes_are_read_and_named() -> None:
    axis = parse_axis("tune.nr_requests=32..128")
    assert (axis.knob.key, axis.values, axis.text) == (
        "tune.nr_requests",
        ("32", "64", "128"),
        "tune.nr_requests=32,64,128",
    )
    plan = plan_of("qd=1..4", "tune.scheduler=none,mq-deadline")
    assert plan.load is not None
    assert plan.load.knob.key == "qd"
    assert [curve.name for curve in plan.curves] == ["tune.scheduler=none", "tune.scheduler=mq-deadline"]
    with pytest.raises(UsageError, match="nr_request"):
        parse_axis("tune.nr_request=1,2")
    with pytest.raises(UsageError, match="comes twice"):
        parse_axis("tune.nr_requests=1,1")


def test_values_are_set_between_points_and_restored(kernel: FakeKernel) -> None:
    plan = plan_of("tune.nr_requests=32,128,64", path="/dev/dm-0")
    tuning = tuning_of(plan, kernel)
    tuning.check()
    assert requests(kernel, "sda") == "128"
    for curve, wanted in zip(plan.curves, ("32", "128", "64"), strict=True):
        tuning.set(curve)
        assert [requests(kernel, name) for name in ("sda", "sdb", "sdc")] == [wanted, wanted, "128"]
    assert list(tuning.close()) == []
    assert requests(kernel, "sda") == "128"


@pytest.mark.parametrize(
    ("axis", "path", "says"),
    [
        ("tune.nr_requests=32,100000", "/dev/sda", "100000 is not legal: 4..256"),
        ("tune.iopolicy=numa,round-robin", "/dev/sda", "nothing in this scope has it"),
        ("tune.io.max.rbps=1000,2000", "/dev/sda", "it is of a cgroup and device"),
        ("tune.nr_requests=32,64", "/tmp/file", "^--vary tune.nr_requests: /tmp/file is no device: name the disk"),
        ("tune.nfs.transports=1,2", "/tmp/file", "^--vary tune.nfs.transports: /tmp/file is not on NFS: name files"),
        ("tune.nr_requests=32,64", "/dev/nosuchdisk", "no such disk"),
    ],
)
def test_what_cannot_be_set_is_refused_before_it_begins(kernel: FakeKernel, axis: str, path: str, says: str) -> None:
    tuning = tuning_of(plan_of(axis, path=path), kernel)
    with pytest.raises(LunscopeError, match=says):
        tuning.check()
    assert requests(kernel, "sda") == "128"


def test_a_read_only_file_is_refused_before_it_begins(kernel: FakeKernel) -> None:
    (kernel.sysfs / "block/sda/queue/nr_requests").chmod(0o444)
    with pytest.raises(LunscopeError, match="read-only: the driver cannot change it"):
        tuning_of(plan_of("tune.nr_requests=32,64"), kernel).check()


def test_transports_are_those_of_the_mounts_of_the_targets(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = MountEntry(0, "/mnt/four", "nfs4", "server:/", "rw", "", "")
    monkeypatch.setattr(tuning, "mount_of", lambda _fd: mount)
    asked = list[tuple[str, ...]]()

    class Held(HeldChanges):
        def plan(self, scopes: Sequence[str], settings: Mapping[Tunable, str]) -> TunePlan:  # noqa: ARG002
            asked.append(tuple(scopes))
            return super().plan(("host",), {})

    plan = plan_of("tune.nfs.transports=1,2,4", path="/tmp")
    SweepTuning(plan, kernel.sysfs, Held(kernel.sysfs, Journal(kernel.sysfs.parent / "state"))).check()
    assert asked == [("host", "nfs:/mnt/four")] * 3
