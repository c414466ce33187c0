"""The load screen over a real load: what is started runs, what is turned turns, nothing unconfirmed is written."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from collectors.sources.live import LiveSource
from collectors.sources.load import LoadCollector
from engine.config import SCRATCH_ENV
from engine.events import EventKind
from engine.job.spec import JobSpec, Knobs, Mode, Permissions, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl, LoadState
from tests import needs
from tests.app.stage import FROZEN, SIZES, is_leaving, on_stage, said, screen_text, type_name, until
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.load.form import FORM
from tui.load.load_controller import LoadController
from tui.screens.load.screen import LoadScreen
from tui.screens.shared.dialogs import TypeToConfirm

pytestmark = pytest.mark.slow

GENTLE_IOPS = 500.0
GENTLE = Knobs(rate_iops=GENTLE_IOPS)
WRITING = Knobs(rate_iops=GENTLE_IOPS, read_pct=0)
SCRATCH = JobSpec(
    targets=(TargetSpec(), TargetSpec()),
    size_bytes=1 << 20,
    knobs=Knobs(queue_depth=2, stripe_width=2, rate_iops=GENTLE_IOPS),
)


class LoadStage:
    """The app over this host and a real control, and what tests ask of it."""

    def __init__(self, app: LunscopeApp, pilot: Pilot[None], control: LoadControl) -> None:
        self.app = app
        self.pilot = pilot
        self.control = control

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def state(self, state: LoadState) -> None:
        await until(self.pilot, lambda: self.control.status.state is state)
        await self.shows(state.upper())

    async def shows(self, text: str) -> None:
        await until(self.pilot, lambda: text in screen_text(self.pilot))

    async def shows_at_each_size(self, *texts: str) -> None:
        for size in SIZES:
            await self.pilot.resize_terminal(*size)
            for text in texts:
                await self.shows(text)

    def events(self, kind: EventKind) -> list[str]:
        return [event.text for event in self.app.app_state.events.all() if event.kind is kind]


@asynccontextmanager
async def load_stage(
    job: JobSpec,
    size: tuple[int, int] = SIZES[0],
    permissions: Permissions = Permissions(),  # noqa: B008 - frozen
    *,
    autostart: bool = False,
) -> AsyncIterator[LoadStage]:
    control = LoadControl()
    # Attaching to the kernel for exact figures takes longer than all else.
    source = LiveSource(0.4, tier="kernel", extra_collectors=[LoadCollector(control)])
    app = LunscopeApp(AppInput(source, LoadController(control, job, permissions), autostart=autostart), settings=FROZEN)
    try:
        async with on_stage(app, size) as pilot:
            stage = LoadStage(app, pilot, control)
            if not autostart:
                await stage.press("2")
            yield stage
    finally:
        control.close()
        source.close()


@pytest.fixture(autouse=True)
def scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv(SCRATCH_ENV, str(folder))
    return folder


@pytest.fixture
def data_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with content, by a name that is quickly typed."""
    monkeypatch.chdir(tmp_path)
    path = Path("d")
    path.write_bytes(b"precious" * (1 << 17))
    return path


@needs.io_uring
async def test_start_turn_and_stop(scratch_folder: Path) -> None:
    async with load_stage(SCRATCH) as stage:
        await stage.shows_at_each_size("IDLE")
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        assert stage.control.status.targets[0].startswith("scratch 1")
        await until(stage.pilot, lambda: stage.app.app_state.frame and "load_total" in stage.app.app_state.frame.tables)
        await stage.press("down")
        await stage.shows("▸scratch 2")
        await stage.press("plus")
        await until(stage.pilot, lambda: stage.control.status.epoch == 1)
        knobs = stage.control.status.knobs
        assert knobs is not None
        assert knobs.queue_depth == 3
        await until(stage.pilot, lambda: "queue depth 2 -> 3" in stage.events(EventKind.KNOB))
        await stage.shows_at_each_size("RUNNING", "queue depth 2 -> 3")
        await stage.press("W")
        await until(stage.pilot, lambda: stage.control.status.epoch == 2)
        await stage.press("x")
        await stage.state(LoadState.FINISHED)
        await stage.shows_at_each_size("FINISHED")
        result = stage.control.result()
        assert result is not None
        assert not list(scratch_folder.iterdir())


