"""From rows of tables to the targets of a load, over samples; tests/kernel/test_load_here.py does it on devices."""

from __future__ import annotations

import threading
import time
from pathlib import Path as FilePath

import pytest
from textual.widgets import OptionList

from collectors.graph import Graph, Lun, Path
from collectors.latency.subjects import TRACE, LatencySubject
from collectors.model import Device, Topology
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.guard.answers import GuardAnswer
from engine.job.spec import Access, BlockShare, JobSpec, Knobs, Permissions, TargetSpec
from engine.newest_work import PATIENCE_S, NewestWork
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.app.multipath import key, make_topology, multipath_samples
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, FreeGuard, make_app, on_stage, play, rewind_to, said, screen_text, until
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.kept import MOST_TARGETS, RecentTargets
from tui.load.candidates import (
    Candidate,
    candidates,
    device_of_event,
    device_of_row,
    device_of_subject,
    load_targets,
    matching,
    target_of,
)
from tui.load.host_guard import WriteQuestion
from tui.load.load_controller import LoadController, read_only_job
from tui.screens.latency.screen import LatencyScreen
from tui.screens.load.screen import LoadScreen
from tui.screens.load.target_picker import MOST_LISTED, TargetAnswered, TargetPicker, UsesFound
from tui.screens.overview import OverviewScreen
from tui.screens.shared.chooser import Chooser
from tui.widgets.guard_panel import answer_lines
from tui.widgets.line_list import ItemOption

MANY = 19_200


def test_only_reads_what_is_asked_for_with_the_knobs_of_before() -> None:
    knobs = Knobs(queue_depth=8, read_pct=0, blocks=(BlockShare(8192),), stripe_width=2, fsync_every=3)
    before = JobSpec(
        (TargetSpec("/dev/a"), TargetSpec("/dev/b")),
        knobs,
        Access.SEQUENTIAL,
        size_bytes=1 << 20,
        copies=2,
        verify=True,
    )
    job = read_only_job(before, (TargetSpec("/dev/c"),))
    wanted = replace(knobs, read_pct=100, stripe_width=1, fsync_every=None)
    assert job == JobSpec((TargetSpec("/dev/c"),), wanted, Access.SEQUENTIAL)


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("nvme0n1", ["/dev/nvme0n1"]),
        ("nvme0n1p1", ["/dev/nvme0n1p1"]),
        ("dm-1", ["/dev/dm-1", "lun:sde,sdf,sdg,sdh"]),
        ("sde", ["/dev/sde", "/dev/dm-1", "lun:sde,sdf,sdg,sdh"]),
    ],
)
def test_what_a_row_can_be_driven_by(name: str, targets: list[str]) -> None:
    assert [target_of(one) for one in load_targets(key(name), make_topology())] == targets


def test_a_hidden_path_names_its_namespace_and_what_is_gone_is_said() -> None:
    head = Device("head", "nvme0n1", "disk", 259, 1)
    hidden = Device("path", "nvme0c0n1", "nvme-path", 259, 2)
    graph = Graph(luns=(Lun("head", "nvme0n1", "nvme"),), paths=(Path("path", "nvme0c0n1", "head"),))
    topology = Topology({device.key: device for device in (head, hidden)}, graph=graph)
    with pytest.raises(UsageError, match="no device node: put the load on nvme0n1"):
        load_targets("path", topology)
    with pytest.raises(UsageError, match="not among the devices"):
        load_targets("gone", topology)
    assert [one.target for one in candidates(topology)] == ["scratch", "/dev/nvme0n1"]


def test_the_list_has_maps_before_their_paths_and_finds_by_any_text() -> None:
    offered = candidates(make_topology())
    names = [one.name for one in offered]
    assert names[0] == "scratch"
    assert names.index("dm-3") < names.index("nvme0n1p1") < names.index("sda")
    assert [one.target for one in matching(offered, "LUN:sda")] == ["lun:sda,sdb,sdc,sdd"]
    assert not matching(offered, "nothing-of-that-name")


