"""Tunables of real loop devices and of groups of cgroup v1; all of them are as before after each test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.session.reader import SessionReader
from engine.errors import LunscopeError, UsageError
from engine.events import Event, EventKind
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.running.control import LoadControl
from engine.statistics.batch_means import StopRule
from engine.sweep.axes import parse_axis
from engine.sweep.plan import make_plan as make_sweep
from engine.sweep.runner import SweepRunner
from engine.sweep.trial import Trial
from engine.sweep.tuning import SweepTuning
from engine.tune.change import make_change, undo
from engine.tune.held import HeldChanges
from engine.tune.journal import Journal
from engine.tune.planned_writes import make_plan, parse_settings
from engine.tune.record import State
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tests import needs
from tests.kernel.conftest import Storage
from tests.kernel.forked_command import Forked, lunscope

pytestmark = [needs.root, needs.loop]

PATIENCE_S = 60.0
BLKIO = Path("/sys/fs/cgroup/blkio")
_WATCHED = ("nr_requests", "scheduler", "read_ahead_kb", "max_sectors_kb", "nomerges", "rq_affinity", "wbt_lat_usec")


@pytest.fixture
def tree() -> Iterator[KernelTree]:
    with KernelTree() as tree:
        yield tree


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state")


@pytest.fixture
def loop(storage: Storage) -> Iterator[str]:
    """Name of a loop device of our own, which must be left as it was."""
    name = storage.loop().removeprefix("/dev/")
    before = values(name)
    yield name
    if Path(f"/sys/block/{name}/queue").exists():
        assert values(name) == before


def values(name: str) -> dict[str, str]:
    queue = Path(f"/sys/block/{name}/queue")
    found = {file: (queue / file).read_text().strip() for file in _WATCHED}
    scheduling = queue / "iosched"
    if scheduling.is_dir():
        found |= {f"iosched/{file.name}": file.read_text().strip() for file in scheduling.iterdir()}
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.02)


def change(tree: KernelTree, journal: Journal, settings: list[str], *scopes: str, **options: bool):  # type: ignore[no-untyped-def] # noqa: ANN201
    host, given = Host(tree), parse_settings(settings)
    return make_change(tree, make_plan(host, given, host.select(scopes)), given, journal=journal, **options)


def schedulers(name: str) -> list[str]:
    return re.findall(r"[\w-]+", Path(f"/sys/block/{name}/queue/scheduler").read_text().replace("[", " "))


def test_every_tunable_of_a_loop_device_is_set_and_restored(tree: KernelTree, journal: Journal, loop: str) -> None:
    before = values(loop)
    settings = {
        "nr_requests": "16",
        "read_ahead_kb": "64",
        "max_sectors_kb": "512",
        "nomerges": "2",
        "rq_affinity": "2",
    }
    made = change(tree, journal, [f"{name}={value}" for name, value in settings.items()], loop)
    assert values(loop) == before | settings
    assert made.end().left == ()


def test_a_scheduler_and_what_it_resets_come_back(tree: KernelTree, journal: Journal, loop: str) -> None:
    if "mq-deadline" not in schedulers(loop):
        pytest.skip("the kernel has no mq-deadline")
    base = values(loop)
    settings = ["iosched/fifo_batch=3", "nr_requests=99", "scheduler=mq-deadline"]
    outer = change(tree, journal, settings, loop, keep=True)
    queue = Path(f"/sys/block/{loop}/queue")
    assert (queue / "iosched/fifo_batch").read_text().strip() == "3"
    inner = change(tree, journal, ["scheduler=none"], loop)
    assert not (queue / "iosched").exists()
    assert inner.end().left == ()
    assert (queue / "iosched/fifo_batch").read_text().strip() == "3"
    assert (queue / "nr_requests").read_text().strip() == "99"
    assert undo(tree, journal, journal.read(outer.record.number)).left == ()
    assert values(loop) == base


def test_the_limits_are_those_of_the_kernel(tree: KernelTree, journal: Journal, loop: str) -> None:
    """What is legal by the registry is accepted, and what is not the kernel refuses, or changes."""
    queue = Path(f"/sys/block/{loop}/queue")
    tags = int(Path(f"/sys/block/{loop}/mq/0/nr_tags").read_text())
    for good in (4, tags):
        change(tree, journal, [f"nr_requests={good}"], loop).end()
    with pytest.raises(UsageError, match=f"is not legal: 4..{tags}"):
        change(tree, journal, [f"nr_requests={tags + 1}"], loop)
    before = (queue / "nr_requests").read_text()
    with pytest.raises(OSError, match="Invalid argument"):
        (queue / "nr_requests").write_text(f"{tags + 1}\n")
    (queue / "nr_requests").write_text("3\n")
    assert (queue / "nr_requests").read_text() == "4\n"
    (queue / "nr_requests").write_text(before)


def test_the_kernel_rounds_read_ahead_to_pages(tree: KernelTree, journal: Journal, loop: str) -> None:
    with pytest.raises(LunscopeError, match=r"the kernel took 5 and has 4 \(--nearest .*; all values are as before"):
        change(tree, journal, ["nomerges=1", "read_ahead_kb=5"], loop)
    made = change(tree, journal, ["read_ahead_kb=5"], loop, nearest=True)
    assert made.record.plan.writes[0].after == "4"
    made.end()


def test_two_devices_or_none(tree: KernelTree, journal: Journal, storage: Storage, loop: str) -> None:
    other = storage.loop().removeprefix("/dev/")
    before = values(other)
    host, given = Host(tree), parse_settings(["nomerges=1"])
    plan = make_plan(host, given, host.select([loop, other]))
    subprocess.run(["losetup", "--detach", f"/dev/{other}"], check=True)
    # A detached loop device keeps its folder: its values are set as those of the other.
    make_change(tree, plan, given, journal=journal).end()
    assert values(other) == before


def test_read_only_sysfs_is_said_before_anything_is_written(loop: str, tmp_path: Path) -> None:
    script = f"mount -o remount,bind,ro /sys && exec {sys.executable} -m tui tune set nomerges=1 --on {loop} --keep"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"LUNSCOPE_STATE_DIR": str(tmp_path)},
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == f"lunscope: nomerges of {loop}: the file system is read-only\n"
    assert not (tmp_path / "tune").exists()


def test_without_permission_it_is_said_before_anything_is_written(
    tree: KernelTree, journal: Journal, loop: str
) -> None:
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            change(tree, journal, ["nomerges=1"], loop)
        except BaseException as error:
            os.write(write_fd, str(error).encode())
        finally:
            os._exit(0)
    os.close(write_fd)
    with os.fdopen(read_fd) as words:
        assert words.read() == f"nomerges of {loop}: no permission to write it: run as root"
    os.waitpid(child, 0)


def test_what_the_kernel_sets_anew_is_said_and_restored(tree: KernelTree, journal: Journal, loop: str) -> None:
    before = values(loop)
    made = change(tree, journal, ["max_sectors_kb=512"], loop)
    now = values(loop)
    said = [line for line in made.record.summary if line.endswith("by the kernel")]
    if now["read_ahead_kb"] == before["read_ahead_kb"]:
        assert said == []
    else:
        assert said == [f"read_ahead_kb {before['read_ahead_kb']} -> {now['read_ahead_kb']} on {loop} by the kernel"]
    made.end()
    assert values(loop) == before


def test_what_others_set_meanwhile_is_not_set_anew(tree: KernelTree, journal: Journal, loop: str) -> None:
    base = values(loop)
    outer = change(tree, journal, ["max_sectors_kb=512"], loop, keep=True)
    inner = change(tree, journal, ["read_ahead_kb=64"], loop, keep=True)
    assert undo(tree, journal, journal.read(outer.record.number)).left == ()
    assert values(loop)["read_ahead_kb"] == "64"
    undo(tree, journal, journal.read(inner.record.number))
    Path(f"/sys/block/{loop}/queue/read_ahead_kb").write_text(base["read_ahead_kb"])


def test_kill_9_restores_a_loop_device(loop: str, tmp_path: Path) -> None:
    before = values(loop)
    with Forked(
        *("tune", "set", "nomerges=1", "nr_requests=4", "read_ahead_kb=8", "--on", loop, "--for", "1h"),
        stderr=subprocess.PIPE,
        env=os.environ | {"LUNSCOPE_STATE_DIR": str(tmp_path)},
    ) as process:
        assert process.stderr is not None
        assert any("in force" in line for line in process.stderr)
        assert values(loop) == before | {"nomerges": "1", "nr_requests": "4", "read_ahead_kb": "8"}
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: values(loop) == before)


def test_a_recording_has_who_changed_what(loop: str, tmp_path: Path) -> None:
    session = tmp_path / "session.luns"
    environment = os.environ | {"LUNSCOPE_STATE_DIR": str(tmp_path / "state")}

    def events() -> list[Event]:
        with SessionReader(session) as reader:
            return [event for event in reader.events() if event.kind is EventKind.TUNE]

    recording = ("record", "-o", session, "--interval", "0.1", "--tier", "kernel")
    with Forked(*recording, env=environment, stderr=subprocess.DEVNULL) as recorder:
        try:
            wait_for(lambda: session.exists() and session.stat().st_size > 0)
            changing = ("tune", "set", "nomerges=1", "--on", loop, "--", "true")
            assert lunscope(*changing, env=environment).returncode == 0
            wait_for(lambda: len(events()) == 2)
        finally:
            recorder.terminate()
    held, reverted = events()
    assert held.text.startswith(f"tune change 1 held: nomerges 0 -> 1 on {loop}, by root")
    assert (held.data["settings"], held.data["uid"]) == ("nomerges=1", 0)
    assert reverted.data["state"] == "reverted"


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of our own in the blkio hierarchy."""
    if not (BLKIO / "blkio.throttle.read_bps_device").exists():
        pytest.skip("no blkio controller of cgroup v1 here")
    folder = BLKIO / f"lunscope-test-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        folder.rmdir()