@needs.io_uring
async def test_a_load_that_writes_is_left_by_the_word_only() -> None:
    async with load_stage(replace(SCRATCH, knobs=replace(WRITING, stripe_width=2)), SIZES[0]) as stage:
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        await stage.press("q")
        await stage.shows("Type quit to stop it")
        await stage.press(*"qui", "enter")
        await until(stage.pilot, lambda: said(stage.app, "quit not typed"))
        assert stage.control.status.state is LoadState.RUNNING
        assert not is_leaving(stage.app)
        await stage.press("q", *"quit")
        await stage.pilot.press("enter")
        await until(stage.pilot, lambda: is_leaving(stage.app))


@needs.io_uring
async def test_the_policy_of_a_mirror_is_turned_live(scratch_folder: Path) -> None:
    targets = (TargetSpec(),) * 2
    job = JobSpec(targets, replace(GENTLE, stripe_width=2), size_bytes=1 << 20, copies=2)
    async with load_stage(job) as stage:
        await stage.shows_at_each_size("Path policy")
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        await stage.press("p")
        await until(stage.pilot, lambda: stage.control.status.epoch == 1)
        await stage.shows_at_each_size("least-command-load")
        await until(
            stage.pilot, lambda: "path policy round-robin -> least-command-load" in stage.events(EventKind.KNOB)
        )
        await stage.press("x")
        await stage.state(LoadState.FINISHED)
    assert not list(scratch_folder.iterdir())


async def test_a_policy_without_a_choice_is_reported() -> None:
    async with load_stage(JobSpec(size_bytes=1 << 20, knobs=GENTLE)) as stage:
        await stage.press("p")
        await stage.shows("only one path to the data")


async def test_autostart_runs_at_once_on_the_load_screen() -> None:
    job = JobSpec(size_bytes=1 << 20, knobs=GENTLE)
    async with load_stage(job, autostart=True) as stage:
        assert isinstance(stage.app.screen, LoadScreen)
        await stage.state(LoadState.RUNNING)


async def test_arm_then_knobs_then_start() -> None:
    job = JobSpec(size_bytes=1 << 20, knobs=GENTLE)
    async with load_stage(job) as stage:
        await stage.shows("no load yet")
        await stage.press("a")
        await stage.state(LoadState.ARMED)
        await stage.press("right_square_bracket")
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        assert stage.control.status.knobs is not None
        assert stage.control.status.knobs.queue_depth == 2
        await until(stage.pilot, lambda: stage.events(EventKind.LOAD))


async def test_stop_disarms() -> None:
    async with load_stage(JobSpec(size_bytes=1 << 20, knobs=GENTLE)) as stage:
        await stage.press("a")
        await stage.state(LoadState.ARMED)
        await stage.press("x")
        await stage.state(LoadState.IDLE)


async def test_what_is_wrong_is_one_line() -> None:
    async with load_stage(JobSpec(targets=(TargetSpec("/nonexistent/[b]disk[/b]"),))) as stage:
        await stage.press("s")
        await stage.state(LoadState.FAILED)
        await stage.shows("/nonexistent/[b]disk[/b]")


async def test_a_wrong_field_is_reported_and_the_old_job_stays() -> None:
    async with load_stage(SCRATCH) as stage:
        await stage.press("e", "tab", "tab", "tab", "tab")
        await stage.press("ctrl+u", *"much")
        await stage.shows("'much'")
        assert stage.app.app_state.controller is not None
        assert stage.app.app_state.controller.job.targets == SCRATCH.targets


async def test_writing_needs_the_name_typed(data_file: Path) -> None:
    before = data_file.read_bytes()
    job = JobSpec(targets=(TargetSpec(str(data_file)),), knobs=WRITING)
    permissions = Permissions(frozenset({str(data_file)}), destroy_data=True)
    async with load_stage(job, permissions=permissions) as stage:
        await stage.press("s")
        assert isinstance(stage.app.screen, TypeToConfirm)
        await type_name(stage.pilot, "D")
        await stage.shows("name does not match")
        await stage.press("s", "escape")
        await stage.shows("name does not match")
        assert stage.control.status.state is LoadState.IDLE
    assert data_file.read_bytes() == before


