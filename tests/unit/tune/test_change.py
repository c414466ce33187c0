"""Changes: all or nothing, compared, recorded, restored, undone."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.errors import LunscopeError, UsageError
from engine.tune.change import Watchdog, make_change, undo
from engine.tune.journal import Journal, state_folder
from engine.tune.record import State, from_json, to_json
from engine.tune.tree import KernelTree
from tests.fake_cgroups import FakeCgroups
from tests.fake_kernel import FakeKernel
from tests.unit.tune.hosts import OddTree, change, contents, make_host, plan_of, present

PATIENCE_S = 60.0
ALL = ("sda", "sdb", "sdc", "sdd")


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return make_host(tmp_path / "host")


@pytest.fixture
def tree(kernel: FakeKernel) -> Iterator[KernelTree]:
    with KernelTree(kernel.sysfs) as tree:
        yield tree


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state")


class NoWatchdog:
    """One that is killed at once, so that this process restores, with its own tree."""

    def __init__(self, *_: object) -> None:
        pass

    def wait_ready(self) -> None:
        pass

    def hold(self, duration_s: float | None) -> None:
        pass

    def end(self) -> None:
        pass

    ending = "process 1 was killed by SIGKILL"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.02)


def test_a_change_is_on_all_targets_and_restored_at_its_end(
    kernel: FakeKernel, tree: KernelTree, journal: Journal
) -> None:
    before = contents(kernel)
    made = change(tree, journal, ["queue_depth=32", "nr_requests=64"], "type:scsi")
    assert present(kernel, "device/queue_depth", *ALL) == ["32"] * 4
    assert present(kernel, "queue/nr_requests", *ALL) == ["64"] * 4
    assert journal.records()[0].state is State.HELD
    assert journal.is_held(1)
    assert made.end().state is State.REVERTED
    assert contents(kernel) == before
    assert not journal.is_held(1)


def test_targets_that_have_the_value_are_not_written(tree: KernelTree, kernel: FakeKernel) -> None:
    kernel.set("sdb", "device/queue_depth", "32\n")
    plan = plan_of(tree, ["queue_depth=32"], "type:scsi")
    assert [write.target.name for write in plan.writes] == ["sda", "sdc", "sdd"]
    assert plan.unchanged == 1


def test_the_last_failure_restores_all(kernel: FakeKernel, journal: Journal) -> None:
    before = contents(kernel)
    with OddTree(kernel.sysfs, refuse="sdd/queue/nr_requests") as tree:
        with pytest.raises(LunscopeError, match=r"sdd/queue/nr_requests: Input/output error; all values are as before"):
            change(tree, journal, ["nr_requests=64"], "type:scsi")
        assert len(tree.written) == 4
    assert contents(kernel) == before
    assert journal.records()[0].state is State.FAILED


def test_a_kernel_that_sets_another_value_is_a_failure(kernel: FakeKernel, journal: Journal) -> None:
    before = contents(kernel)
    with OddTree(kernel.sysfs) as tree, pytest.raises(LunscopeError, match="the kernel took 130 and has 128"):
        change(tree, journal, ["read_ahead_kb=256", "nr_requests=130"], "type:scsi")
    assert contents(kernel) == before


def test_nearest_keeps_what_the_kernel_makes_of_it(kernel: FakeKernel, journal: Journal) -> None:
    with OddTree(kernel.sysfs) as tree:
        made = change(tree, journal, ["read_ahead_kb=130"], "sda", nearest=True)
        assert made.record.summary == ("read_ahead_kb 128 -> 128 on sda",)
        made.end()


def test_a_device_that_goes_midway_restores_the_others(kernel: FakeKernel, journal: Journal) -> None:
    with OddTree(kernel.sysfs) as tree:
        plan = plan_of(tree, ["nr_requests=64"], "type:scsi")
        kernel.remove("sdc")
        with pytest.raises(LunscopeError, match="nr_requests of sdc: it has just become gone"):
            make_change(tree, plan, {}, journal=journal)
    assert present(kernel, "queue/nr_requests", "sda", "sdb", "sdd") == ["128"] * 3


def test_a_device_that_goes_while_others_are_written(kernel: FakeKernel, journal: Journal) -> None:
    class Unplugging(KernelTree):
        def write(self, path: str, text: str) -> None:
            super().write(path, text)
            if "/sdb/" in path and "sdc" in kernel.disks:
                kernel.remove("sdc")

    with Unplugging(kernel.sysfs) as tree, pytest.raises(LunscopeError, match="sdc: it is gone; not restored: sdc: it"):
        change(tree, journal, ["nr_requests=64"], "type:scsi")
    assert present(kernel, "queue/nr_requests", "sda", "sdb", "sdd") == ["128"] * 3


def test_a_value_that_changes_after_the_check_stops_the_change(
    kernel: FakeKernel, tree: KernelTree, journal: Journal
) -> None:
    plan = plan_of(tree, ["nr_requests=64"], "type:scsi")
    kernel.set("sdd", "queue/nr_requests", "99\n")
    with pytest.raises(LunscopeError, match="nr_requests of sdd: it has just become 99; try again"):
        make_change(tree, plan, {}, journal=journal)
    assert present(kernel, "queue/nr_requests", *ALL[:3]) == ["128"] * 3


def test_another_device_of_the_same_name_is_not_written(kernel: FakeKernel, tree: KernelTree, journal: Journal) -> None:
    change(tree, journal, ["nr_requests=64"], "sda", keep=True)
    folder = kernel.sysfs / kernel.disks["sda"].folder
    shutil.copytree(folder, folder.with_name("new"), symlinks=True)
    folder.rename(folder.with_name("old"))
    folder.with_name("new").rename(folder)
    restored = undo(tree, journal, journal.records()[0])
    assert restored.left == ("sda: it is another device or group now",)
    assert present(kernel, "queue/nr_requests", "sda") == ["64"]


@pytest.mark.parametrize(
    ("settings", "scope", "words"),
    [
        (["nr_requests=257"], "sda", "nr_requests of sda: 257 is not legal: 4..256"),
        (["nr_requests=3"], "sda", "3 is not legal"),
        (["queue_depth=513"], "sda", "513 is not legal: 1..512"),
        (["max_sectors_kb=4096"], "sda", r"4..2048"),
        (["scheduler=bfq"], "sda", r"bfq is not legal: none\|mq-deadline"),
        (["iopolicy=numa"], "sda", "nothing in this scope has it"),
        (["queue_depth=8"], "loop0", "nothing in this scope has it"),
        (["zfs_arc_max=0"], "all", "this host does not have it"),
        (["zfs_arc_max=0"], "sda", "belongs to the host"),
        (["io.max.riops=5"], "sda", "belongs to a control group"),
        (["nr_requests"], "sda", "write NAME=VALUE"),
        (["nr_requests=4", "nr_requests=5"], "sda", "is given twice"),
        (["nr_requests="], "sda", "is no value"),
        (["nr_requests=1\n2"], "sda", "is no value"),
        (["../x=1"], "sda", "is no tunable"),
    ],
)
def test_wrong_values_are_refused_before_anything_is_written(
    kernel: FakeKernel, tree: KernelTree, settings: list[str], scope: str, words: str
) -> None:
    before = contents(kernel)
    with pytest.raises(UsageError, match=words):
        plan_of(tree, settings, scope)
    assert contents(kernel) == before


def test_files_that_cannot_be_written_are_refused_first(kernel: FakeKernel, tree: KernelTree) -> None:
    (kernel.sysfs / kernel.disks["sdd"].folder / "device/queue_depth").chmod(0o444)
    with pytest.raises(LunscopeError, match="queue_depth of sdd: read-only"):
        plan_of(tree, ["queue_depth=32"], "type:scsi")


def test_a_scheduler_resets_other_files_that_are_restored_too(
    kernel: FakeKernel, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Resetting(KernelTree):
        def write(self, path: str, text: str) -> None:
            super().write(path, text)
            if path.endswith("/scheduler"):
                kernel.set("sda", "queue/nr_requests", "256\n")
                kernel.set("sda", "queue/iosched/fifo_batch", "16\n")

    monkeypatch.setattr("engine.tune.change.Watchdog", NoWatchdog)
    kernel.set("sda", "queue/scheduler", "none [mq-deadline]\n")
    kernel.set("sda", "queue/iosched/fifo_batch", "8\n")
    kernel.set("sda", "queue/nr_requests", "999\n")
    with Resetting(kernel.sysfs) as tree:
        made = change(tree, journal, ["scheduler=none"], "sda")
        assert present(kernel, "queue/nr_requests", "sda") == ["256"]
        assert "nr_requests 999 -> 256 on sda by the kernel" in made.record.summary
        assert made.end().left == ()
    folder = kernel.sysfs / kernel.disks["sda"].folder / "queue"
    texts = [(folder / name).read_text().strip() for name in ("scheduler", "iosched/fifo_batch", "nr_requests")]
    assert texts == ["mq-deadline", "8", "999"]


def test_values_of_one_change_that_undo_each_other_fail(kernel: FakeKernel, journal: Journal) -> None:
    class Resetting(KernelTree):
        def write(self, path: str, text: str) -> None:
            super().write(path, text)
            if path.endswith("/nr_requests"):
                kernel.set("sda", "queue/scheduler", "none\n")

    with (
        Resetting(kernel.sysfs) as tree,
        pytest.raises(LunscopeError, match="another value of the change made it none"),
    ):
        change(tree, journal, ["scheduler=mq-deadline", "nr_requests=64"], "sda")
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


def test_the_scheduler_is_written_before_its_own_tunables(kernel: FakeKernel, tree: KernelTree) -> None:
    plan = plan_of(tree, ["iosched/fifo_batch=4", "nr_requests=512", "scheduler=mq-deadline"], "sda")
    assert [write.tunable.id for write in plan.writes] == ["scheduler", "nr_requests", "iosched/fifo_batch"]
    with pytest.raises(UsageError, match="nothing in this scope"):
        plan_of(tree, ["iosched/fifo_batch=4"], "sda")


def test_what_others_have_changed_is_left_and_said(kernel: FakeKernel, tree: KernelTree, journal: Journal) -> None:
    made = change(tree, journal, ["nr_requests=64"], "type:scsi")
    kernel.set("sdb", "queue/nr_requests", "77\n")
    assert made.end().left == ("nr_requests of sdb is 77, not 64 as it was set",)
    assert present(kernel, "queue/nr_requests", *ALL) == ["128", "77", "128", "128"]


def test_a_queue_depth_that_the_device_has_lowered_is_restored(
    kernel: FakeKernel, tree: KernelTree, journal: Journal
) -> None:
    made = change(tree, journal, ["queue_depth=100"], "sda")
    kernel.set("sda", "device/queue_depth", "17\n")
    assert made.end().left == ()
    assert present(kernel, "device/queue_depth", "sda") == ["64"]


def test_kept_changes_are_a_stack(kernel: FakeKernel, tree: KernelTree, journal: Journal) -> None:
    change(tree, journal, ["nr_requests=64"], "sda", keep=True)
    change(tree, journal, ["nr_requests=32"], "sda", keep=True)
    first, second = journal.records()
    assert undo(tree, journal, second).left == ()
    assert present(kernel, "queue/nr_requests", "sda") == ["64"]
    assert undo(tree, journal, first).left == ()
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]
    assert [record.state for record in journal.records()] == [State.UNDONE, State.UNDONE]


def test_undo_out_of_order_leaves_the_later_change_unless_forced(
    kernel: FakeKernel, tree: KernelTree, journal: Journal
) -> None:
    change(tree, journal, ["nr_requests=64"], "sda", "sdb", keep=True)
    change(tree, journal, ["nr_requests=32"], "sda", keep=True)
    restored = undo(tree, journal, journal.records()[0])
    assert restored.left == ("nr_requests of sda is 32, not 64 as it was set",)
    assert present(kernel, "queue/nr_requests", "sda", "sdb") == ["32", "128"]
    rest = journal.records()[0]
    assert rest.state is State.KEPT
    assert [write.target.name for write in rest.plan.writes] == ["sda"]
    assert undo(tree, journal, rest, force=True).left == ()
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


def test_a_time_ends_by_itself(kernel: FakeKernel, tree: KernelTree, journal: Journal) -> None:
    made = change(tree, journal, ["nr_requests=64"], "sda", duration_s=0.2)
    wait_for(lambda: present(kernel, "queue/nr_requests", "sda") == ["128"])
    assert made.has_ended(PATIENCE_S)
    assert made.end().state is State.REVERTED


@pytest.mark.slow
def test_a_second_lunscope_reports_who_holds_a_device(kernel: FakeKernel, tree: KernelTree, journal: Journal) -> None:
    made = change(tree, journal, ["nr_requests=64"], "sda", "sdb", duration_s=600)
    other = Journal(journal.folder)
    with pytest.raises(LunscopeError, match=rf"sdb: held by change 1: nr_requests .*pid {os.getpid()}, until \d\d:"):
        change(tree, other, ["read_ahead_kb=4"], "sdb", "sdc")
    assert present(kernel, "queue/read_ahead_kb", "sdb", "sdc") == ["128", "128"]
    with pytest.raises(LunscopeError, match="end that process"):
        undo(tree, other, other.records()[0])
    change(tree, other, ["read_ahead_kb=4"], "sdc").end()
    made.end()
    change(tree, other, ["read_ahead_kb=4"], "sdb").end()


def test_a_killed_watchdog_is_replaced_at_the_end(kernel: FakeKernel, tree: KernelTree, journal: Journal) -> None:
    made = change(tree, journal, ["nr_requests=64"], "sda")
    os.kill(made._watchdog.pid, signal.SIGKILL)
    assert made.has_ended(PATIENCE_S)
    record = made.end()
    assert record.state is State.REVERTED
    assert record.problems == (f"its watchdog failed: process {made._watchdog.pid} was killed by SIGKILL",)
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


def test_a_watchdog_that_fails_is_reported_with_its_words(
    kernel: FakeKernel, tree: KernelTree, journal: Journal
) -> None:
    made = change(tree, journal, ["nr_requests=64"], "sda")
    journal.path(1).write_text("{}")
    (problem,) = made.end().problems
    assert re.fullmatch(r"its watchdog failed: process \d+ ended with status 1: .*000001.json: no record .*", problem)
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


@pytest.mark.parametrize("days", [24.8, 25, 36500, 1e9, float("inf")])
def test_a_time_of_any_length_is_held(kernel: FakeKernel, tree: KernelTree, journal: Journal, days: float) -> None:
    made = change(tree, journal, ["nr_requests=64"], "sda", duration_s=days * 86400)
    until_ns = made.record.until_ns
    assert until_ns is None or until_ns == pytest.approx((time.time() + days * 86400) * 1e9, rel=1e-6)
    # What it has read of its pipe it acts on before it waits again.
    wait_for(lambda: unread(made._watchdog) == 0)
    assert not made.has_ended(0.05)
    assert made.end().problems == ()
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


def unread(watchdog: Watchdog) -> int:
    assert watchdog._process.stdin is not None
    buffer = fcntl.ioctl(watchdog._process.stdin.fileno(), termios.FIONREAD, bytes(4))
    return int.from_bytes(buffer, sys.byteorder)


def test_a_change_that_a_failed_watchdog_has_left_is_not_kept(
    kernel: FakeKernel, tree: KernelTree, journal: Journal
) -> None:
    made = change(tree, journal, ["nr_requests=64"], "sda")
    os.kill(made._watchdog.pid, signal.SIGKILL)
    assert made.has_ended(PATIENCE_S)
    with pytest.raises(LunscopeError, match=r"change 1 is over; its watchdog failed: .*SIGKILL: set its values again"):
        made.keep()
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


def test_without_a_process_for_the_watchdog_nothing_is_changed(
    kernel: FakeKernel, tree: KernelTree, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(LunscopeError, match=r"the watchdog .* did not start: .*No such file"):
        change(tree, journal, ["nr_requests=64"], "sda")
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]
    assert (journal.records()[0].state, journal.is_held(1)) == (State.FAILED, False)


def test_the_end_of_the_watchdog_by_sigterm_restores(kernel: FakeKernel, tree: KernelTree, journal: Journal) -> None:
    made = change(tree, journal, ["nr_requests=64"], "sda")
    os.kill(made._watchdog.pid, signal.SIGTERM)
    assert made.has_ended(PATIENCE_S)
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]
    record = made.end()
    assert record.state is State.REVERTED
    assert record.problems == ("its watchdog was told to end by SIGTERM",)


_HOLDER = """
import sys, time
from pathlib import Path
from engine.tune.change import make_change
from engine.tune.journal import Journal, state_folder
from engine.tune.tree import KernelTree
from tests.unit.tune.hosts import plan_of
slow = len(sys.argv) > 3
class Slow(KernelTree):
    def write(self, path, text):
        super().write(path, text)
        print("written", flush=True)
        time.sleep(600 if slow and "sdc" in path else 0)
