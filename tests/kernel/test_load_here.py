"""From the row of a device to a running load, on loop devices: what the guard says first, and what it never does."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static

from collectors.sources.live import LiveSource
from collectors.sources.load import LoadCollector
from engine.events import EventKind
from engine.guard.answers import GuardAnswer, guard_answers, quick_snapshot, use_words
from engine.job.spec import JobSpec, Knobs, PathSpec, Permissions, TargetSpec
from engine.running.control import LoadControl
from engine.running.status import LoadState
from tests import needs
from tests.app.stage import FROZEN, on_stage, screen_text, type_name, until
from tests.kernel.conftest import Storage
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.load.load_controller import LoadController
from tui.screens.load.screen import LoadScreen
from tui.screens.load.target_picker import TargetPicker
from tui.screens.shared.dialogs import TypeToConfirm

pytestmark = [needs.root, needs.loop]


def answer(*paths: str, destroy_data: bool = False) -> GuardAnswer:
    job = JobSpec(tuple(TargetSpec(path) for path in paths))
    return guard_answers(job, Permissions(destroy_data=destroy_data))[0]


def test_a_free_device_may_be_read_and_written(storage: Storage) -> None:
    device = storage.loop()
    found = answer(device)
    assert (found.name, found.size_bytes, found.reading, found.writing) == (device, 64 << 20, "", "")
    assert use_words(quick_snapshot(), Path(device).name) == ""


@needs.mkfs_ext4
def test_a_mounted_device_may_be_read_only(storage: Storage) -> None:
    device = storage.mkfs(storage.loop())
    point = storage.mount(device)
    found = answer(device, destroy_data=True)
    assert found.reading == ""
    assert found.writing == f"{device} is mounted on {point} (ext4): never written to: unmount it first"
    assert use_words(quick_snapshot(), Path(device).name) == f"is mounted on {point} (ext4)"


@needs.mkfs_ext4
def test_data_is_named_and_may_be_destroyed_if_that_is_allowed(storage: Storage) -> None:
    device = storage.mkfs(storage.loop())
    assert "carries: ext2/3/4 filesystem" in answer(device).writing
    assert answer(device, destroy_data=True).writing == ""


def test_a_device_claimed_by_another_program(storage: Storage) -> None:
    device = storage.loop()
    fd = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        assert "is claimed by the kernel" in answer(device).writing
        assert answer(device).reading == ""
    finally:
        os.close(fd)


def test_a_disk_whose_partition_is_in_use(storage: Storage) -> None:
    device = storage.loop()
    part = storage.partition(device, 1, 1, 32)
    storage.mkfs(part)
    point = storage.mount(part)
    assert (
        use_words(quick_snapshot(), Path(device).name)
        == f"is in use: its partition {part} is mounted on {point} (ext4)"
    )
    assert "its partition" in answer(device).writing


def test_what_is_no_target(storage: Storage, tmp_path: Path) -> None:
    assert "no such file or device" in answer("/dev/loop-none").reading
    assert "a folder, not storage" in answer(str(tmp_path)).reading
    device = storage.loop()
    assert "give each target once" in answer(device, device).reading
    strangers = TargetSpec.lun((PathSpec(device), PathSpec(storage.loop())))
    assert "are not paths of one LUN" in guard_answers(JobSpec((strangers,)), Permissions())[0].reading


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(bytes(1 << 20))
    assert answer(str(file)).reading == ""
    assert "is an existing file of 1 MiB" in answer(str(file)).writing
    name = str(tmp_path / "new")
    job = JobSpec((TargetSpec(name), TargetSpec()), size_bytes=1 << 20)
    new = guard_answers(job, Permissions(typed=frozenset({name})))
    assert [one.is_own for one in new] == [True, True]
    assert "a job file or fleet makes files in the scratch folder only" in guard_answers(job, Permissions())[0].reading
    assert not (tmp_path / "new").exists()


def test_to_ask_opens_nothing_for_writing_and_leaves_nothing_open(storage: Storage) -> None:
    device = storage.loop()
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - its own descriptor is among them each time
    written = _sectors_written(device)
    answer(device)
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208 - as above
    assert _sectors_written(device) == written


def _sectors_written(device: str) -> str:
    return Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[6]


@asynccontextmanager
async def watching(size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[LunscopeApp, Pilot[None], LoadControl]]:
    """The app as `watch` makes it, with a rate that leaves the host to others: no load was asked for."""
    control = LoadControl()
    source = LiveSource(0.2, tier="kernel", extra_collectors=[LoadCollector(control)])
    job = JobSpec(knobs=Knobs(rate_iops=100.0))
    app = LunscopeApp(AppInput(source, LoadController(control, job, Permissions())), settings=FROZEN)
    try:
        async with on_stage(app, size) as pilot:
            await until(pilot, lambda: app.app_state.frame is not None and app.app_state.frame.topology.devices)
            yield app, pilot, control
    finally:
        control.close()
        source.close()


async def go_to(app: LunscopeApp, pilot: Pilot[None], device: str) -> None:
    """Put the cursor of the tree on a device."""
    await pilot.press("6", "slash", *Path(device).name, "enter")
    await pilot.pause()
    for _ in range(5):
        view = app.screen
        if view.load_device() is not None and f"/{Path(device).name}".endswith(_name(app)):  # type: ignore[attr-defined]
            return
        await pilot.press("down")
        await pilot.pause()
    raise AssertionError(screen_text(pilot))


def _name(app: LunscopeApp) -> str:
    frame = app.app_state.frame
    assert frame is not None
    device = frame.topology.devices.get(app.screen.load_device())  # type: ignore[attr-defined]
    return "?" if device is None else f"/{device.name}"


async def test_from_the_row_to_the_running_load_and_back(storage: Storage) -> None:
    device = storage.loop()
    async with watching() as (app, pilot, control):
        await go_to(app, pilot, device)
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LoadScreen))
        await until(pilot, lambda: "asks for its name" in screen_text(pilot))
        assert control.status.state is LoadState.IDLE
        assert device in screen_text(pilot)
        written = _sectors_written(device)
        await pilot.press("T", "s")
        await until(pilot, lambda: control.status.state is LoadState.RUNNING)
        assert control.status.targets == (device,)
        for key, depth in (("plus", 2), ("plus", 3), ("U", 2), ("U", 1)):
            await pilot.press(key)
            await until(pilot, lambda depth=depth: control.knobs.knobs.queue_depth == depth)  # type: ignore[misc]
        wanted = [f"queue depth {turn}" for turn in ("1 -> 2", "2 -> 3", "3 -> 2", "2 -> 1")]
        events = app.app_state.events
        await until(pilot, lambda: _turns(events.all()) == wanted)
        await pilot.press("R")
        await until(pilot, lambda: "open for reading only" in screen_text(pilot))
        await pilot.press("x")
        await until(pilot, lambda: control.status.state is LoadState.FINISHED)
    result = control.result()
    assert result is not None
    assert _sectors_written(device) == written


def _turns(events: object) -> list[str]:
    return [event.text for event in events if event.kind is EventKind.KNOB]  # type: ignore[attr-defined]


async def test_a_running_load_is_replaced_only_if_that_is_said(storage: Storage) -> None:
    first, second = storage.loop(), storage.loop()
    async with watching() as (app, pilot, control):
        controller = app.app_state.controller
        assert controller is not None
        controller.read_from((TargetSpec(first),))
        await pilot.press("2", "s")
        await until(pilot, lambda: control.status.state is LoadState.RUNNING)
        await go_to(app, pilot, second)
        await pilot.press("L")
        await until(pilot, lambda: "A load is running" in screen_text(pilot))
        await pilot.press("enter")
        await pilot.pause()
        assert control.status.state is LoadState.RUNNING
        await pilot.press("L")
        await until(pilot, lambda: "A load is running" in screen_text(pilot))
        await pilot.press("down", "enter")
        await until(pilot, lambda: control.status.state is LoadState.FINISHED)
        await until(pilot, lambda: controller.job.targets == (TargetSpec(second),))
        await until(pilot, lambda: f"next: {second}" in screen_text(pilot))
        assert control.status.targets == (first,)


def in_dialog(pilot: Pilot[None]) -> str:
    """What the dialog says of the target, in one line."""
    found = pilot.app.screen.query("#found")
    return " ".join(str(found.first(Static).content).split()) if found else ""


@needs.mkfs_ext4
async def test_two_targets_of_the_list_and_no_write_without_the_name(storage: Storage) -> None:
    first, second = storage.loop(), storage.mkfs(storage.loop())
    point = storage.mount(second)
    async with watching() as (app, pilot, control):
        await pilot.press("2", "L")
        await until(pilot, lambda: isinstance(app.screen, TargetPicker))
        for device, words in ((first, "no use known"), (second, "is mounted on")):
            await pilot.press("ctrl+u", *Path(device).name)
            await until(pilot, lambda words=words: words in screen_text(pilot))  # type: ignore[misc]
            await pilot.press("tab")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LoadScreen))
        controller = app.app_state.controller
        assert controller is not None
        assert controller.job.targets == (TargetSpec(first), TargetSpec(second))
        assert controller.knobs.stripe_width == 2
        await until(pilot, lambda: "write: is mounted on" in screen_text(pilot) and str(point) in screen_text(pilot))
        await pilot.press("R", "s")
        await until(pilot, lambda: isinstance(app.screen, TypeToConfirm))
        await until(pilot, lambda: f"{first} holds nothing but zeros" in in_dialog(pilot))
        await type_name(pilot, first)
        await until(pilot, lambda: f"Refused: {second} is mounted on" in in_dialog(pilot))
        assert "Type its name" not in screen_text(pilot)
        await pilot.press(*second, "enter")
        assert isinstance(app.screen, TypeToConfirm)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LoadScreen))
        assert second not in controller.permissions.allow_write
        await until(pilot, lambda: control.status.state is LoadState.IDLE)