async def test_writing_starts_once_the_name_is_typed(data_file: Path) -> None:
    before = data_file.read_bytes()
    job = JobSpec(targets=(TargetSpec(str(data_file)),), knobs=WRITING)
    async with load_stage(job, permissions=Permissions(destroy_data=True)) as stage:
        await stage.press("s")
        await type_name(stage.pilot, str(data_file))
        await stage.state(LoadState.RUNNING)
        await until(stage.pilot, lambda: data_file.read_bytes() != before)
        await stage.press("1", "q")
        await stage.shows("The load is writing")
        await stage.press("escape")
        assert stage.control.status.state is LoadState.RUNNING
        await stage.press("2", "x")
        await stage.state(LoadState.FINISHED)


async def test_turning_to_writes_needs_a_restart_when_armed_for_reading(data_file: Path) -> None:
    before = data_file.read_bytes()
    job = JobSpec(targets=(TargetSpec(str(data_file)),), knobs=GENTLE)
    async with load_stage(job) as stage:
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        await stage.press("R")
        await stage.shows("open for reading only")
        assert stage.control.status.knobs == job.knobs
    assert data_file.read_bytes() == before


async def test_turning_to_writes_asks_for_the_name_even_with_permission(data_file: Path) -> None:
    before = data_file.read_bytes()
    job = JobSpec(targets=(TargetSpec(str(data_file)),), knobs=GENTLE)
    async with load_stage(job, permissions=Permissions(frozenset({str(data_file)}), destroy_data=True)) as stage:
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        await stage.press("R")
        assert isinstance(stage.app.screen, TypeToConfirm)
        assert data_file.read_bytes() == before
        await type_name(stage.pilot, str(data_file))
        await until(stage.pilot, lambda: stage.control.status.epoch == 1)
        await until(stage.pilot, lambda: data_file.read_bytes() != before)


async def test_existing_data_is_refused_and_no_name_is_asked_for(data_file: Path) -> None:
    before = data_file.read_bytes()
    job = JobSpec(targets=(TargetSpec(str(data_file)),), knobs=WRITING)
    async with load_stage(job) as stage:
        await stage.press("s")
        await stage.shows("Refused: ")
        await stage.shows("--destroy-data")
        assert "Type its name" not in screen_text(stage.pilot)
        await stage.press("escape")
        assert stage.control.status.state is LoadState.IDLE
    assert data_file.read_bytes() == before


async def test_destroying_needs_its_own_word() -> None:
    async with load_stage(SCRATCH) as stage:
        controller = stage.app.app_state.controller
        assert controller is not None
        hidden = 1  # The path policy: scratch files without a mirror have no paths.
        await stage.press("e", *["tab"] * (len(FORM) - 1 - hidden))
        await stage.press("right")
        assert isinstance(stage.app.screen, TypeToConfirm)
        await stage.press("escape")
        assert not controller.permissions.destroy_data
        await stage.press("right")
        await stage.press(*"destroy", "enter")
        await until(stage.pilot, lambda: controller.permissions.destroy_data)
        await stage.press("left")
        await until(stage.pilot, lambda: not controller.permissions.destroy_data)


async def test_badges_of_what_is_read_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "holes"
    with path.open("wb") as file:
        file.truncate(1 << 20)
    job = JobSpec(targets=(TargetSpec(str(path)),), knobs=GENTLE)
    async with load_stage(job) as stage:
        await stage.press("a")
        await stage.state(LoadState.ARMED)
        await stage.shows_at_each_size("[unwritten 100 %]")
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        await stage.shows_at_each_size("no errors, [unwritten 100 %] ")