def many_disks() -> Topology:
    disks = (Device(f"d{n}", f"sd{n}", "disk", 8, n, size_bytes=1 << 40, model=f"Array {n % 7}") for n in range(MANY))
    return Topology({device.key: device for device in disks})


def test_very_many_rows_are_listed_and_filtered_at_once() -> None:
    topology = many_disks()
    offered = candidates(topology)
    began_s = time.process_time()
    assert len(matching(offered, "array 19199")) == 1
    assert len(matching(offered, "sd1 array")) > 1000
    assert time.process_time() - began_s < 5, "some 20 ms on an idle machine"


def test_answers_are_short_and_name_the_target_once() -> None:
    in_use = GuardAnswer("/dev/sda", 1 << 30, "", "/dev/sda is mounted on / (ext4): never written to: unmount it first")
    gone = GuardAnswer(
        "/dev/sdb", None, "/dev/sdb: no such file or device: lsblk lists the devices", "it cannot be read"
    )
    own = GuardAnswer("scratch", is_own=True)
    lines = [line.plain for line in answer_lines((in_use, gone, own))]
    assert (
        lines[0] == "/dev/sda  1 GiB  read: allowed  write: is mounted on / (ext4): never written to: unmount it first"
    )
    assert lines[1] == "/dev/sdb  read: no such file or device: lsblk lists the devices"
    assert lines[2].startswith("scratch  made, filled and removed")
    assert [line.plain for line in answer_lines((in_use,) * 9, 3)][
        -1
    ] == "and 7 more: 0 cannot be read, 7 may not be written"


async def test_a_replay_says_why_there_is_no_load() -> None:
    source = ListRecording(make_samples(count=20))
    app = make_app(source)
    async with on_stage(app) as pilot:
        await rewind_to(pilot, source, 10)
        await pilot.press("L")
        await until(pilot, lambda: said(app, "a replay drives no load"))
        assert isinstance(app.screen, OverviewScreen)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_a_path_asks_whether_the_path_its_map_or_all_paths(size: tuple[int, int]) -> None:
    control, source = LoadControl(), ListSource(multipath_samples(20))
    app = make_app(source, control)
    async with on_stage(app, size) as pilot:
        await play(pilot, source, 8)
        await pilot.press("5", "L")
        await until(pilot, lambda: isinstance(app.screen, Chooser))
        assert "chosen by the policy" in screen_text(pilot)
        await pilot.press(*"lun:", "enter")
        await until(pilot, lambda: isinstance(app.screen, LoadScreen))
        controller = app.app_state.controller
        assert controller is not None
        assert len(controller.job.targets[0].paths) == 4
        await until(pilot, lambda: "read: allowed" in screen_text(pilot))
        await pilot.press("e")
        assert app.screen.query_one("#row_policy").display
    control.close()


@pytest.mark.slow
async def test_where_no_disk_is_under_the_cursor_the_list_opens() -> None:
    control, source = LoadControl(), ListSource(multipath_samples(20))
    app = make_app(source, control)
    async with on_stage(app) as pilot:
        await play(pilot, source, 8)
        await pilot.press("6", "L")
        await until(pilot, lambda: isinstance(app.screen, TargetPicker))
        picker = app.screen
        assert isinstance(picker, TargetPicker)
        await pilot.press(*"nvme", "escape")
        await until(pilot, lambda: not picker.query(OptionList))
        for late in (UsesFound({"nvme0n1": ""}), TargetAnswered("/dev/nvme0n1", GuardAnswer("nvme0n1", None, "", ""))):
            await picker._dispatch_message(late)
        await pilot.press("7", "L")
        await until(pilot, lambda: isinstance(app.screen, LoadScreen | Chooser))
    control.close()


