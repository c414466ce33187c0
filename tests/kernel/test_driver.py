"""Driver and control on real scratch files with every backend."""

from __future__ import annotations

import json
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.sources.load import LoadCollector
from engine.config import SCRATCH_ENV
from engine.errors import LunscopeError, RefusedError, StoppedError, UsageError
from engine.events import Event, EventKind
from engine.job.spec import Access, Backend, BlockShare, JobSpec, Knobs, Mode, Permissions, TargetSpec
from engine.results.result_document import run_document
from engine.running.control import LoadControl, LoadState
from engine.running.driver import LoadDriver
from tests import needs
from tests.kernel.backends import BACKENDS, eventually

SIZE = 4 << 20
NOTHING = Permissions()
CHOICES = [*BACKENDS, Backend.AUTO]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    scratch = tmp_path / "scratch"
    monkeypatch.setenv(SCRATCH_ENV, str(scratch))
    return scratch


@pytest.fixture
def control(folder: Path) -> Iterator[LoadControl]:
    control = LoadControl()
    yield control
    control.close()
    control.close()
    assert open_files_under(folder) == []
    assert not folder.exists() or list(folder.iterdir()) == []


def open_files_under(folder: Path) -> list[str]:
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except OSError:
            continue
    return [link for link in links if link.startswith(str(folder))]


def scratch_job(targets: int = 1, **fields: Any) -> JobSpec:
    return JobSpec(targets=(TargetSpec(),) * targets, size_bytes=SIZE, **fields)


def settled(control: LoadControl) -> bool:
    """Whether the present epoch has measured something."""
    driver = control._driver
    assert driver is not None
    epoch = driver.result().epochs[-1]
    return epoch.index == control.status.epoch and epoch.split.total.ios > 0


@pytest.mark.parametrize("backend", CHOICES)
def test_turned_knobs_make_events_and_epochs_that_add_up(control: LoadControl, backend: Backend) -> None:
    control.arm(scratch_job(3, backend=backend), NOTHING)
    assert len(control.status.targets) == 3
    control.start()
    control.start()
    eventually(lambda: settled(control))
    turns = [
        Knobs(queue_depth=8),
        Knobs(queue_depth=8, stripe_width=3, read_pct=50.0),
        Knobs(queue_depth=2, stripe_width=2, blocks=(BlockShare(8192),), rate_iops=2000.0),
    ]
    for number, knobs in enumerate(turns, start=1):
        control.turn(knobs)
        control.turn(knobs)
        assert (control.status.knobs, control.status.epoch) == (knobs, number)
        eventually(lambda: settled(control))
    control.stop()
    control.stop()
    assert control.status.state is LoadState.FINISHED
    result = control.result()
    assert result is not None
    assert [epoch.knobs for epoch in result.epochs] == [Knobs(), *turns]
    document: Any = json.loads(json.dumps(run_document(result), allow_nan=False))
    assert document["total"]["ios"] == sum(epoch["total"]["ios"] for epoch in document["epochs"])
    assert document["errors"] == []
    booked = document["total"]["ios"] + sum(epoch["transient_ios"] for epoch in document["epochs"])
    assert booked == result.completed_ios
    texts = [event.text for event in control.take_events() if event.kind is EventKind.KNOB]
    assert texts == [
        "queue depth 1 -> 8",
        "stripe width 1 -> 3",
        "read share % 100 -> 50",
        "queue depth 8 -> 2",
        "stripe width 3 -> 2",
        "block size 4k -> 8k",
        "read share % 50 -> 100",
        "rate limit unlimited -> 2000",
    ]


def test_a_knob_event_says_what_was_turned_and_which_epoch_it_opened(control: LoadControl) -> None:
    control.arm(scratch_job(), NOTHING)
    control.start()
    control.turn(Knobs(queue_depth=16))
    events = control.take_events()
    assert [event.kind for event in events] == [EventKind.LOAD, EventKind.KNOB]
    assert events[1].data == {"knob": "queue_depth", "from": 1, "to": 16, "epoch": 1}
    assert control.take_events() == ()


