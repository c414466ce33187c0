"""Limits on dirty memory, of which setting one makes another 0, and the cache of SCSI disks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import LunscopeError, UsageError
from engine.job.spec import JobSpec, TargetSpec
from engine.sweep.axes import parse_axis
from engine.sweep.plan import make_plan as make_sweep
from engine.sweep.tuning import SweepTuning
from engine.tune.apply import apply_plan, restore
from engine.tune.held import HeldChanges
from engine.tune.journal import Journal
from engine.tune.persist import configuration
from engine.tune.registry import BY_ID
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, TunedKind
from engine.tune.udev_rules import SavedSetting
from engine.tune.write_back import Sysctl
from tests.fake_kernel import FakeKernel
from tests.unit.tune.hosts import make_host, plan_of

VALUES = {
    "dirty_ratio": "20",
    "dirty_bytes": "0",
    "dirty_background_ratio": "10",
    "dirty_background_bytes": "0",
    "dirty_expire_centisecs": "3000",
    "dirty_writeback_centisecs": "500",
}


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = make_host(tmp_path / "host")
    for name, value in VALUES.items():
        kernel.write_proc(f"sys/vm/{name}", f"{value}\n")
    for name, address in (("sda", "0:0:0:97"), ("sdb", "1:0:0:98")):
        kernel.set(name, f"device/scsi_disk/{address}/cache_type", "write back\n")
    return kernel


@pytest.fixture
def tree(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelTree]:
    """A tree whose sysctls are coupled as those of mm/page-writeback.c; no file takes 0 for bytes."""
    write = Sysctl.write

    def coupled(self: Sysctl, tree: KernelTree, target: Target, value: str) -> None:
        if self.name.endswith("bytes") and value == "0":
            raise LunscopeError(f"{self.name}: Invalid argument")
        write(self, tree, target, value)
        if self.instead:
            kernel.write_proc(f"sys/{self.instead}", "0\n")

    monkeypatch.setattr(Sysctl, "write", coupled)
    with KernelTree(kernel.sysfs) as tree:
        yield tree


def values(kernel: FakeKernel) -> dict[str, str]:
    return {name: (kernel.procfs / "sys/vm" / name).read_text().strip() for name in VALUES}


@pytest.mark.parametrize(
    "settings",
    [
        ["vm.dirty_ratio=40"],
        ["vm.dirty_bytes=64m"],
        ["vm.dirty_background_bytes=16m", "vm.dirty_bytes=64m"],
        ["vm.dirty_expire_centisecs=100", "vm.dirty_writeback_centisecs=0"],
    ],
)
def test_limits_are_set_and_those_used_before_are_used_again(
    kernel: FakeKernel, tree: KernelTree, settings: list[str]
) -> None:
    plan = plan_of(tree, settings, "host")
    apply_plan(tree, plan)
    assert values(kernel) != VALUES
    assert not restore(tree, plan).left
    assert values(kernel) == VALUES


def test_a_limit_and_the_one_that_it_replaces_are_not_set_together(kernel: FakeKernel, tree: KernelTree) -> None:
    plan = plan_of(tree, ["vm.dirty_ratio=40", "vm.dirty_bytes=64m"], "all")
    with pytest.raises(LunscopeError, match="another value of the change made it 0"):
        apply_plan(tree, plan)
    restore(tree, plan, force=True)
    assert values(kernel) == VALUES


def test_limits_belong_to_the_host(tree: KernelTree) -> None:
    with pytest.raises(UsageError, match="belongs to the host: --on all"):
        plan_of(tree, ["vm.dirty_ratio=40"], "sda")
    with pytest.raises(UsageError, match=r"101 is not legal: 0..100"):
        plan_of(tree, ["vm.dirty_ratio=101"], "host")
    Path(tree.root.parent / "proc/sys/vm/dirty_ratio").unlink()
    with pytest.raises(UsageError, match="this host does not have it"):
        plan_of(tree, ["vm.dirty_ratio=40"], "host")


def test_they_are_saved_as_sysctls(tree: KernelTree) -> None:
    host = Target(TunedKind.HOST, "host", "")
    saved = configuration(
        tree,
        [
            SavedSetting(BY_ID[f"vm.{name}"], host, value)
            for name, value in (("dirty_ratio", "0"), ("dirty_bytes", "4096"))
        ],
    )
    (file,) = saved.files
    assert file.belongs == "/etc/sysctl.d/60-lunscope-tune.conf"
    assert file.text.splitlines()[1:] == ["vm.dirty_bytes = 4096"]


def test_they_are_axes_of_sweeps_over_files(kernel: FakeKernel, tree: KernelTree, tmp_path: Path) -> None:
    job = JobSpec(targets=(TargetSpec(),))
    plan = make_sweep(job, (parse_axis("tune.vm.dirty_ratio=5,40"), parse_axis("qd=1,2")))
    held = HeldChanges(tree.root, Journal(tmp_path / "state"))
    tuning = SweepTuning(plan, tree.root, held)
    tuning.check()
    for curve in plan.curves:
        tuning.set(curve)
        (wanted,) = (value for knob, value in curve.values if knob.key == "tune.vm.dirty_ratio")
        assert values(kernel)["dirty_ratio"] == wanted
    assert not list(tuning.close())
    assert values(kernel) == VALUES


def test_the_cache_of_scsi_disks(kernel: FakeKernel, tree: KernelTree) -> None:
    plan = plan_of(tree, ["cache_type=write through"], "sda", "sdb", "loop0")
    assert [write.target.name for write in plan.writes] == ["sda", "sdb"]
    apply_plan(tree, plan)
    file = kernel.sysfs / kernel.disks["sda"].folder / "device/scsi_disk/0:0:0:97/cache_type"
    assert file.read_text().strip() == "write through"
    assert not restore(tree, plan).left
    assert file.read_text().strip() == "write back"
    with pytest.raises(UsageError, match="is not legal: write through"):
        plan_of(tree, ["cache_type=fast"], "sda")
    saved = configuration(tree, [SavedSetting(one.tunable, one.target, one.after) for one in plan.writes[:1]])
    assert not saved.files
    assert "keeps its mode page itself" in saved.left_out[0]
    assert Host(tree).disks