def test_latencies_and_events_stand_for_a_device() -> None:
    topology = make_topology()
    paths = frozenset(key(name) for name in ("sde", "sdf", "sdg", "sdh"))
    found = [
        device_of_subject(LatencySubject("", source, keys), topology)
        for source, keys in (
            (TRACE, frozenset({key("sde")})),
            (TRACE, paths),
            (TRACE, paths | {key("dm-1")}),
            (TRACE, paths - {key("sde")}),
            (TRACE, paths | {key("sda")}),
            ("load", frozenset({"load"})),
        )
    ]
    assert found == [key("sde"), key("dm-1"), key("dm-1"), None, None, None]
    events = [
        Event.now(EventKind.HOTPLUG, "", name="sda"),
        Event.now(EventKind.PATH, "", path="sdf"),
        Event.now(EventKind.ALERT, "", table="disks", key=key("dm-1")),
        Event.now(EventKind.ALERT, "", table="hbas", key=key("dm-1")),
        Event.now(EventKind.HOTPLUG, "", name="gone"),
        Event.now(EventKind.KNOB, "queue depth 8"),
    ]
    expected = [key("sda"), key("sdf"), key("dm-1"), None, None, None]
    assert [device_of_event(event, topology) for event in (*events, None)] == [*expected, None]
    assert (device_of_row("disks", "8:0"), device_of_row("processes", "1")) == ("8:0", None)


@pytest.mark.slow
async def test_the_device_of_an_event_or_of_latencies_is_taken() -> None:
    control, source = LoadControl(), ListSource(multipath_samples(20))
    app = make_app(source, control)
    async with on_stage(app) as pilot:
        await play(pilot, source, 8)
        app.app_state.events.add([Event.now(EventKind.PATH, "path sde failed", path="sde")])
        await pilot.press("3")
        await until(pilot, lambda: "path sde failed" in screen_text(pilot))
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, Chooser))
        await pilot.press("escape", "4")
        await until(pilot, lambda: isinstance(app.screen, LatencyScreen))
        view = app.screen
        assert isinstance(view, LatencyScreen)
        view.follow(LatencySubject("sdf", TRACE, frozenset({key("sdf")})))
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, Chooser))
    control.close()


@pytest.mark.slow
async def test_the_list_of_very_many_disks_asks_the_guard_about_few() -> None:
    asked: list[str] = []

    class CountingGuard(FreeGuard):
        def answers(self, job: JobSpec, permissions: Permissions) -> tuple[GuardAnswer, ...]:
            asked.extend(target.path or "" for target in job.targets)
            return super().answers(job, permissions)

    control = LoadControl()
    controller = LoadController(control, JobSpec(), Permissions(), guard=CountingGuard())
    app = LunscopeApp(AppInput(ListSource(make_samples(count=2)), controller), settings=FROZEN)
    async with on_stage(app) as pilot:
        chosen: list[tuple[str, ...] | None] = []
        app.push_screen(TargetPicker(candidates(many_disks()), controller), chosen.append)
        await until(pilot, lambda: f"{MANY + 1} of {MANY + 1}, the first {MOST_LISTED} listed" in screen_text(pilot))
        assert app.screen.query_one(OptionList).option_count == MOST_LISTED
        await pilot.press(*"sd19199")
        await until(pilot, lambda: f"1 of {MANY + 1}" in screen_text(pilot))
        await until(pilot, lambda: "/dev/sd19199  1 GiB  read: allowed" in screen_text(pilot))
        await pilot.press("tab", "ctrl+u", *"sd19198", "tab")
        await until(pilot, lambda: "2 chosen" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: chosen == [("/dev/sd19199", "/dev/sd19198")])
        assert len(asked) < 20
    control.close()


@pytest.mark.slow
async def test_a_click_chooses_the_target_that_was_clicked_though_the_list_has_changed() -> None:
    control = LoadControl()
    controller = LoadController(control, JobSpec(), Permissions(), guard=FreeGuard())
    app = LunscopeApp(AppInput(ListSource(make_samples(count=2)), controller), settings=FROZEN)
    async with on_stage(app) as pilot:
        chosen: list[tuple[str, ...] | None] = []
        app.push_screen(TargetPicker(candidates(many_disks()), controller), chosen.append)
        await until(pilot, lambda: f"{MANY + 1} of {MANY + 1}" in screen_text(pilot))
        listing = app.screen.query_one(OptionList)
        clicked = OptionList.OptionSelected(listing, listing.options[7], 7)
        assert isinstance(clicked.option, ItemOption)
        target = clicked.option.item.target
        await pilot.press(*"sd19199")
        await until(pilot, lambda: listing.option_count == 1)
        listing.post_message(clicked)
        await until(pilot, lambda: "1 chosen" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: chosen == [(target,)])
    control.close()