@pytest.mark.parametrize("backend", CHOICES)
def test_the_event_of_a_turn_has_the_time_from_which_the_knobs_are_in_force(
    control: LoadControl, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = LoadDriver.turn

    def goes_on_late(driver: LoadDriver, knobs: Knobs) -> int | None:
        epoch = turn(driver, knobs)
        time.sleep(0.05)
        return epoch

    monkeypatch.setattr(LoadDriver, "turn", goes_on_late)
    control.arm(scratch_job(backend=backend), NOTHING)
    control.start()
    eventually(lambda: settled(control))
    control.turn(Knobs(queue_depth=16))
    late_ns = time.monotonic_ns()
    event = control.take_events()[-1]
    control.stop()
    result = control.result()
    assert result is not None
    assert event.kind is EventKind.KNOB
    before = result.epochs[0]
    assert before.start_s is not None
    turned_s = (event.monotonic_ns - result.about.started_ns) / 1e9
    assert turned_s == pytest.approx(before.start_s + before.duration_s, abs=0.01)
    assert late_ns - event.monotonic_ns >= 50_000_000


def test_the_event_of_the_start_has_the_time_from_which_elapsed_time_counts(
    control: LoadControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = LoadDriver.start

    def starts_slowly(driver: LoadDriver) -> None:
        begin(driver)
        time.sleep(0.05)

    monkeypatch.setattr(LoadDriver, "start", starts_slowly)
    control.arm(scratch_job(), NOTHING)
    control.start()
    (event,) = control.take_events()
    control.stop()
    result = control.result()
    assert result is not None
    assert event.monotonic_ns == result.about.started_ns
    assert time.time_ns() - event.time_ns >= 50_000_000


@pytest.mark.parametrize("backend", CHOICES)
def test_the_runtime_ends_a_run_and_the_last_counters_are_still_read(control: LoadControl, backend: Backend) -> None:
    collector = LoadCollector(control)
    assert collector.read().tables == {}
    control.arm(scratch_job(2, backend=backend, runtime_s=0.5, knobs=Knobs(queue_depth=4, stripe_width=2)), NOTHING)
    control.start()
    first = collector.read()
    assert control.wait(30)
    last = collector.read()
    assert last.tables["load"].rows is first.tables["load"].rows
    result = control.result()
    assert result is not None
    assert control.status.state is LoadState.FINISHED
    assert result.about.ended == "runtime"
    assert result.about.elapsed_s >= 0.5
    table = last.tables["load"]
    assert int((table.column("read_ios") + table.column("write_ios")).sum()) == result.completed_ios
    cells = [reading.histograms["load"] for reading in (first, last)]
    assert sum(int(one.count.sum()) for one in cells) == result.completed_ios
    assert [event.text.split(" after")[0] for event in last.events][-1] == "load finished"
    after = collector.read()
    assert (after.tables, after.events) == ({}, ())


def test_the_slowest_ios_name_the_device_they_went_to(control: LoadControl, tmp_path: Path) -> None:
    collector = LoadCollector(control)
    control.arm(scratch_job(), NOTHING)
    control.start()
    eventually(lambda: settled(control))
    slow = collector.read().tables["slow_load"]
    control.stop()
    device = tmp_path.stat().st_dev
    assert 0 < len(slow.rows) <= 16
    assert set(slow.column("major").tolist()) == {os.major(device)}
    assert set(slow.column("minor").tolist()) == {os.minor(device)}
    assert (slow.column("latency_ns") > 0).all()


def test_runs_never_share_row_keys(control: LoadControl) -> None:
    collector, keys = LoadCollector(control), []
    for _ in range(2):
        control.arm(scratch_job(), NOTHING)
        control.start()
        keys.append(collector.read().tables["load"].rows.keys)
        control.stop()
    assert not set(keys[0]) & set(keys[1])


def test_a_stop_while_scratch_is_filled_aborts_and_leaves_nothing(control: LoadControl, folder: Path) -> None:
    raised: list[BaseException] = []

    def arm() -> None:
        try:
            control.arm(_big_job(), NOTHING)
        except LunscopeError as error:
            raised.append(error)

    arming = threading.Thread(target=arm)
    arming.start()
    eventually(lambda: control.status.progress)
    control.stop()
    arming.join(30)
    assert not arming.is_alive()
    assert isinstance(raised[0], StoppedError)
    assert control.status.state is LoadState.IDLE
    assert open_files_under(folder) == []
    with pytest.raises(UsageError, match="arm one first"):
        control.start()


def _big_job() -> JobSpec:
    return JobSpec(targets=(TargetSpec(),) * 4, size_bytes=512 << 20)


def test_stop_start_and_turn_from_many_threads_leave_nothing_behind(control: LoadControl) -> None:
    strange: list[BaseException] = []

    def churn(action: Callable[[], object]) -> None:
        for _ in range(15):
            try:
                action()
            except LunscopeError:
                continue
            except BaseException as error:
                strange.append(error)

    actions: list[Callable[[], object]] = [
        lambda: control.arm(scratch_job(2), NOTHING),
        control.start,
        lambda: control.turn(Knobs(queue_depth=1 + int(time.monotonic_ns() % 16))),
        control.stop,
        control.reading,
        lambda: control.status,
    ]
    threads = [threading.Thread(target=churn, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert strange == []


def test_a_job_that_cannot_be_meant_is_refused_and_the_control_stays_usable(control: LoadControl) -> None:
    with pytest.raises(UsageError, match="--qd"):
        control.arm(scratch_job(knobs=Knobs(queue_depth=0)), NOTHING)
    assert control.status.state is LoadState.FAILED
    assert "--qd" in control.status.message
    control.arm(scratch_job(), NOTHING)
    control.start()
    for knobs in (Knobs(queue_depth=5000), Knobs(stripe_width=2), Knobs(read_pct=-1)):
        with pytest.raises(UsageError):
            control.turn(knobs)
    assert (control.status.knobs, control.status.epoch) == (Knobs(), 0)
    with pytest.raises(UsageError, match="stop it first"):
        control.arm(scratch_job(), NOTHING)


@needs.io_uring
@pytest.mark.parametrize("begin", [1, 1000])
def test_a_depth_without_room_is_refused_armed_and_running_alike(control: LoadControl, begin: int) -> None:
    room = max(1024, 2 * begin)
    control.arm(scratch_job(backend=Backend.URING, knobs=Knobs(queue_depth=begin, rate_iops=100.0)), NOTHING)
    words = f"--qd: {room + 1} is out of range: 1 to {room} in a load that began with {begin}: stop it"
    for state in (LoadState.ARMED, LoadState.RUNNING):
        if state is LoadState.RUNNING:
            control.start()
        assert control.status.state is state
        with pytest.raises(UsageError, match=words):
            control.turn(Knobs(queue_depth=room + 1))
        control.turn(Knobs(queue_depth=room, rate_iops=100.0))
        assert control.status.knobs == Knobs(queue_depth=room, rate_iops=100.0)


def test_turning_to_writes_is_refused_where_writing_was_not_allowed(control: LoadControl, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_bytes(os.urandom(SIZE))
    before = path.read_bytes()
    control.arm(JobSpec(targets=(TargetSpec(str(path)),)), NOTHING)
    control.start()
    with pytest.raises(RefusedError, match=f"--allow-write {path}"):
        control.turn(Knobs(read_pct=90))
    assert control.status.knobs == Knobs()
    eventually(lambda: settled(control))
    control.stop()
    assert path.read_bytes() == before


def test_writes_are_checked_again_before_the_first_one(control: LoadControl, tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(os.urandom(SIZE))
    allowed = Permissions(frozenset([str(path)]), destroy_data=True)
    control.arm(JobSpec(targets=(TargetSpec(str(path)),)), allowed)
    control.start()
    path.rename(tmp_path / "moved")
    path.write_bytes(bytes(SIZE))
    with pytest.raises(RefusedError):
        control.turn(Knobs(read_pct=0))
    control.stop()
    assert path.read_bytes() == bytes(SIZE)


def test_a_target_replaced_between_arming_and_starting_is_refused(control: LoadControl, tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(os.urandom(SIZE))
    control.arm(JobSpec(targets=(TargetSpec(str(path)),)), NOTHING)
    path.unlink()
    path.write_bytes(os.urandom(SIZE))
    with pytest.raises(RefusedError):
        control.start()
    assert control.status.state is LoadState.FAILED


@pytest.mark.parametrize("backend", CHOICES)
def test_a_target_that_shrinks_is_noted_and_the_others_go_on(
    control: LoadControl, tmp_path: Path, backend: Backend
) -> None:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.write_bytes(os.urandom(SIZE))
    targets = tuple(TargetSpec(str(path)) for path in paths)
    knobs = Knobs(queue_depth=4, stripe_width=2)
    control.arm(JobSpec(targets=targets, backend=backend, knobs=knobs), NOTHING)
    control.start()
    events: list[Event] = []

    def noted(word: str) -> bool:
        events.extend(control.take_events())
        return any(word in event.text for event in events)

    eventually(lambda: settled(control))
    os.truncate(paths[0], 0)
    eventually(lambda: noted("I/Os fail"))
    assert control.status.errors > 0
    reading = control.reading()
    assert reading is not None
    others = int(reading.values[1, 0])
    eventually(lambda: int(control.reading().values[1, 0]) > others)  # type: ignore[union-attr]
    os.truncate(paths[0], SIZE)
    eventually(lambda: noted("answers again"))
    control.stop()
    assert control.status.state is LoadState.FINISHED
    result = control.result()
    assert result is not None
    assert [error.target for error in result.errors] == [str(paths[0])]
    assert sum("I/Os fail" in event.text for event in events) == 1


def test_a_load_whose_every_target_fails_gives_up(control: LoadControl, tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(os.urandom(SIZE))
    control.arm(JobSpec(targets=(TargetSpec(str(path)),)), NOTHING)
    control.start()
    os.truncate(path, 0)
    assert control.wait(30)
    assert control.status.state is LoadState.FAILED
    assert "every I/O failed for more than 5 s" in control.status.message
    result = control.result()
    assert result is not None
    assert result.about.ended == "failed"
    assert control.take_events()[-1].text.startswith("load failed")


@needs.loop
def test_a_queue_depth_above_the_device_is_noticed(control: LoadControl, make_loop: Callable[..., str]) -> None:
    device = make_loop()
    limit = int(Path(f"/sys/block/{Path(device).name}/queue/nr_requests").read_text())
    job = JobSpec(targets=(TargetSpec(device),), size_bytes=SIZE)
    control.arm(job, NOTHING)
    assert "nr_requests" not in control.status.message
    control.start()
    control.turn(Knobs(queue_depth=limit + 1))
    assert f"above nr_requests {limit}" in control.status.message


def test_stopping_before_preparing_makes_preparing_give_up(folder: Path) -> None:
    driver = LoadDriver(scratch_job(), NOTHING)
    driver.request_stop()
    with pytest.raises(StoppedError):
        driver.prepare(lambda _: None)
    assert driver.stop()
    assert open_files_under(folder) == []


def test_the_whole_job_reaches_the_engine(control: LoadControl) -> None:
    job = scratch_job(
        2,
        access=Access.SEQUENTIAL,
        backend=Backend.THREADS,
        knobs=Knobs(
            queue_depth=2,
            stripe_width=2,
            blocks=(BlockShare(4096, 50.0), BlockShare(16384, 50.0)),
            read_pct=0,
            mode=Mode.BUFFERED,
        ),
    )
    control.arm(job, NOTHING)
    control.start()
    eventually(lambda: settled(control))
    control.stop()
    result = control.result()
    assert result is not None
    assert result.about.job == job
    assert result.about.engine.backend == "threads"
    written = result.total.write
    # Of a few I/Os all may have one size.
    assert written.ios < 20 or 4096 < written.bytes / written.ios < 16384
    assert result.total.read.ios == 0


@needs.io_uring
def test_a_turn_that_the_kernel_refuses_leaves_the_load_running(control: LoadControl) -> None:
    control.arm(scratch_job(backend=Backend.URING), NOTHING)
    control.start()
    eventually(lambda: settled(control))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 8, hard))
    try:
        with pytest.raises(LunscopeError, match=r"the knobs stay as they were: .*ulimit -n"):
            control.turn(Knobs(threads=100))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert control.status.knobs == Knobs()
    control.turn(Knobs(queue_depth=3, threads=20))
    eventually(lambda: settled(control))
    control.stop()
    result = control.result()
    assert result is not None
    assert [epoch.knobs.threads for epoch in result.epochs] == [1, 20]
    assert not result.errors
