"""The Sweep screen: what it shows at each state, what its keys do, live and in a replay."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl, LoadState
from engine.statistics.batch_means import StopRule
from engine.study.order import Study
from engine.sweep.axes import parse_axis
from engine.sweep.plan import make_plan
from engine.sweep.points import Point
from engine.sweep.presets.plans import plan_preset
from engine.sweep.presets.preset import HostSize
from engine.sweep.presets.registry import PRESETS
from engine.sweep.runner import SweepRunner
from tests.app.point_rows import point_grid, points_shown, shown_sweep
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, rewind_to, screen_text, type_name, until
from tests.app.sweep_states import JOB, StillSession, swept_plan, with_sweep
from tests.app.taken import SnapCompare, assert_pictures
from tui.load.load_controller import LoadController
from tui.sweep.session import StudySession
from tui.sweep.state import SweepPhase

HASTY = StopRule(half_width=1.0, least_s=0.3, most_s=1.0, least_warm_up_s=0.3, most_warm_up_s=0.5, percent=50)
SMALL, LARGE = SIZES
CALM = Knobs(rate_iops=500.0)
PATIENCE_S = 60.0


# ------------------------------------------------------------------------------------------------ pictures


VIEWS = [("table", ""), ("plot", "v"), ("map", "vv"), ("targets", "vvvcc"), ("answer", "vvvv")]


@pytest.mark.parametrize(("view", "keys"), VIEWS)
def test_views_of_a_small_window(view: str, keys: str, control: LoadControl, snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=5))
    app = make_app(source, control, sweep=StillSession(control, 100 if view == "targets" else 10))
    assert snap_compare(app, terminal_size=SMALL, run_before=shown_sweep(source, *keys))


@pytest.mark.parametrize(
    ("state", "changes", "count"),
    [
        ("measuring", {}, 10),
        ("ended", {"phase": SweepPhase.ENDED, "ended": "complete"}, 100),
    ],
)
def test_large_window(
    state: str, changes: dict[str, Any], count: int, control: LoadControl, snap_compare: SnapCompare
) -> None:
    source = ListSource(make_samples(count=5))
    app = make_app(source, control, sweep=StillSession(control, count, **changes))
    assert snap_compare(app, terminal_size=LARGE, run_before=shown_sweep(source, *("c", "c") * (count > 50)))


@pytest.mark.parametrize("keys", ["", "v", "vv"])
def test_small_window_in_ascii(keys: str, control: LoadControl, snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=5))
    settings = replace(FROZEN, theme="lunscope-ansi", glyphs="ascii")
    app = make_app(source, control, settings=settings, sweep=StillSession(control))
    assert snap_compare(app, terminal_size=SMALL, run_before=shown_sweep(source, *keys))


async def test_replay(snap_compare: SnapCompare) -> None:
    source = ListRecording(with_sweep(make_samples(count=40), 12))
    await assert_pictures(make_app(source), SIZES, shown_sweep(source, position=15), snap_compare)


# ------------------------------------------------------------------------------------------------ states and keys


STATES: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "measured   about 2 min left   now stripe_width=2 qd="),
    ({"phase": SweepPhase.PAUSED}, "PAUSED"),
    ({"phase": SweepPhase.PREPARING}, "prepares the load"),
    ({"phase": SweepPhase.ENDED, "ended": "complete"}, "COMPLETE: 10 measurements"),
    ({"phase": SweepPhase.ENDED, "ended": "load failed: gone"}, "NOT COMPLETE: load failed: gone; 10 meas"),
    ({"wanted": Point(0, 4)}, "on end: stripe_width=1 qd=4"),
)
ROWS = ("waiting", "measuring", "skipped", "failed: no room", "noisy")


async def test_states_and_what_became_of_each_point_are_said(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = StillSession(control)
    first = session.shown
    async with on_stage(make_app(source, control, sweep=session)) as pilot:
        await play(pilot, source, 2)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            session.shown = first
            said = ROWS if size == LARGE else ROWS[1:]
            await until(pilot, functools.partial(lambda said: all(each in screen_text(pilot) for each in said), said))
            lines = screen_text(pilot).splitlines()
            assert any(" B" in line[:8] or "|B" in line[:8] for line in lines)
            for changes, says in STATES:
                session.shown = replace(first, **changes)
                await until(pilot, functools.partial(lambda says: says in screen_text(pilot), says))


@pytest.mark.slow
async def test_answers_of_all_curves_are_found_and_follow_the_cursor(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source, control, sweep=StillSession(control, 100)), LARGE) as pilot:
        await play(pilot, source, 2)
        await until(pilot, lambda: "[stripe_width=1] knee: best balance qd=" in screen_text(pilot))
        await pilot.press("c")
        await until(pilot, lambda: "[stripe_width=2] knee: best balance qd=" in screen_text(pilot))
        await pilot.press("c")
        await until(pilot, lambda: "diskd is the hottest" in screen_text(pilot))
        await until(pilot, lambda: "costs 13 %" in screen_text(pilot))


@pytest.mark.slow
async def test_cursor_of_map_and_table_are_one(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source, control, sweep=StillSession(control, 100)), SMALL) as pilot:
        await play(pilot, source, 2)
        await pilot.press("v", "v", "down", "right", "right", "right")
        row = point_grid(pilot).row
        assert row is not None
        assert row.point == Point(1, 8)
        await pilot.press("enter")
        session = pilot.app.app_state.sweeps.current  # type: ignore[attr-defined]
        assert session.asked == [Point(1, 8)]


async def test_sorting_keeps_the_cursor_on_its_point(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source, control, sweep=StillSession(control, 100)), SMALL) as pilot:
        await play(pilot, source, 2)
        table = point_grid(pilot)
        await pilot.press("down", "down", "o")
        rows = points_shown(table)
        known = [row.figure("iops") for row in rows if row.summary is not None]
        assert known == sorted(known, key=lambda value: -(value or 0))
        assert all(row.summary is None for row in rows[len(known) :])
        assert table.row is not None
        assert table.row.point == Point(0, 4)


@pytest.mark.slow
@pytest.mark.parametrize("axes", [("bs=4k,8k,64k",), ("qd=1..64",), ("qd=1..8", "bs=4k,8k", "read_pct=100,50")])
async def test_any_axes_and_windows_are_shown(axes: tuple[str, ...], control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = StillSession(control, 5, swept_plan(*axes))
    async with on_stage(make_app(source, control, sweep=session)) as pilot:
        await play(pilot, source, 2)
        for size in (*SIZES, (40, 12), (20, 5)):
            await pilot.resize_terminal(*size)
            session.asked.clear()
            await pilot.press(*"vvvvvco", "enter", "down", "up", "pagedown")
            await until(pilot, lambda: session.asked)


async def test_without_a_sweep_the_screen_says_how_to_make_one(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source, control), SMALL) as pilot:
        await play(pilot, source, 2)
        await pilot.press("9", "v", "c", "o", "O", "m", "enter", "p", "n", "x")
        assert "no sweep here: lunscope sweep --vary" in screen_text(pilot)
        assert _keys(pilot) == "r Rate search  P Preset  ? Help  q Quit  space Pause"


async def test_key_line_has_what_ends_a_sweep_until_it_ended(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = StillSession(control)
    async with on_stage(make_app(source, control, sweep=session), SMALL) as pilot:
        await play(pilot, source, 2)
        await until(pilot, lambda: "p Pause sweep  n Skip  x Stop  v View" in _keys(pilot))
        session.shown = replace(session.shown, phase=SweepPhase.ENDED)
        await until(pilot, lambda: "P Preset  v View  t Part  c Curve  o Sort" in _keys(pilot))


def _keys(pilot: Pilot[None]) -> str:
    return screen_text(pilot).splitlines()[-1].strip()


@pytest.mark.slow
async def test_replay_shows_the_sweep_as_of_the_moment() -> None:
    source = ListRecording(with_sweep(make_samples(count=60), 30))
    async with on_stage(make_app(source), SMALL) as pilot:
        await pilot.press("9")
        await rewind_to(pilot, source, 2)
        await until(pilot, lambda: "no sweep here" in screen_text(pilot))
        await rewind_to(pilot, source, 8)
        await until(pilot, lambda: "3/" in screen_text(pilot))
        await until(pilot, lambda: "unknown: fewer than 4 loads" in screen_text(pilot))
        await rewind_to(pilot, source, 55)
        await until(pilot, lambda: "[stripe_width=1] knee: best balance" in screen_text(pilot))
        await until(pilot, lambda: "COMPLETE" in screen_text(pilot))
        await rewind_to(pilot, source, 8)
        await until(pilot, lambda: "unknown: fewer than 4 loads" in screen_text(pilot))


@pytest.mark.slow
async def test_replay_of_a_preset_has_the_tables_of_its_study() -> None:
    job = replace(JOB, knobs=replace(JOB.knobs, stripe_width=1))
    writable = Permissions(frozenset(node for target in JOB.targets for node in target.nodes))
    ((_, plan),) = plan_preset(PRESETS["dump"], job, (), writable, host=HostSize(2, 1 << 30)).parts
    source = ListRecording(with_sweep(make_samples(count=30), 3, plan=plan))
    async with on_stage(make_app(source), LARGE) as pilot:
        await pilot.press("9")
        await rewind_to(pilot, source, 7)
        await until(pilot, lambda: "not complete: goes on; 2 measurements were made" in screen_text(pilot))
        await rewind_to(pilot, source, 25)
        await until(pilot, lambda: "throughput of targets written in parallel:" in screen_text(pilot))
        assert "[dump] COMPLETE: 3 measurements" in screen_text(pilot)
        assert "Published elsewhere, on other hardware (HP-UX 11i v3" in screen_text(pilot)


# ------------------------------------------------------------------------------------------------ over a real load


def _session(control: LoadControl, *axes: str) -> StudySession:
    plan = make_plan(JobSpec(knobs=CALM, size_bytes=4 << 20), tuple(map(parse_axis, axes)), rule=HASTY)
    return StudySession(Study(plan, SweepRunner), LoadController(control, plan.armed, Permissions()))


def _wait_for(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it never came to that"
        time.sleep(0.05)


@pytest.mark.slow
def test_sweep_measures_and_stops_its_load(control: LoadControl) -> None:
    session = _session(control, "qd=1,2")
    session.begin()
    _wait_for(lambda: session.state.phase is SweepPhase.ENDED)
    _wait_for(lambda: control.status.state is LoadState.FINISHED)
    assert session.state.is_complete
    result = session.finish()
    assert result is not None
    assert result.is_complete
    assert {trial.load for trial in result.curves[0].trials} == {1, 2}


@pytest.mark.slow
def test_point_that_is_wanted_is_set_on_end_and_the_load_goes_on(control: LoadControl) -> None:
    session = _session(control, "qd=1,2")
    session.begin()
    session.use(Point(0, 2))
    assert session.state.wanted == Point(0, 2)
    session.use(Point(0, 2))
    assert session.state.wanted is None
    session.use(Point(0, 1))
    _wait_for(lambda: session.state.phase is SweepPhase.ENDED)
    _wait_for(lambda: session.message == "qd=1 set: the load runs with it")
    assert control.status.state is LoadState.RUNNING
    assert session.controller.knobs.queue_depth == 1
    session.use(Point(0, 2))
    _wait_for(lambda: session.message == "qd=2 set: the load runs with it")
    assert control.knobs.knobs.queue_depth == 2


@pytest.mark.slow
def test_point_used_after_the_end_starts_the_load_again(control: LoadControl) -> None:
    session = _session(control, "qd=1,2")
    session.begin()
    _wait_for(lambda: session.state.points.done)
    session.stop()
    _wait_for(lambda: control.status.state is LoadState.FINISHED)
    assert session.state.ended == "stopped"
    assert session.state.points.done >= 1
    session.use(Point(0, 2))
    _wait_for(lambda: session.message == "qd=2 set: the load was started with it")
    assert control.status.state is LoadState.RUNNING
    assert control.knobs.knobs.queue_depth == 2


@pytest.mark.slow
def test_knobs_are_not_turned_by_hand_while_a_sweep_measures(control: LoadControl) -> None:
    session = _session(control, "qd=1..64")
    session.begin()
    _wait_for(lambda: session.state.points.measuring)
    controller = session.controller
    with pytest.raises(Exception, match="a sweep is measuring"):
        controller.turn(replace(controller.knobs, queue_depth=3), lambda _error: None)
    session.toggle_pause()
    _wait_for(lambda: session.state.points.measuring is None)
    assert session.state.phase is SweepPhase.PAUSED
    errors: list[str] = []
    controller.turn(replace(controller.knobs, queue_depth=3), errors.append)
    _wait_for(lambda: errors == [""])
    done = session.state.points.done
    session.toggle_pause()
    _wait_for(lambda: session.state.points.done > done)
    session.skip()
    _wait_for(lambda: session.state.points.left_out)
    result = session.finish()
    assert result is not None
    assert result.ended == "stopped"


def test_load_that_cannot_begin_is_named(control: LoadControl) -> None:
    plan = swept_plan("qd=1,2")
    session = StudySession(Study(plan, SweepRunner), LoadController(control, plan.armed, Permissions()))
    session.begin()
    _wait_for(lambda: session.state.phase is SweepPhase.ENDED)
    assert "/nonexistent/diska" in session.state.ended
    assert session.failure is not None
    assert session.finish() is None


@pytest.mark.slow
async def test_screen_runs_a_real_sweep_to_its_end(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = _session(control, "qd=1,2")
    async with on_stage(make_app(source, control, sweep=session), SMALL) as pilot:
        await play(pilot, source, 2)
        for _ in range(20):
            if session.state.phase is SweepPhase.ENDED:
                break
            await until_phase(pilot, session)
        await until(pilot, lambda: "COMPLETE: 6 measurements" in screen_text(pilot))
        await until(pilot, lambda: "the load is stopped" in screen_text(pilot))


async def until_phase(pilot: Pilot[None], session: StudySession) -> None:
    """Wait for one more measurement, or the end."""
    done = session.state.points.done
    await until(pilot, lambda: session.state.points.done > done or session.state.phase is SweepPhase.ENDED)


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["right", "wrong"])
async def test_sweep_that_writes_begins_once_the_name_was_typed(
    typed: str, control: LoadControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("d")
    path.write_bytes(b"precious" * (1 << 17))
    plan = make_plan(JobSpec((TargetSpec("d"),)), tuple(map(parse_axis, ("qd=1,2", "read_pct=100,50"))), rule=HASTY)
    permissions = Permissions(frozenset({"d"}), destroy_data=True)
    session = StudySession(Study(plan, SweepRunner), LoadController(control, plan.armed, permissions))
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source, control, sweep=session), SMALL) as pilot:
        await until(pilot, lambda: "Type its name" in screen_text(pilot))
        assert session.state.phase is SweepPhase.WAITING
        await type_name(pilot, "d" if typed == "right" else "x")
        await play(pilot, source, 2)
        if typed == "wrong":
            await until(pilot, lambda: "name does not match: nothing written" in screen_text(pilot))
            assert session.finish() is None
            assert path.read_bytes() == b"precious" * (1 << 17)
        else:
            await until(pilot, lambda: session.state.points.measuring)
        session.stop()


async def test_reason_is_never_cut(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    reason = "/dev/disk/by-id/scsi-36001405: the load failed: every I/O fails with EIO (Input/output error)"
    session = StillSession(control, phase=SweepPhase.ENDED, ended=reason)
    async with on_stage(make_app(source, control, sweep=session), SMALL) as pilot:
        await play(pilot, source, 2)
        await until(pilot, lambda: reason in " ".join(" ".join(screen_text(pilot).splitlines()[3:5]).split()))