tree = Slow(Path(sys.argv[1]))
change = make_change(tree, plan_of(tree, ["nr_requests=64"], "type:scsi"), {}, journal=Journal(Path(sys.argv[2])))
print("held", change._watchdog.pid, flush=True)
time.sleep(600)
"""


def start(kernel: FakeKernel, journal: Journal, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _HOLDER, str(kernel.sysfs), str(journal.folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])


def read_until(process: subprocess.Popen[str], word: str, count: int = 1) -> str:
    assert process.stdout is not None
    lines = (line for line in process.stdout if line.startswith(word))
    return [next(lines) for _ in range(count)][-1]


@pytest.mark.parametrize("slow", [False, True], ids=["held", "halfway"])
def test_kill_9_restores_everything(kernel: FakeKernel, journal: Journal, slow: bool) -> None:
    before = contents(kernel)
    with start(kernel, journal, *(["slow"] if slow else [])) as process:
        if slow:
            read_until(process, "written", 3)
            assert present(kernel, "queue/nr_requests", *ALL) == ["64", "64", "64", "128"]
        else:
            read_until(process, "held")
            assert present(kernel, "queue/nr_requests", *ALL) == ["64"] * 4
        process.kill()
    wait_for(lambda: contents(kernel) == before)
    wait_for(lambda: journal.records()[0].state is (State.FAILED if slow else State.REVERTED))


def test_a_crash_of_both_is_said_and_can_be_undone(kernel: FakeKernel, tree: KernelTree, journal: Journal) -> None:
    before = contents(kernel)
    with start(kernel, journal) as process:
        watchdog = int(read_until(process, "held").split()[1])
        os.kill(watchdog, signal.SIGKILL)
        process.kill()
    wait_for(lambda: not journal.is_held(1))
    assert [record.number for record in journal.left_behind()] == [1]
    with pytest.raises(LunscopeError, match=r"left changed by a crash of .*tune undo --change 1"):
        change(tree, journal, ["read_ahead_kb=4"], "sda")
    assert undo(tree, journal, journal.records()[0]).left == ()
    assert contents(kernel) == before


@pytest.mark.parametrize("how", ["end", "kill"])
def test_values_are_restored_without_the_folder_of_records(kernel: FakeKernel, journal: Journal, how: str) -> None:
    before = contents(kernel)
    if how == "kill":
        with start(kernel, journal) as process:
            read_until(process, "held")
            shutil.rmtree(journal.folder)
            process.kill()
    else:
        with KernelTree(kernel.sysfs) as tree:
            made = change(tree, journal, ["nr_requests=64"], "type:scsi")
            shutil.rmtree(journal.folder)
            assert made.end().left == ()
    wait_for(lambda: contents(kernel) == before)


def test_the_folder_is_not_that_of_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the unit of the probe systemd removes /run/lunscope when the probe stops (RuntimeDirectory=)."""
    monkeypatch.delenv("LUNSCOPE_STATE_DIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert state_folder() == Path("/run/lunscope-tune")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert state_folder() == Path("/run/user/1000/lunscope/tune")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    with pytest.raises(LunscopeError, match="XDG_RUNTIME_DIR is not set; set it, or LUNSCOPE_STATE_DIR"):
        state_folder()


def test_limits_of_a_group_on_a_device(kernel: FakeKernel, journal: Journal) -> None:
    groups = FakeCgroups(kernel.sysfs)
    groups.put("lab", {}, limits="")
    number = (kernel.sysfs / "block/sda/dev").read_text().strip()
    with KernelTree(kernel.sysfs) as tree:
        plan = plan_of(tree, ["io.max.riops=500", "io.max.rbps=1m"], "cgroup:/lab@sda")
        lines = [write.tunable.form.line(write.after, write.target.device) for write in plan.writes]
        assert lines == [f"{number} riops=500", f"{number} rbps=1048576"]
        assert [write.before for write in plan.writes] == ["max", "max"]
        with pytest.raises(UsageError, match="name it, as cgroup:/lab@sda"):
            plan_of(tree, ["io.max.riops=500"], "cgroup:/lab")
        with pytest.raises(UsageError, match="the control group does not have it"):
            plan_of(tree, ["io.weight=5"], "cgroup:/lab")


def test_records_survive_as_json(tree: KernelTree, journal: Journal) -> None:
    change(tree, journal, ["nr_requests=64", "scheduler=mq-deadline"], "type:scsi", keep=True)
    record = journal.records()[0]
    assert from_json(to_json(record), "x") == record
    document = json.loads(journal.path(1).read_text())
    assert (document["schema"], document["uid"], document["pid"]) == (
        "lunscope.tune-change/1",
        os.getuid(),
        os.getpid(),
    )
    assert document["settings"] == [["nr_requests", "64"], ["scheduler", "mq-deadline"]]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "other/1"}', '{"schema": "lunscope.tune-change/1"}', "\0"])
def test_damaged_records_are_no_crash(journal: Journal, text: str) -> None:
    journal.open()
    journal.path(1).write_text(text)
    assert journal.records() == []
    with pytest.raises(LunscopeError, match="no record of a change"):
        journal.read(1)
    assert journal.next_number() == 2


def test_a_folder_that_others_can_write_is_refused(journal: Journal) -> None:
    journal.open()
    journal.folder.chmod(0o777)
    with pytest.raises(LunscopeError, match="others can write it"):
        journal.open()


def test_without_a_folder_for_records_nothing_is_changed(kernel: FakeKernel, tree: KernelTree, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    before = contents(kernel)
    with pytest.raises(LunscopeError, match="LUNSCOPE_STATE_DIR"):
        change(tree, Journal(tmp_path / "file"), ["nr_requests=64"], "sda")
    assert contents(kernel) == before