def test_limits_of_a_group_of_v1(tree: KernelTree, journal: Journal, loop: str, group: Path) -> None:
    number = Path(f"/sys/block/{loop}/dev").read_text().strip()
    (group / "blkio.throttle.write_iops_device").write_text(f"{number} 77\n")
    settings = ["blkio.throttle.read_bps=1m", "blkio.throttle.write_iops=5"]
    made = change(tree, journal, settings, f"cgroup:/{group.name}@{loop}")
    assert (group / "blkio.throttle.read_bps_device").read_text() == f"{number} 1048576\n"
    assert (group / "blkio.throttle.write_iops_device").read_text() == f"{number} 5\n"
    assert made.end().left == ()
    assert (group / "blkio.throttle.read_bps_device").read_text() == ""
    assert (group / "blkio.throttle.write_iops_device").read_text() == f"{number} 77\n"


def test_a_group_that_is_gone_is_said(tree: KernelTree, journal: Journal, loop: str, group: Path) -> None:
    inner = group / "inner"
    inner.mkdir()
    made = change(tree, journal, ["blkio.throttle.read_iops=5"], f"cgroup:/{group.name}/inner@{loop}")
    inner.rmdir()
    record = made.end()
    assert record.state is State.REVERTED
    assert record.left == (f"/{group.name}/inner {loop}: it is gone",)


