"""Several loads at once in this process: failing, stalling and ending each by itself, on targets they share."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.background_call import BackgroundCall
from engine.config import SCRATCH_ENV
from engine.errors import RefusedError, StoppedError, UsageError
from engine.job.group import FlowPart, GroupedLoad, LoadGroup
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.running.control import LoadControl, LoadState
from engine.running.group_control import GroupControl
from tests import needs
from tests.kernel.backends import eventually
from tests.kernel.stalling import stalling_disk

pytestmark = [needs.root, needs.loop]
PATIENCE_S = 60.0
MIB = 1 << 20
NOTHING = Permissions()

MakeLoop = Callable[..., str]


@pytest.fixture
def control() -> Iterator[GroupControl]:
    control = GroupControl()
    yield control
    control.stop()


def job(name: str, target: str, read_pct: float = 100.0, **others: Any) -> JobSpec:
    return JobSpec((TargetSpec(target),), Knobs(queue_depth=2, read_pct=read_pct), name=name, **others)


def group(*jobs: JobSpec) -> LoadGroup:
    return LoadGroup(tuple(map(GroupedLoad, jobs)))


def writing(target: str) -> Permissions:
    return Permissions(frozenset({target}), destroy_data=True)


def started(control: GroupControl, loads: LoadGroup, permissions: Permissions = NOTHING) -> None:
    control.arm(loads, permissions)
    control.start()


def claim(device: str) -> None:
    os.close(os.open(device, os.O_RDONLY | os.O_EXCL))


def test_a_claim_is_kept_until_the_last_load_on_the_device_ends(control: GroupControl, make_loop: MakeLoop) -> None:
    device = make_loop()
    loads = group(job("short", device, 0.0, io_bytes=MIB, loops=1), job("long", device, 0.0))
    started(control, loads, writing(device))
    (_, short), (_, long) = control.loads
    eventually(lambda: short.status.state is LoadState.FINISHED)
    assert long.status.state is LoadState.RUNNING
    with pytest.raises(OSError, match="busy") as caught:
        claim(device)
    assert caught.value.errno == errno.EBUSY
    assert long.status.state is LoadState.RUNNING
    control.stop()
    eventually(lambda: _is_free(device))


def _is_free(device: str) -> bool:
    try:
        claim(device)
    except OSError:
        return False
    return True


def test_writing_needs_the_permission_in_every_load(control: GroupControl, make_loop: MakeLoop) -> None:
    first, second = make_loop(), make_loop()
    with pytest.raises(RefusedError, match=r"^\[b\] .*writing is not allowed"):
        control.arm(group(job("a", first, 0.0), job("b", second, 0.0)), writing(first))
    eventually(lambda: _is_free(first))
    assert control.status.state is LoadState.FAILED


def test_a_disk_and_its_partition_are_not_two_targets(
    control: GroupControl, make_loop: MakeLoop, tmp_path: Path
) -> None:
    device = make_loop()
    backing = next(tmp_path.glob("*.img"))
    with pytest.raises(UsageError, match="are on the same file"):
        control.arm(group(job("a", device), job("b", str(backing))), NOTHING)


def test_errors_of_one_load_leave_the_other_alone(control: GroupControl, make_loop: MakeLoop, tmp_path: Path) -> None:
    healthy, failing = make_loop(), make_loop()
    backing = next(tmp_path.glob("lunscope-test-1-*.img"))
    started(control, group(job("good", healthy), job("bad", failing)))
    (_, good), (_, bad) = control.loads
    eventually(lambda: all(each.status.elapsed_s > 0.2 for each in (good, bad)))
    os.truncate(backing, 0)
    eventually(lambda: bad.status.state is LoadState.FAILED)
    assert good.status.state is LoadState.RUNNING
    assert not control.wait(0)
    texts = [event.text for event in control.take_events()]
    assert any(text.startswith("[bad] load failed: every I/O failed") for text in texts)
    control.stop()
    results = dict(control.results())
    assert results["good"] is not None
    assert results["bad"] is not None
    assert (results["good"].failed_ios, results["good"].about.ended) == (0, "stopped")
    assert {error.target for error in results["bad"].errors} == {failing}


@needs.mkfs_ext4
@needs.fsfreeze
@pytest.mark.parametrize("is_abandoned", [False, True])
def test_a_stall_of_one_load_is_named_and_given_up(
    control: GroupControl, make_loop: MakeLoop, tmp_path: Path, is_abandoned: bool
) -> None:
    healthy = make_loop()
    with stalling_disk(tmp_path) as disk:
        give_up_s = 600.0 if is_abandoned else 0.5
        loads = group(job("good", healthy), job("stuck", disk.device, 0.0, give_up_s=give_up_s))
        started(control, loads, writing(disk.device))
        (_, good), (_, stuck) = control.loads
        eventually(lambda: stuck.status.elapsed_s > 0.3)
        disk.freeze()
        eventually(lambda: any(each.target == f"[stuck] {disk.device}" for each in control.status.outstanding))
        assert good.status.state is LoadState.RUNNING
        stopping = BackgroundCall(control.stop, "stopping")
        if is_abandoned:
            eventually(lambda: good.status.state is LoadState.FINISHED)
            assert not stopping.done.is_set()
            control.abandon()
        assert stopping.done.wait(PATIENCE_S)
        assert stopping.result()
        results = dict(control.results())
        disk.thaw()
        assert results["stuck"] is not None
        assert results["good"] is not None
        assert results["stuck"].outstanding
        assert results["stuck"].ended_in_stall
        assert not results["good"].ended_in_stall


def test_a_stop_ends_the_preparation_of_all(
    control: GroupControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCRATCH_ENV, str(tmp_path))
    jobs = [JobSpec(size_bytes=256 * MIB, name=name) for name in "ab"]
    arming = BackgroundCall(lambda: control.arm(group(*jobs), NOTHING), "arming")
    eventually(lambda: control.status.state is LoadState.PREPARING)
    while not arming.done.wait(0.05):
        control.stop()
    with pytest.raises(StoppedError):
        arming.result()
    assert not list(tmp_path.iterdir())


@needs.io_uring
def test_a_flow_never_lets_one_get_ahead(control: GroupControl, make_loop: MakeLoop) -> None:
    first, second = make_loop(), make_loop()
    loads = (GroupedLoad(job("many", first), FlowPart(8)), GroupedLoad(job("few", second), FlowPart(2)))
    started(control, LoadGroup(loads))
    (_, many), (_, few) = control.loads
    for passed in (2000, 4000, 8000):
        eventually(partial(has_passed, many, passed))
        before, between, after = counted(many), counted(few), counted(many)
        # What each has outstanding, and how far it may be ahead.
        room = 2 + 33
        assert 2 * (before - room) <= 8 * (between + room)
        assert 8 * (between - room) <= 2 * (after + room)
    control.stop()


def has_passed(control: LoadControl, ios: int) -> bool:
    return counted(control) > ios


def counted(control: LoadControl) -> int:
    counters = control.peek()
    return 0 if counters is None else int(counters[:, 0].sum())


def test_a_group_after_a_load_alone_and_before_one(control: GroupControl, make_loop: MakeLoop) -> None:
    device = make_loop()
    ends: dict[str, Any] = {"io_bytes": MIB, "loops": 1}
    for _ in range(2):
        alone = control.alone()
        alone.arm(job("alone", device, **ends), NOTHING)
        alone.start()
        assert alone.wait(PATIENCE_S)
        assert {event.data.get("load_name") for event in control.take_events()} == {None}
        started(control, group(job("a", device, **ends), job("b", device, **ends)))
        assert control.wait(PATIENCE_S)
        results = control.results()
        assert [(name, result.completed_ios) for name, result in results if result] == [("a", 256), ("b", 256)]
        assert {event.data["load_name"] for event in control.take_events()} == {"a", "b"}