@pytest.mark.slow
async def test_the_form_takes_what_was_chosen_from_the_list() -> None:
    control, source = LoadControl(), ListSource(multipath_samples(20))
    app = make_app(source, control)
    async with on_stage(app) as pilot:
        await play(pilot, source, 8)
        await pilot.press("2", "e", "enter")
        await until(pilot, lambda: isinstance(app.screen, TargetPicker))
        await pilot.press(*"nvme0n1", "tab", "tab", "enter")
        controller = app.app_state.controller
        assert controller is not None
        await until(pilot, lambda: len(controller.job.targets) == 2)
        assert "/dev/nvme0n1 /dev/nvme0n1p1" in screen_text(pilot)
    control.close()


def test_a_map_is_named_by_its_node_in_dev_mapper_only_if_that_leads_to_it() -> None:
    candidate = Candidate("/dev/no-such-dm", "dm-9", dm_name="no-such-map")
    assert target_of(candidate) == "/dev/no-such-dm"


def test_of_requests_only_the_newest_is_begun_and_one_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, done = threading.Event(), threading.Event(), threading.Event()
    finished: list[str] = []

    def hanging() -> None:
        begun.set()
        assert may_end.wait(60)

    def newest() -> None:
        finished.append("newest")
        done.set()

    work = NewestWork("test", patience_s=PATIENCE_S)
    work.request(hanging)
    assert begun.wait(60)
    work.request(lambda: finished.append("overtaken"))
    assert work.is_overtaken
    monkeypatch.setattr(work, "_patience_s", 0.0)
    work.request(newest)
    assert done.wait(60)
    assert finished == ["newest"]
    may_end.set()


def test_a_job_that_only_reads_takes_the_right_to_write_back() -> None:
    control = LoadControl()
    permissions = Permissions(frozenset({"/dev/c", "/dev/d"}), destroy_data=True)
    controller = LoadController(control, JobSpec((TargetSpec("/dev/c"),), Knobs(read_pct=0)), permissions)
    controller.confirm(WriteQuestion("/dev/c", ""))
    controller.read_from((TargetSpec("/dev/c"),))
    assert controller.permissions == Permissions(frozenset({"/dev/d"}))
    assert controller.unconfirmed(Knobs(read_pct=0)) == ("/dev/c",)
    controller.hold(lambda: "a sweep runs")
    with pytest.raises(UsageError, match="a sweep runs"):
        controller.read_from((TargetSpec("/dev/d"),))
    control.close()


def test_recent_targets_are_kept_and_a_broken_file_is_no_trouble(tmp_path: FilePath) -> None:
    file = tmp_path / "state" / "targets.json"
    recent = RecentTargets(file)
    assert not recent.names
    recent.add(["/srv/a b", "lun:sda,sdb"])
    recent.add(["/srv/c", "/srv/a b"])
    assert RecentTargets(file).names == ("/srv/c", "/srv/a b", "lun:sda,sdb")
    recent.add(f"/srv/{number}" for number in range(MOST_TARGETS + 5))
    assert len(RecentTargets(file).names) == MOST_TARGETS
    for broken in ("{", '{"a": 1}', "[1, null]"):
        file.write_text(broken)
        assert not RecentTargets(file).names
    file.unlink()
    file.mkdir()
    recent.add(["/srv/d"])
    assert recent.names[0] == "/srv/d"


@pytest.mark.slow
async def test_a_file_that_was_a_target_is_listed() -> None:
    control, source = LoadControl(), ListSource(make_samples(count=20))
    controller = LoadController(control, JobSpec(), Permissions(), guard=FreeGuard())
    controller.recent.add(["/srv/data file"])
    app = LunscopeApp(AppInput(source, controller), settings=FROZEN)
    async with on_stage(app) as pilot:
        await play(pilot, source, 8)
        await pilot.press("2", "L", *"srv")
        await until(pilot, lambda: "used before" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: controller.job.targets == (TargetSpec("/srv/data file"),))
    control.close()