def test_a_tunable_is_an_axis_of_a_sweep_that_goes_on(journal: Journal, loop: str) -> None:
    """Set between the points, restored at the end, and the same when the sweep goes on after it was stopped."""
    before = values(loop)
    rule = StopRule(least_s=0.1, most_s=0.2, most_warm_up_s=0.1)
    job = JobSpec(targets=(TargetSpec(f"/dev/{loop}"),), knobs=Knobs(rate_iops=500.0))
    plan = make_sweep(job, (parse_axis("tune.nr_requests=8,20"),), rule=rule)
    seen: list[str] = []

    def note(curve: int, _trial: Trial) -> None:
        assert values(loop)["nr_requests"] == ("8", "20")[curve]
        seen.append(values(loop)["nr_requests"])
        if len(seen) == 1:
            runner.stop()

    control = LoadControl()
    done: list[tuple[int, Trial]] = []
    control.arm(plan.armed, Permissions())
    control.start()
    try:
        for _ in range(2):
            tuning = SweepTuning(plan, held=HeldChanges(journal=journal))
            runner = SweepRunner(plan, control, note, done, tuning=tuning)
            result = runner.run()
            assert values(loop) == before
            done = [(curve.curve.index, trial) for curve in result.curves for trial in curve.trials]
            assert result.is_complete == (len(seen) > 1)
    finally:
        control.close()
    assert set(seen) == {"8", "20"}
    assert result.troubles == ()


def test_changes_of_the_drawer_on_top_of_each_other(journal: Journal, loop: str) -> None:
    """A depth, then a scheduler, then the depth of before: step by step back, on a real queue."""
    if "mq-deadline" not in schedulers(loop):
        pytest.skip("the kernel has no mq-deadline")
    held, seen = HeldChanges(journal=journal), [values(loop)]
    for setting in ("nr_requests=20", "scheduler=mq-deadline", f"nr_requests={seen[0]['nr_requests']}"):
        given = parse_settings([setting])
        held.make(held.plan([loop], given), given, None)
        seen.append(values(loop))
    assert (seen[2]["nr_requests"], seen[3]["nr_requests"]) == ("20", seen[0]["nr_requests"])
    for wanted in (seen[2], seen[1], seen[0]):
        held.undo()
        assert values(loop) == wanted
    held.close()
