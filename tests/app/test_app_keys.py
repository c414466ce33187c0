"""Every key of the registry is pressed, and does what its title says; test_every_screen draws them at every size."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.screen import ModalScreen, Screen

from engine.events import Event, EventKind
from engine.job.distribution import Permutation, Zipf
from engine.job.spec import BlockShare, Mode, TargetSpec
from engine.job.target_text import SCRATCH
from engine.replacing import replace
from engine.running.control import LoadControl
from engine.sweep.points import Point
from tests.app.key_stage import JOB, Press, Setting, Stage, go_back, on_setting, setting_of, state_of
from tests.app.point_rows import point_grid, points_shown
from tests.app.rate_states import StillRates
from tests.app.sources import ListSource, make_samples
from tests.app.stage import (
    FROZEN,
    is_leaving,
    make_app,
    notices,
    on_stage,
    play,
    said,
    screen_text,
    shown_position,
    skip,
    until,
)
from tests.app.still_sessions import group_of
from tests.app.sweep_states import StillSession
from tui.action import ANYWHERE, Action
from tui.kept import AxisChoice, Density
from tui.keys import ACTIONS, BY_ID
from tui.load.knob_memory import KnobSlot
from tui.screen_registry import OVERVIEW, TABS, ScreenEntry
from tui.screens.alerts import AlertsDialog
from tui.screens.caches import CachesView
from tui.screens.details import DiskView, PortView
from tui.screens.events import EventsScreen
from tui.screens.help.screen import HelpScreen
from tui.screens.hosts import HostsView
from tui.screens.latency.screen import LatencyScreen
from tui.screens.load.screen import LoadScreen
from tui.screens.nfs import NfsView
from tui.screens.overview import OverviewScreen
from tui.screens.paths.sheet import SheetView
from tui.screens.processes import ProcessesView
from tui.screens.settings.screen import SettingsDialog
from tui.screens.shared.base import view_class
from tui.screens.shared.chooser import Chooser
from tui.screens.shared.dialogs import Dialog
from tui.screens.tune.drawer import NOT_HERE, TuneDrawer
from tui.sweep.state import SweepPhase
from tui.widgets.grid.table import Grid
from tui.widgets.header import KeyLine

Case = Callable[[Stage], Awaitable[None]]


def shows(entry: ScreenEntry) -> Case:
    async def case(stage: Stage) -> None:
        await stage.pilot.press("3" if entry is OVERVIEW else "1")
        assert not isinstance(stage.app.screen, view_class(entry))
        await stage.press()
        assert isinstance(stage.app.screen, view_class(entry))

    return case


def leads_to(kind: type[Screen[Any]], *words: str, first: Sequence[str] = ()) -> Case:
    """The key opens a screen that shows these words."""

    async def case(stage: Stage) -> None:
        await stage.pilot.press(*first)
        await stage.press()
        assert isinstance(stage.app.screen, kind)
        await until(stage.pilot, lambda: all(map(" ".join(screen_text(stage.pilot).split()).__contains__, words)))

    return case


def opens_and_closes(kind: type[Screen[Any]], *words: str, closed_by: str = "", opener: str = "") -> Case:
    """The key opens a screen over the overview; it or another key closes it again."""

    async def case(stage: Stage) -> None:
        if opener:
            await stage.pilot.press(opener)
            assert isinstance(stage.app.screen, kind)
        else:
            await leads_to(kind, *words)(stage)
        await stage.pilot.press(closed_by or stage.key)
        await until(stage.pilot, lambda: isinstance(stage.app.screen, OverviewScreen))

    return case


def says(words: str, *first: str) -> Case:
    """A notice has these words."""

    async def case(stage: Stage) -> None:
        await stage.pilot.press(*first)
        await stage.press()
        await until(stage.pilot, lambda: said(stage.app, words))

    return case


def has(words: str, *first: str, then_not: bool = False) -> Case:
    """The key has these words appear where they were not, and vanish again if it goes to and fro."""

    async def case(stage: Stage) -> None:
        await stage.pilot.press(*first)
        await stage.pilot.pause()
        assert words not in screen_text(stage.pilot)
        await stage.press()
        await until(stage.pilot, lambda: words in screen_text(stage.pilot))
        if then_not:
            await stage.press()
            await until(stage.pilot, lambda: words not in screen_text(stage.pilot))

    return case


async def tree_folds(stage: Stage) -> None:
    await stage.pilot.press("6", "x")
    assert "0x5006016000000000" in screen_text(stage.pilot)
    await stage.press()
    assert "0x5006016000000000" not in screen_text(stage.pilot)


async def redraws(stage: Stage) -> None:
    drawn: list[object] = []
    stage.app.screen.refresh = lambda *regions, **_: drawn.append(regions)  # type: ignore[method-assign, assignment]
    await stage.press()
    del stage.app.screen.refresh
    assert () in drawn, "all of it, not regions"


async def quits(stage: Stage) -> None:
    await stage.press()
    await until(stage.pilot, lambda: is_leaving(stage.app))


async def holds(stage: Stage) -> None:
    await stage.press()
    held = stage.app.app_state.frame
    await play(stage.pilot, stage.source, 3)
    assert stage.app.app_state.frame is held
    assert "PAUSED at" in screen_text(stage.pilot)
    await stage.press()
    assert shown_position(stage.pilot, stage.source) == stage.source.released - 1
    assert "LIVE" in screen_text(stage.pilot)


async def theme(stage: Stage) -> None:
    before = stage.app.theme
    await stage.press()
    assert stage.app.theme != before
    assert stage.app.theme.startswith("lunscope")


async def longer(stage: Stage) -> None:
    before = stage.app.app_state.span_ns
    await stage.press()
    assert stage.app.app_state.span_ns > before
    assert "charts show the last 15:00" in screen_text(stage.pilot)


async def shorter(stage: Stage) -> None:
    before = stage.app.app_state.span_ns
    await stage.press()
    assert stage.app.app_state.span_ns < before


async def subject(stage: Stage) -> None:
    assert "IOPS of sdc" in screen_text(stage.pilot)
    await stage.press()
    assert "IOPS of all disks" in screen_text(stage.pilot)
    await stage.press()
    assert "IOPS of sdc" in screen_text(stage.pilot)


def moves(samples: int) -> Case:
    """The cursor moves by so many samples of a second each."""

    async def case(stage: Stage) -> None:
        before = shown_position(stage.pilot, stage.source)
        await stage.press()
        await until(stage.pilot, lambda: shown_position(stage.pilot, stage.source) == before + samples)

    return case


def goes_to(position: int) -> Case:
    async def case(stage: Stage) -> None:
        await stage.press()
        await until(stage.pilot, lambda: shown_position(stage.pilot, stage.source) == position)

    return case


def goes_to_a_peak(direction: int) -> Case:
    async def case(stage: Stage) -> None:
        peaks = stage.app.app_state.recording_peaks
        assert peaks is not None
        await until(stage.pilot, lambda: peaks.share == 1)
        before_ns = stage.source.samples[75].time_ns
        times_ns = stage.app.app_state.peaks_ns()
        beyond = [time_ns for time_ns in times_ns if (time_ns - before_ns) * direction > 0]
        nearest_ns = min(beyond, key=lambda time_ns: abs(time_ns - before_ns))
        await stage.press()
        await until(
            stage.pilot,
            lambda: stage.source.samples[shown_position(stage.pilot, stage.source)].time_ns == nearest_ns,
        )

    return case


async def goes_to_a_typed_time(stage: Stage) -> None:
    await stage.press()
    await stage.pilot.press(*"+7s", "enter")
    await until(stage.pilot, lambda: shown_position(stage.pilot, stage.source) == 7)
    await stage.press()
    await stage.pilot.press(*"soon", "enter")
    await until(stage.pilot, lambda: said(stage.app, "'soon'"))
    assert shown_position(stage.pilot, stage.source) == 7


def speeds(factor: float) -> Case:
    async def case(stage: Stage) -> None:
        before = stage.recording.speed
        await stage.press()
        assert stage.recording.speed == before * factor
        assert f"{before * factor:g}x" in screen_text(stage.pilot)

    return case


def turns(**changes: object) -> Case:
    """The knob of the job in hand gets this value, and the screen says so."""

    async def case(stage: Stage) -> None:
        await stage.pilot.press("2")
        before = stage.knobs
        await stage.press()
        for name, value in changes.items():
            assert getattr(before, name) != value
            assert getattr(stage.knobs, name) == value

    return case


async def policy_has_nothing_to_choose(stage: Stage) -> None:
    """Files have one way to them; tests/app/test_load_screen.py turns the policy of a mirror."""
    await stage.pilot.press("2")
    before = stage.knobs
    await stage.press()
    assert stage.knobs == before
    assert "only one path to the data" in screen_text(stage.pilot)


async def axis(stage: Stage) -> None:
    automatic = screen_text(stage.pilot)
    await stage.press()
    assert said(stage.app, "logarithmic axis")
    assert screen_text(stage.pilot) != automatic
    await stage.press()
    assert said(stage.app, "linear axis")
    await stage.press()
    assert stage.app.app_state.latency_axis is AxisChoice.AUTO


async def view_changes_and_comes_back(stage: Stage) -> None:
    chart = stage.app.screen.query_one("#charts")
    await stage.press()
    assert "view: dense" in notices(stage.app)
    assert not stage.app.screen.query_one(KeyLine).display
    await stage.press()
    assert "view: lite" in notices(stage.app)
    assert not chart.display
    await stage.press()
    assert stage.app.app_state.density is Density.NORMAL
    assert chart.display


async def saves_the_screen(stage: Stage) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before, stage.app.appearance.save_folder = stage.app.appearance.save_folder, Path(folder)
        await stage.press()
        stage.app.appearance.save_folder = before
        assert {path.suffix for path in Path(folder).iterdir()} == {".svg", ".txt"}


async def start_asks_before_it_writes(stage: Stage) -> None:
    await stage.pilot.press("2")
    await stage.press()
    assert "WRITE" in screen_text(stage.pilot)
    await stage.pilot.press("x", "enter")
    await stage.pilot.pause()
    assert "name does not match" in screen_text(stage.pilot)
    assert stage.app.app_state.controller is not None
    assert stage.app.app_state.controller.permissions.allow_write == frozenset()


async def stop_is_harmless_without_a_load(stage: Stage) -> None:
    await stage.pilot.press("2")
    await stage.press()
    assert stage.app.app_state.controller is not None
    assert stage.app.app_state.controller.status.state == "idle"
    assert "IDLE" in screen_text(stage.pilot)


async def edits(stage: Stage) -> None:
    await stage.pilot.press("2")
    await stage.press()
    await until(stage.pilot, lambda: "Targets" in screen_text(stage.pilot))
    await stage.pilot.press("ctrl+u", *SCRATCH)
    await stage.pilot.pause()
    assert stage.app.app_state.controller is not None
    assert stage.app.app_state.controller.job.targets == (TargetSpec(None),)
    assert stage.knobs.stripe_width == 1
    await stage.pilot.press("escape")
    await until(stage.pilot, lambda: "Targets" not in screen_text(stage.pilot))


async def sets_up_a_load_on_the_disk(stage: Stage) -> None:
    controller = stage.app.app_state.controller
    assert controller is not None
    await stage.press()
    assert isinstance(stage.app.screen, LoadScreen)
    assert controller.job.targets == (TargetSpec("/dev/sdc"),)
    assert (controller.knobs.read_pct, controller.knobs.queue_depth) == (100, JOB.knobs.queue_depth)
    assert controller.status.state == "idle"
    await until(stage.pilot, lambda: "/dev/sdc" in screen_text(stage.pilot))


async def undoes_turns(stage: Stage) -> None:
    await stage.pilot.press("2", "plus", "b")
    assert (stage.knobs.queue_depth, stage.knobs.blocks) == (12, (BlockShare(16384),))
    await until(stage.pilot, lambda: "undo 2" in screen_text(stage.pilot))
    await stage.press()
    assert (stage.knobs.queue_depth, stage.knobs.blocks) == (12, JOB.knobs.blocks)
    await stage.press()
    assert stage.knobs == JOB.knobs
    await stage.press()
    assert "no turn to undo" in screen_text(stage.pilot)


async def steps_of_another_size(stage: Stage) -> None:
    await stage.pilot.press("2")
    assert "normal steps" in screen_text(stage.pilot)
    await stage.press()
    assert "fine steps" in screen_text(stage.pilot)
    await stage.pilot.press("plus")
    assert stage.knobs.queue_depth == 9
    await stage.press()
    await stage.pilot.press("plus")
    assert stage.knobs.queue_depth == 18
    await stage.press()
    assert "normal steps" in screen_text(stage.pilot)


def stores_in(slot: KnobSlot) -> Case:
    async def case(stage: Stage) -> None:
        assert stage.app.app_state.controller is not None
        await stage.pilot.press("2")
        await stage.press()
        assert stage.app.app_state.controller.memory.stored(slot) == JOB.knobs
        assert f"{slot}*" in screen_text(stage.pilot)

    return case


async def flips(stage: Stage) -> None:
    await stage.pilot.press("2")
    await stage.press()
    assert "no other knobs are stored" in screen_text(stage.pilot)
    await stage.pilot.press("o", "plus", "O")
    await stage.press()
    assert stage.knobs == JOB.knobs
    assert "A*" in screen_text(stage.pilot)
    await stage.press()
    assert stage.knobs.queue_depth == 12
    assert "B*" in screen_text(stage.pilot)


def on_latencies(expected: str = "", *before: str) -> Case:
    """The key changes what the latency screen shows, and it says so."""

    async def case(stage: Stage) -> None:
        await stage.pilot.press("4", *before)
        await stage.pilot.pause()
        shown = screen_text(stage.pilot)
        await stage.press()
        assert screen_text(stage.pilot) != shown
        assert expected in screen_text(stage.pilot)

    return case


async def goes_to_the_cursors_moment(stage: Stage) -> None:
    await stage.pilot.press("4", "left", "left")
    await stage.press()
    await until(stage.pilot, lambda: shown_position(stage.pilot, stage.source) < 75)


async def only(stage: Stage) -> None:
    await stage.pilot.press("5")
    await stage.press()
    text = screen_text(stage.pilot)
    assert "sdf host0 fc" in text
    assert "mpath2" not in text


async def path_details(stage: Stage) -> None:
    await stage.pilot.press("5")
    await stage.press()
    assert isinstance(stage.app.screen, DiskView)
    await stage.pilot.press("escape", "b")
    await stage.press()
    assert isinstance(stage.app.screen, PortView)


async def tree_unfolds_level_by_level(stage: Stage) -> None:
    await stage.pilot.press("6")
    for seen in ("0x5006016000000000", "sda 0:0:0:0", "dm-0 mpath0", "data-oracle lvm", "/oracle (xfs)"):
        assert seen not in screen_text(stage.pilot)
        await stage.press()
        assert seen in screen_text(stage.pilot)


async def wall_orders(stage: Stage) -> None:
    await stage.pilot.press("7")
    before = screen_text(stage.pilot)
    assert before.index("mpath3") < before.index("nvme0n1")
    assert "array 0x5006016000000000 (4)" in before
    await stage.press()
    assert "by name" in screen_text(stage.pilot)
    assert "array 0x" not in screen_text(stage.pilot)
    await stage.press()
    after = screen_text(stage.pilot)
    assert after.index("nvme0n1") < after.index("mpath3")


def asks(what: object) -> Case:
    """The key asks this of the sweep."""

    async def case(stage: Stage) -> None:
        await stage.press()
        assert isinstance(stage.app.app_state.sweeps.current, StillSession)
        assert stage.app.app_state.sweeps.current.asked == [what]

    return case


def opens(kind: type[ModalScreen[Any]]) -> Case:
    """The key opens a dialog, once nothing is measured."""

    async def case(stage: Stage) -> None:
        session = stage.app.app_state.sweeps.current
        assert isinstance(session, StillSession)
        await stage.press()
        await until(stage.pilot, lambda: "a measurement goes on" in screen_text(stage.pilot))
        session.shown = replace(session.shown, phase=SweepPhase.ENDED, ended="stopped")
        await stage.press()
        await until(stage.pilot, lambda: isinstance(stage.app.screen, kind))

    return case


async def next_part(stage: Stage) -> None:
    assert stage.app.app_state.controller is not None
    stage.app.app_state.sweeps.add(group_of(StillRates(stage.app.app_state.controller.control)))
    await until(stage.pilot, lambda: "bounds in I/Os per s" in screen_text(stage.pilot))
    await stage.press()
    await until(stage.pilot, lambda: "(1 of 2)" in screen_text(stage.pilot))


async def reverses(stage: Stage) -> None:
    table = point_grid(stage.pilot)
    before = [row.point for row in points_shown(table)]
    await stage.press()
    assert [row.point for row in points_shown(table)] == before[::-1]


def on_comparison(words: str, before: str = "epoch 0", *first: str) -> Case:
    """Press it over a comparison of two epochs; the words appear."""

    async def case(stage: Stage) -> None:
        await stage.pilot.press("C")
        await until(stage.pilot, lambda: before in screen_text(stage.pilot) and "undecided" in screen_text(stage.pilot))
        await stage.pilot.press(*first)
        await stage.press()
        await until(stage.pilot, lambda: words in screen_text(stage.pilot))

    return case


async def compares_only_the_table(stage: Stage) -> None:
    await on_comparison("all targets")(stage)
    await until(stage.pilot, lambda: "over time" not in screen_text(stage.pilot))


async def marks(stage: Stage) -> None:
    await on_comparison("epoch 0")(stage)
    await until(stage.pilot, lambda: said(stage.app, "mark 1: kept until you leave"))


async def notes(stage: Stage) -> None:
    await stage.press()
    await stage.pilot.press(*"slow", "enter")
    await stage.pilot.press("3")
    await until(stage.pilot, lambda: "note    slow" in screen_text(stage.pilot))


def interval(seconds: float) -> Case:
    """The source is asked for this interval, and the header says so once it is in force."""

    async def case(stage: Stage) -> None:
        await stage.press()
        await until(stage.pilot, lambda: f"1 s -> {seconds:g} s" in screen_text(stage.pilot))
        assert stage.source.interval_s == seconds

    return case


async def disk_of_a_cache(stage: Stage) -> None:
    await stage.pilot.press("h")
    await stage.pilot.pause()
    table = stage.app.screen.query_one("#rows", Grid)
    for _ in range(table.row_count):
        if str(table.cursor_key).startswith("dm-writecache"):
            break
        await stage.pilot.press("down")
    await stage.press()
    assert isinstance(stage.app.screen, DiskView)


def clears(level: str, *first: str) -> Case:
    """The counters of this level are cleared."""

    async def case(stage: Stage) -> None:
        await stage.pilot.press(*first)
        await stage.pilot.pause()
        await stage.press()
        events = stage.app.app_state.events
        await until(stage.pilot, lambda: any(event.data.get("cleared") == level for event in events.all()))

    return case


async def unfolds_events(stage: Stage) -> None:
    log = stage.app.app_state.events
    for number, name in enumerate(("sdx", "sdy")):
        text = f"path {name} of m lost: a -> b"
        data: dict[str, str | int] = {"path": name, "usable": 0, "port": "host7", "change": "lost", "now": "offline"}
        log.add([Event(EventKind.HOTPLUG, text, 2_000_000_000 * 10**9 + number, 0, data)])
    await stage.pilot.press("3")
    await until(stage.pilot, lambda: "+ host7: 2 paths lost: offline (sdx, sdy)" in screen_text(stage.pilot))
    assert "path sdy" not in screen_text(stage.pilot).splitlines()[3]
    await stage.press()
    await until(stage.pilot, lambda: "path sdy of m lost" in screen_text(stage.pilot))
    await stage.press()
    await until(stage.pilot, lambda: "path sdy of m lost" not in screen_text(stage.pilot))


CASES: dict[str, Case] = {
    "view.help": opens_and_closes(HelpScreen),
    "session.suspend": says("no shell to go back to"),
    "session.redraw": redraws,
    "session.quit": quits,
    "session.pause": holds,
    **{entry.opener.id: shows(entry) for entry in TABS},
    "view.ios": leads_to(LatencyScreen, "Slowest I/Os"),
    "latency.subject": on_latencies("type part of a name"),
    "latency.direction": on_latencies("whole time of reads,"),
    "latency.part": says("only the total time", "4"),
    "latency.next_peak": on_latencies("up to p100"),
    "latency.mark": on_latencies("marked 0:01", "left", "left"),
    "latency.panel": on_latencies("Waterfall", "p"),
    "latency.zoom_in": on_latencies(),
    "latency.zoom_out": on_latencies("", "plus", "plus", "plus"),
    "latency.narrow": on_latencies(),
    "latency.widen": on_latencies("", "right_square_bracket", "right_square_bracket"),
    "latency.zoom_off": on_latencies("", "plus", "right_square_bracket"),
    "latency.lines": on_latencies(),
    "latency.seek": goes_to_the_cursors_moment,
    "paths.open": has("sdf host0", "5"),
    "tree.open": has("0x5006016000000000", "6", then_not=True),
    "paths.group": has("+ host0 fc", "5"),
    "paths.only": only,
    "paths.unfold": has("sdc host1", "5", then_not=True),
    "paths.details": path_details,
    "tree.unfold": tree_unfolds_level_by_level,
    "tree.fold": tree_folds,
    "tree.details": leads_to(PortView, "0x10000090fa000000", first="6"),
    "wall.field": has("c Busy", "7"),
    "wall.order": wall_orders,
    "wall.details": leads_to(DiskView, first="7"),
    "cgroups.disk": leads_to(DiskView, first="8"),
    "cgroups.idle": has("/idle.slice", "8"),
    "sweep.use": asks(Point(0, 1)),
    "sweep.rate": opens(Dialog),
    "sweep.preset": opens(Chooser),
    "sweep.part": next_part,
    "sweep.pause": asks("pause"),
    "sweep.skip": asks("skip"),
    "sweep.stop": asks("stop"),
    "sweep.view": has("Latency (ms, log) over IOPS"),
    "sweep.curve": has("[stripe_width=2]"),
    "sweep.sort": has("IOPS▼"),
    "sweep.reverse": reverses,
    "sweep.figure": has(" mean ms  stripe_width down", "v", "v"),
    "compare.a": on_comparison("A: which part"),
    "compare.b": on_comparison("B: which part"),
    "compare.mark": marks,
    "compare.swap": on_comparison("A epoch 1"),
    "compare.order": on_comparison("verdict▲"),
    "compare.view": compares_only_the_table,
    "compare.table": on_comparison("Compare which tables"),
    "compare.every": on_comparison("w/s"),
    "compare.delta": on_comparison("delta 10 %"),
    "session.note": notes,
    "view.theme": theme,
    "view.alerts": opens_and_closes(AlertsDialog, "No rules"),
    "view.tune": opens_and_closes(TuneDrawer, NOT_HERE, closed_by="escape"),
    "view.settings": opens_and_closes(SettingsDialog),
    "session.tags": says("cannot trace"),
    "session.sooner": interval(0.5),
    "session.later": interval(2.0),
    "view.longer": longer,
    "view.shorter": shorter,
    "view.log": axis,
    "view.density": view_changes_and_comes_back,
    "view.save": saves_the_screen,
    "view.disk": leads_to(DiskView, "mq-deadline", "SN00002"),
    "disk.back": opens_and_closes(DiskView, opener="enter"),
    "view.subject": subject,
    "session.step_back": moves(-1),
    "session.step_forward": moves(1),
    "session.back": moves(-10),
    "session.forward": moves(10),
    "session.back_minute": moves(-60),
    "session.forward_minute": moves(60),
    "session.first": goes_to(0),
    "session.last": goes_to(149),
    "session.goto": goes_to_a_typed_time,
    "session.event_back": moves(-10),
    "session.event_forward": moves(10),
    "session.mark_back": moves(-10),
    "session.mark_forward": moves(10),
    "session.peak_back": goes_to_a_peak(-1),
    "session.peak_forward": goes_to_a_peak(1),
    "session.slower": speeds(0.5),
    "session.faster": speeds(2.0),
    "load.start": start_asks_before_it_writes,
    "load.stop": stop_is_harmless_without_a_load,
    "load.arm": start_asks_before_it_writes,
    "load.edit": edits,
    "load.here": sets_up_a_load_on_the_disk,
    "load.undo": undoes_turns,
    "load.step": steps_of_another_size,
    "load.store_a": stores_in(KnobSlot.A),
    "load.store_b": stores_in(KnobSlot.B),
    "load.flip": flips,
    "knob.queue_depth_up": turns(queue_depth=12),
    "knob.queue_depth_down": turns(queue_depth=6),
    "knob.queue_depth_double": turns(queue_depth=16),
    "knob.queue_depth_halve": turns(queue_depth=4),
    "knob.stripe_width_up": turns(stripe_width=3),
    "knob.stripe_width_down": turns(stripe_width=1),
    "knob.block_size_up": turns(blocks=(BlockShare(16384),)),
    "knob.block_size_down": turns(blocks=(BlockShare(4096),)),
    "knob.read_share_up": turns(read_pct=60.0),
    "knob.read_share_down": turns(read_pct=40.0),
    "knob.rate_up": turns(rate_iops=2000.0),
    "knob.rate_down": turns(rate_iops=500.0),
    "knob.mode_next": turns(mode=Mode.BUFFERED),
    "knob.mode_previous": turns(mode=Mode.DIRECT_DSYNC),
    "knob.threads_up": turns(threads=3),
    "knob.threads_down": turns(threads=1),
    "knob.distribution_next": turns(distribution=Zipf(0.9)),
    "knob.distribution_previous": turns(distribution=Permutation()),
    "knob.policy_next": policy_has_nothing_to_choose,
    "knob.policy_previous": policy_has_nothing_to_choose,
    "view.processes": opens_and_closes(ProcessesView, closed_by="escape"),
    "processes.open": leads_to(ProcessesView, "1 device with I/O of postgres[101]", first="J"),
    "processes.every": leads_to(ProcessesView, "with I/O on all devices", first="J"),
    "processes.back": opens_and_closes(ProcessesView, opener="J"),
    "view.sheet": opens_and_closes(SheetView, closed_by="escape"),
    "sheet.back": opens_and_closes(SheetView, opener="G"),
    "sheet.host": clears("host", "G"),
    "session.clear": clears("disk"),
    "events.unfold": unfolds_events,
    "view.caches": opens_and_closes(CachesView, closed_by="escape"),
    "view.nfs": opens_and_closes(NfsView, closed_by="escape"),
    "nfs.back": opens_and_closes(NfsView, opener="f4"),
    "caches.disk": disk_of_a_cache,
    "caches.back": opens_and_closes(CachesView, opener="h"),
    "view.hosts": opens_and_closes(HostsView, closed_by="escape"),
    "hosts.open": leads_to(HostsView, first=("f3",)),
    "hosts.back": opens_and_closes(HostsView, opener="f3"),
}


def test_every_action_is_tried() -> None:
    assert CASES.keys() == BY_ID.keys()


def _turns_a_knob(action: Action) -> bool:
    return action.id.startswith("knob.") and CASES[action.id] is not policy_has_nothing_to_choose


ALONE = {
    "session.quit",
    "session.note",
    "session.sooner",
    "session.later",
    "session.clear",
    "view.theme",
    "events.unfold",
    "sweep.part",
    "compare.mark",
    "sheet.host",
}
"""Actions that change what is not easily changed back."""
SCREENS_KEPT = {
    *(entry.opener.id for entry in TABS),
    *("sweep.use", "sweep.pause", "sweep.skip", "sweep.stop", "load.stop", "latency.part"),
}
"""Actions that change nothing on a screen; after the others it is made anew."""


def _groups() -> list[tuple[Setting, list[Press]]]:
    """All keys with what each needs; those that need the same are pressed in the same app."""
    together: dict[Setting, list[Press]] = {}
    alone = []
    for action in ACTIONS:
        for key in action.keys.split(","):
            if _turns_a_knob(action):
                continue
            press, setting = Press(action, key), setting_of(action)
            if action.id in ALONE:
                alone.append((setting, [press]))
            else:
                together.setdefault(setting, []).append(press)
    return [*together.items(), *alone]


GROUPS = [
    pytest.param(
        setting,
        presses,
        id=f"{setting}-{presses[0] if presses[0].action.id in ALONE else 'others'}",
    )
    for setting, presses in _groups()
]


@pytest.mark.parametrize(("setting", "presses"), GROUPS)
async def test_keys(setting: Setting, presses: list[Press]) -> None:
    left, failures = deque(presses), list[Exception]()
    while left:
        try:
            await _press_all(setting, left)
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise ExceptionGroup("; ".join(map(str, failures)), failures)


async def _press_all(setting: Setting, left: deque[Press]) -> None:
    """Press keys in one app, up to the first that fails: others are not to fail after it."""
    press = left[0]
    try:
        async with on_setting(setting) as (app, pilot, source):
            before = state_of(app)
            while left:
                press = left.popleft()
                stage = Stage(app, pilot, source, press.key)
                await CASES[press.action.id](stage)
                if left:
                    await go_back(stage, before, new_screens=press.action.id not in SCREENS_KEPT)
    except Exception as failure:
        raise AssertionError(f"{press} does not do what it says: {failure}") from failure


@pytest.mark.slow
async def test_knobs_are_turned_by_their_keys() -> None:
    control, source = LoadControl(), ListSource(make_samples(count=20))
    app = make_app(source, control, JOB)
    async with on_stage(app) as pilot:
        await skip(pilot, source, 8)
        for action in filter(_turns_a_knob, ACTIONS):
            for key in action.keys.split(","):
                control.knobs.prepare(JOB.knobs)
                await CASES[action.id](Stage(app, pilot, source, key))
    control.close()


async def test_replay_keys_do_nothing_on_a_live_host() -> None:
    source = ListSource(make_samples(count=20))
    app = make_app(source)
    async with on_stage(app) as pilot:
        await play(pilot, source, 8)
        before = app.app_state.frame
        for action in ACTIONS:
            if action.replay and action.screen == ANYWHERE:
                await pilot.press(action.keys.split(",")[0])
                await pilot.pause()
                assert isinstance(app.screen, OverviewScreen)
        assert app.app_state.frame is before
        assert "LIVE" in screen_text(pilot)


async def test_keys_of_the_operator_replace_the_defaults() -> None:
    source = ListSource(make_samples(count=20))
    app = make_app(source, settings=replace(FROZEN, keys={"view.events": "h", "session.pause": "p"}))
    async with on_stage(app) as pilot:
        await play(pilot, source, 3)
        await pilot.press("3")
        assert isinstance(app.screen, OverviewScreen)
        await pilot.press("p")
        assert app.app_state.transport.paused
        assert "p Pause" in screen_text(pilot)
        await pilot.press("h")
        assert isinstance(app.screen, EventsScreen)
