"""The tuning drawer over a fake host, whose tunables are regular files."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import OptionList

from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.tune.held import HeldChanges
from engine.tune.journal import Journal
from engine.tune.planned_writes import parse_settings
from tests.app.multipath import key, multipath_samples
from tests.app.sources import SECOND_NS, START_NS, ListSource, make_samples
from tests.app.stage import make_app, on_stage, play, said, screen_text, until
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.unit.tune.hosts import QUEUE
from tui.app.app import LunscopeApp
from tui.screens.shared.process_scope import Scope
from tui.screens.tune.drawer import TuneDrawer
from tui.screens.tune.leaving_changes import restore_all
from tui.screens.tune.scopes import scopes_at
from tui.screens.tune.tunable_rows import stepped
from tui.widgets.line_list import ItemOption

SIZES = ((80, 24), (120, 40), (200, 60))


@pytest.fixture
def kernel() -> Iterator[FakeKernel]:
    folder = Path(tempfile.mkdtemp())
    kernel = FakeKernel(folder / "host")
    for number, name in enumerate(("vda", "vdb", "sdc")):
        kernel.add(FakeDisk(name, 8, 16 * number, attributes=QUEUE, at=f"virtual/block/{name}"))
    yield kernel
    shutil.rmtree(folder)


def app_of(kernel: FakeKernel, source: ListSource) -> LunscopeApp:
    app = make_app(source)
    app.app_state.tuning = HeldChanges(kernel.sysfs, Journal(kernel.sysfs.parent / "state"))
    return app


def requests(kernel: FakeKernel, name: str = "sdc") -> str:
    return (kernel.sysfs / "block" / name / "queue/nr_requests").read_text().strip()


async def opened(pilot: Pilot[None], source: ListSource, count: int = 20) -> None:
    await play(pilot, source, count)
    await pilot.press("F")
    await until(pilot, lambda: isinstance(pilot.app.screen, TuneDrawer) and "nomerges" in screen_text(pilot))
    await until(pilot, lambda: not busy(pilot.app))


@pytest.mark.slow
async def test_a_value_is_typed_applied_flipped_and_undone(kernel: FakeKernel) -> None:
    source = ListSource(make_samples())
    app = app_of(kernel, source)
    async with on_stage(app) as pilot:
        await opened(pilot, source)
        assert "Tune disk sdc" in screen_text(pilot), "the hottest is under the cursor"
        await pilot.press("enter")
        await until(pilot, lambda: "New value of nr_requests" in screen_text(pilot))
        await pilot.press("pagedown", "up", "enter")
        await until(pilot, lambda: "nr_requests  sdc     128     65" in screen_text(pilot))
        assert "Dry run, until lunscope ends" in screen_text(pilot)
        assert requests(kernel) == "128", "nothing is written before it is confirmed"
        await pilot.press("enter")
        await until(pilot, lambda: "nr_requests 128 -> 65 on sdc" in screen_text(pilot))
        assert (requests(kernel), requests(kernel, "vda")) == ("65", "128")
        await until(pilot, lambda: not busy(app))
        for wanted in ("128", "65"):
            await pilot.press("c")
            await until_requests(pilot, kernel, wanted)
            await until(pilot, lambda: not busy(app))
        await pilot.press("w")
        await until(pilot, lambda: "nothing is installed" in screen_text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: not busy(app))
        await pilot.press("u")
        await until(pilot, lambda: "no change in force" in screen_text(pilot))
        assert requests(kernel) == "128"
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(app.screen, TuneDrawer))


async def test_the_mark_of_a_changed_value_is_explained(kernel: FakeKernel) -> None:
    (kernel.sysfs / "block/sdc/queue/nomerges").write_text("2\n")
    source = ListSource(make_samples())
    async with on_stage(app_of(kernel, source)) as pilot:
        await opened(pilot, source)
        assert "*: not the default" not in screen_text(pilot)
        for _ in range(20):
            if "nomerges:" in screen_text(pilot):
                break
            await pilot.press("down")
        await until(pilot, lambda: "*: not the default" in screen_text(pilot))


async def until_requests(pilot: Pilot[None], kernel: FakeKernel, wanted: str) -> None:
    await until(pilot, lambda: requests(kernel) == wanted)


def busy(app: App[None]) -> bool:
    drawer = app.screen
    return isinstance(drawer, TuneDrawer) and drawer._is_busy


@pytest.mark.slow
async def test_what_is_refused_is_said_and_a_blocked_kernel_stops_nothing(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kernel.sysfs / "block/sdc/queue/nomerges").chmod(0o444)
    source = ListSource(make_samples())
    app = app_of(kernel, source)
    async with on_stage(app) as pilot:
        await opened(pilot, source)
        assert any(line.startswith("│ r nomerges") for line in screen_text(pilot).splitlines())
        await pilot.press("enter")
        await until(pilot, lambda: "New value of nr_requests" in screen_text(pilot))
        await pilot.press(*"99999", "enter")
        await until(pilot, lambda: "is not legal: 4..256" in screen_text(pilot))
        answers = threading.Event()

        def blocked(*_: object) -> None:
            answers.wait(60)
            raise LunscopeError("the kernel has answered")

        monkeypatch.setattr(HeldChanges, "undo", blocked)
        await pilot.press("u")
        before = app.app_state.latest_ns
        await play(pilot, source, 3)
        assert app.app_state.latest_ns > before
        await until(pilot, lambda: "writing .." in screen_text(pilot))
        answers.set()
        await until(pilot, lambda: "the kernel has answered" in screen_text(pilot))


async def test_values_that_arrive_after_the_drawer_was_left_are_dropped(kernel: FakeKernel) -> None:
    """Its widgets go before it is detached from the app, which is what tells the thread that there is none."""
    source = ListSource(make_samples())
    async with on_stage(app_of(kernel, source)) as pilot:
        await opened(pilot, source)
        drawer = pilot.app.screen
        assert isinstance(drawer, TuneDrawer)
        await pilot.press("escape")
        await until(pilot, lambda: not drawer.query(OptionList))
        drawer._finish(lambda: drawer._list(()))
        assert not drawer._is_busy


async def test_a_change_whose_watchdog_was_killed_is_restored_and_said(kernel: FakeKernel) -> None:
    source = ListSource(make_samples())
    app = app_of(kernel, source)
    held = app.app_state.tuning
    assert held is not None
    given = parse_settings(["nr_requests=64"])
    made = held.make(held.plan(["sdc"], given), given, None)
    assert made is not None
    async with on_stage(app) as pilot:
        await opened(pilot, source)
        os.kill(made.change._watchdog.pid, signal.SIGKILL)
        await until_requests(pilot, kernel, "128")
        await until(pilot, lambda: said(app, "was killed by SIGKILL"))


async def test_leaving_restores_and_says_so(kernel: FakeKernel) -> None:
    held = HeldChanges(kernel.sysfs, Journal(kernel.sysfs.parent / "state"))
    given = parse_settings(["nr_requests=64"])
    held.make(held.plan(["vda", "vdb"], given), given, None)
    assert restore_all(held, None) == ["tune change 1 undone: nr_requests 128 -> 64 on vda, vdb"]
    assert requests(kernel, "vda") == "128"


@pytest.mark.slow
async def test_events_say_what_a_change_did(kernel: FakeKernel) -> None:
    """Grey until there are enough samples, then the comparison; on both screens."""
    source = ListSource(make_samples(count=60))
    app = app_of(kernel, source)
    async with on_stage(app, SIZES[2]) as pilot:
        await play(pilot, source, 25)
        moment_ns = START_NS + 20 * SECOND_NS
        text = "tune change 1 held: nr_requests 128 -> 64 on sdc, by root, pid 1"
        app.app_state.events.add([Event(EventKind.TUNE, text, moment_ns, moment_ns, {"change": 1, "state": "held"})])
        await pilot.press("F")
        await until(pilot, lambda: "waiting: 4 of" in screen_text(pilot))
        await pilot.press("escape")
        await play(pilot, source, 30)
        await pilot.press("F")
        await until(pilot, lambda: "before/after: sdc IOPS" in screen_text(pilot))
        await pilot.press("escape", "3")
        await until(pilot, lambda: "tune change 1 held" in screen_text(pilot))
        listing = app.screen.query_one(OptionList)
        found = [isinstance(one, ItemOption) and one.item.kind is EventKind.TUNE for one in listing.options]
        listing.highlighted = found.index(True)
        await until(pilot, lambda: "before/after: sdc IOPS" in screen_text(pilot))


def test_scopes_of_a_path_its_lun_and_its_port() -> None:
    topology = multipath_samples(2)[0].topology
    path = scopes_at(key("sde"), None, None, topology)
    assert [scope.names for scope in path][:2] == [("sde",), ("lun:dm-1",)]
    assert path[0].words == "path sde alone"
    assert path[1].words.startswith("all 4 paths of LUN ")
    assert path[2].names[0].startswith("port:")
    lun = scopes_at(key("dm-1"), None, None, topology)
    assert [scope.names for scope in lun] == [("lun:dm-1",), ("dm-1",)]
    group = scopes_at(None, None, Scope("g", frozenset({key("sde")}), cgroup="/a.slice"), topology)
    assert [scope.names for scope in group] == [("cgroup:/a.slice@sde",)]


@pytest.mark.parametrize(
    ("text", "step", "wanted"),
    [("64", 1, "65"), ("64", -1, "63"), ("64", 2, "128"), ("200", 2, "256"), ("5", -2, "4"), ("max", 1, "max")],
)
def test_steps(text: str, step: int, wanted: str) -> None:
    assert stepped(text, "4..256", step) == wanted


@pytest.mark.parametrize("size", SIZES, ids=[f"{columns}x{lines}" for columns, lines in SIZES])
def test_drawer(kernel: FakeKernel, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    source = ListSource(make_samples())
    (kernel.sysfs / "block/sdc/queue/nr_requests").write_text("64\n")

    async def go(pilot: Pilot[None]) -> None:
        await opened(pilot, source)
        await pilot.press("down", "down", "t")
        await pilot.pause()

    assert snap_compare(app_of(kernel, source), terminal_size=size, run_before=go)