async def test_a_form_opened_while_a_stop_goes_on_stays_open() -> None:
    async with load_stage(SCRATCH) as stage:
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        controller = stage.app.app_state.controller
        assert controller is not None
        await stage.pilot.press("x", "e", "ctrl+u")
        await until(stage.pilot, lambda: stage.control.status.state is LoadState.FINISHED)
        await stage.pilot.pause(0.3)
        await stage.press(*"wbt")
        assert stage.app.screen.query_one("#targets", Input).value == "wbt"
        assert (controller.job.knobs.blocks, controller.job.knobs.rate_iops) == (
            SCRATCH.knobs.blocks,
            SCRATCH.knobs.rate_iops,
        )


async def test_what_was_refused_is_forgotten_with_the_form() -> None:
    async with load_stage(SCRATCH) as stage:
        await stage.press("e", "ctrl+u")
        await stage.shows("targets: name a device or a file")
        await stage.press(*"/dev/x")
        await until(stage.pilot, lambda: "name a device" not in screen_text(stage.pilot))
        await stage.press("ctrl+u")
        await stage.shows("targets: name a device or a file")
        await stage.press("escape")
        await until(stage.pilot, lambda: "name a device" not in screen_text(stage.pilot))


async def test_a_target_typed_while_the_load_stops_is_taken_once_it_has() -> None:
    async with load_stage(SCRATCH) as stage:
        controller = stage.app.app_state.controller
        assert controller is not None
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        await stage.press("e", "ctrl+u", *"/dev/x")
        await stage.shows("the job cannot be changed while it is running")
        stage.control.stop()
        await until(stage.pilot, lambda: controller.job.targets == (TargetSpec("/dev/x"),))
        await until(stage.pilot, lambda: "cannot be changed" not in screen_text(stage.pilot))


async def test_the_form_says_what_the_options_say_and_has_the_policy_where_there_is_a_choice() -> None:
    async with load_stage(SCRATCH, SIZES[0]) as stage:
        controller = stage.app.app_state.controller
        assert controller is not None
        await stage.press("e", "tab")
        for text, words in (
            ("5000", "--qd: 5000 is out of range: 1 to 4096 per target"),
            ("x", "--qd: 'x' is not a whole number"),
        ):
            await stage.press("ctrl+u", *text)
            await stage.shows(words)
            assert controller.knobs.queue_depth == SCRATCH.knobs.queue_depth
        await stage.press("ctrl+u", *"7")
        await until(stage.pilot, lambda: controller.knobs.queue_depth == 7)
        await stage.press("tab", "ctrl+u", *"4k:60,16k:40", "tab", "tab", "ctrl+u", *"250")
        await until(stage.pilot, lambda: controller.knobs.rate_iops == 250)
        assert [share.block_bytes for share in controller.knobs.blocks] == [4096, 16384]
        policy, mirror = stage.app.screen.query_one("#row_policy"), stage.app.screen.query_one("#mirror", Input)
        assert not policy.display
        mirror.value = "2"
        await until(stage.pilot, lambda: policy.display)
        assert controller.job.copies == 2


async def test_a_knob_that_is_turned_beside_the_form_is_turned_in_it() -> None:
    async with load_stage(SCRATCH, SIZES[0]) as stage:
        controller = stage.app.app_state.controller
        assert controller is not None
        await stage.press("e", *["tab"] * 5, "plus")
        assert stage.app.screen.query_one("#queue_depth", Input).value == "3"
        await stage.press("tab", "tab", "right")
        assert controller.knobs == replace(SCRATCH.knobs, queue_depth=3, mode=Mode.BUFFERED)


async def test_a_form_opened_while_the_load_runs_says_so_before_anything_is_typed() -> None:
    async with load_stage(SCRATCH) as stage:
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        await stage.press("e")
        await stage.shows("the job cannot be changed while it is running")
        await stage.press("escape")
        await until(stage.pilot, lambda: "cannot be changed" not in screen_text(stage.pilot))


@needs.io_uring
async def test_a_running_load_is_flipped_between_two_slots_and_turned_back() -> None:
    async with load_stage(SCRATCH, SIZES[0]) as stage:
        await stage.press("o", "plus", "b", "O", "s")
        await stage.state(LoadState.RUNNING)
        await stage.shows("B*")
        await until(stage.pilot, lambda: stage.app.app_state.frame and "load_total" in stage.app.app_state.frame.tables)
        await stage.press("c")
        # First what is shown for a few seconds only.
        await stage.shows("B -> A: block size 8k -> 4k")
        await until(stage.pilot, lambda: stage.control.status.epoch == 1)
        assert stage.control.knobs.knobs == SCRATCH.knobs
        await stage.shows("A*")
        await stage.press("U")
        await until(stage.pilot, lambda: stage.control.status.epoch == 2)
        assert stage.control.knobs.knobs.queue_depth == 3
        events = ["queue depth 3 -> 2", "block size 8k -> 4k", "queue depth 2 -> 3", "block size 4k -> 8k"]
        await until(stage.pilot, lambda: stage.events(EventKind.KNOB) == events)


async def test_a_slot_of_another_job_is_fitted_or_refused() -> None:
    async with load_stage(SCRATCH) as stage:
        controller = stage.app.app_state.controller
        assert controller is not None
        await stage.press("o", "plus", "O")
        controller.edit(replace(SCRATCH, targets=SCRATCH.targets[:1], knobs=GENTLE), destroy_data=False)
        await stage.press("c")
        assert (controller.knobs.stripe_width, controller.knobs.queue_depth) == (1, 2)
        controller.edit(replace(SCRATCH, size_bytes=1 << 12), destroy_data=False)
        await stage.press("B", "b", "b", "O", "o", "B", "c", "c")
        await stage.shows("--size: 4k is not a multiple of the block")


async def test_undo_that_would_write_again_asks_for_the_name(data_file: Path) -> None:
    before = data_file.read_bytes()
    job = JobSpec(targets=(TargetSpec(str(data_file)),), knobs=WRITING)
    async with load_stage(job) as stage:
        await stage.press(*"r" * 10)
        await stage.shows("100 %")
        await stage.press("a")
        await stage.state(LoadState.ARMED)
        await stage.press("U")
        assert isinstance(stage.app.screen, TypeToConfirm)
        await stage.press("escape")
        await stage.shows("name does not match")
        assert stage.control.status.knobs is not None
        assert stage.control.status.knobs.read_pct == 100
    assert data_file.read_bytes() == before


IN_SIGHT = ("2 of 2", "16k", "90 %", "none", "buffered", "zipf:0.9", "IOPS", "mean ms", "p99 ms", "peak ms")


async def test_every_knob_and_both_windows_are_in_sight() -> None:
    async with load_stage(SCRATCH, (60, 20)) as stage:
        await stage.shows("IDLE")
        await stage.press(*"bbRmd")
        for size in ((60, 20), (80, 24), (100, 24), (200, 60)):
            await stage.pilot.resize_terminal(*size)
            await until(stage.pilot, lambda: all(text in screen_text(stage.pilot) for text in IN_SIGHT))
            assert screen_text(stage.pilot).count(" ->") >= 4, size


async def test_a_rate_is_never_cut_in_its_digits() -> None:
    async with load_stage(JobSpec(knobs=Knobs(rate_iops=1_500_000.0))) as stage:
        await stage.shows("T  1.5M/s  t")
        await stage.pilot.resize_terminal(*SIZES[1])
        await stage.shows("1,500,000/s")


@needs.io_uring
async def test_a_turn_that_checks_targets_for_long_leaves_the_screen_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow_check(_targets: object, _waits: object) -> None:
        begun.set()
        assert may_end.wait(60)

    job = replace(SCRATCH, knobs=replace(GENTLE, stripe_width=1))
    async with load_stage(job) as stage:
        await stage.press("s")
        await stage.state(LoadState.RUNNING)
        monkeypatch.setattr("engine.running.driver.recheck_targets", slow_check)
        try:
            await stage.press("w")
            await until(stage.pilot, begun.is_set)
            await stage.shows("2 of 2")
            await stage.press("plus", "1")
            await stage.press("2")
            await stage.shows("2 of 2")
            assert stage.control.status.epoch == 0
        finally:
            may_end.set()
        await until(stage.pilot, lambda: stage.control.status.epoch == 2)
        knobs = stage.control.status.knobs
        assert knobs is not None
        assert (knobs.stripe_width, knobs.queue_depth) == (2, 2)
