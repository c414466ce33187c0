"""The isolation curve on the Sweep screen: what is shown, what the keys do, live and replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.isolation.aggressor_group import LimitHierarchy
from engine.isolation.plan import plan_isolation
from engine.job.spec import JobSpec, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.app.isolation_states import ALL, StillIsolation, with_isolation
from tests.app.point_rows import point_grid, points_shown, shown_sweep
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, rewind_to, screen_text, until
from tui.screens.shared.dialogs import Dialog
from tui.screens.sweep.asked_isolation import asked_isolation
from tui.sweep.state import SweepPhase

SnapCompare = Callable[..., bool]
SMALL, LARGE = SIZES


async def _until_said(pilot: Pilot[None], text: str) -> None:
    await until(pilot, lambda: text in screen_text(pilot))


@pytest.mark.parametrize("count", [7, ALL])
def test_large_window(count: int, control: LoadControl, snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=5))
    app = make_app(source, control, sweep=StillIsolation(control, count))
    assert snap_compare(app, terminal_size=LARGE, run_before=shown_sweep(source, *("cc" if count == ALL else "")))


def test_small_window_in_ascii(control: LoadControl, snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=5))
    settings = replace(FROZEN, theme="lunscope-ansi", glyphs="ascii")
    app = make_app(source, control, settings=settings, sweep=StillIsolation(control, ALL))
    assert snap_compare(app, terminal_size=SMALL, run_before=shown_sweep(source))


@pytest.mark.slow
async def test_states_and_views_are_said(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = StillIsolation(control)
    measuring = session.shown
    between = replace(measuring, points=replace(measuring.points, measuring=None))
    stopped = replace(between, phase=SweepPhase.ENDED, plan=replace(measuring.plan, ended="stopped"))
    skipped = replace(between, phase=SweepPhase.ENDED, plan=replace(measuring.plan, left_out=("a",)))
    cases = [
        (measuring, "6/14 points   about 62 s left   now beside QD 4, 4k, cap riops=2000"),
        (replace(measuring, phase=SweepPhase.PAUSED), "PAUSED   6/14 points   after this point: beside QD 4"),
        (replace(between, phase=SweepPhase.PREPARING), "prepares the victim"),
        (replace(stopped, ended=stopped.plan.how_ended), "NOT COMPLETE: stopped; 6 points were measured"),
        (replace(skipped, ended=skipped.plan.how_ended), "NOT COMPLETE: 1 skipped; 6 points"),
        (replace(between, plan=replace(between.plan, points=())), "measures the victim alone first"),
    ]  # fmt: skip
    async with on_stage(make_app(source, control, sweep=session), SMALL) as pilot:
        await play(pilot, source, 2)
        for state, says in cases:
            session.shown = state
            await _until_said(pilot, says)
        session.shown = StillIsolation(control, ALL).shown
        await until(
            pilot,
            lambda: "riops=400 keeps the victim within 1.5 x of its p99 alone" in screen_text(pilot),
        )
        for says in ("1.5 x", "isolation of each second", "the victim alone: p99", "iso p5"):
            await pilot.press("v")
            await _until_said(pilot, says)
        await pilot.press("enter", "p", "n", "x")
        assert session.asked == ["pause", "skip", "stop"]
        await until(pilot, lambda: "has no knobs to set" in screen_text(pilot))


@pytest.mark.slow
async def test_cursor_follows_what_is_measured_until_it_is_moved(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = StillIsolation(control)
    async with on_stage(make_app(source, control, sweep=session), SMALL) as pilot:
        await play(pilot, source, 2)
        table = point_grid(pilot)
        await until(pilot, lambda: table.row is not None and table.row.number == 6)
        session.shown = StillIsolation(control, 7).shown
        await until(pilot, lambda: table.row is not None and table.row.number == 7)
        await pilot.press("up", "up")
        session.shown = StillIsolation(control, 8).shown
        await until(pilot, lambda: "8/14 points" in screen_text(pilot))
        assert table.row is not None
        assert table.row.number == 5
        await pilot.press("c")
        assert table.row.number == 1, "the first point with the next cap, which is the first again"
        await pilot.press("o", "o", "o")
        await until(pilot, lambda: points_shown(table)[0].number == 3)


@pytest.mark.slow
async def test_any_windows_areshown_sweep(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = StillIsolation(control)
    async with on_stage(make_app(source, control, sweep=session)) as pilot:
        await play(pilot, source, 2)
        for size in (LARGE, (40, 12), (20, 5)):
            await pilot.resize_terminal(*size)
            session.asked.clear()
            await pilot.press(*"vvvvcmmmoOt", "enter", "down", "up", "pagedown", "p")
            assert session.asked == ["pause"]


@pytest.mark.slow
async def test_curve_is_asked_for_on_the_screen(
    control: LoadControl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it needs is in the list of presets; what cannot be measured is refused, and nothing starts."""
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    job = JobSpec(targets=(TargetSpec(str(tmp_path / "file")),))
    monkeypatch.setattr("tui.screens.sweep.start.find_hierarchy", _no_groups)
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source, control, job), SMALL) as pilot:
        await play(pilot, source, 2)
        for answer, says in (("qd=1,4", "give the rate of the victim"), ("rate=500", "no groups here")):
            await pilot.press("9", "P", *"isolation")
            await _until_said(pilot, "isolation   1 target, root, control groups")
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, Dialog))
            pilot.app.screen.query_one(Input).value = answer
            await pilot.press("enter")
            await _until_said(pilot, says)
        assert not pilot.app.app_state.sweeps.groups  # type: ignore[attr-defined]


def _no_groups(_sysfs: Path) -> LimitHierarchy:
    raise UsageError("--preset isolation: no groups here")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate=x", "a number above 0"),
        ("rate=-1", "a number above 0"),
        ("rate=500 nonsense", "write rate=500"),
        ("rate=500 cap=wiops=1", "write riops=500"),
        ("rate=500 qd=0", "qd"),
        ("rate=500 within=1", "above 1"),
        ("rate=500 runtime=1s", "3s or longer"),
    ],
)
def test_lines_that_ask_for_no_curve_are_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        asked_isolation(text, JobSpec(targets=(TargetSpec("/nonexistent/diska"),)))


def test_a_line_asks_for_the_same_as_the_options() -> None:
    job = JobSpec(targets=(TargetSpec("/nonexistent/diska"),))
    plan = asked_isolation("rate=500 qd=1,4 cap=riops=2000 cap=rbps=20m within=2 runtime=5s", job)
    options = replace(job, knobs=replace(job.knobs, rate_iops=500.0))
    caps = ("riops=2000", "rbps=20m")
    assert plan == plan_isolation(options, vary=("qd=1,4",), caps=caps, seconds=5, within=2)


@pytest.mark.slow
async def test_replay_shows_the_curve_as_of_the_moment() -> None:
    source = ListRecording(with_isolation(make_samples(count=40)))
    async with on_stage(make_app(source), SMALL) as pilot:
        await pilot.press("9")
        await rewind_to(pilot, source, 2)
        await until(pilot, lambda: "no sweep here" in screen_text(pilot))
        await rewind_to(pilot, source, 8)
        await until(pilot, lambda: "3/14 points" in screen_text(pilot))
        await rewind_to(pilot, source, 35)
        await until(pilot, lambda: "COMPLETE: 14 points" in screen_text(pilot))
        assert "riops=400 keeps the victim" in screen_text(pilot)


@pytest.mark.slow
async def test_replay_of_hostile_points_is_drawn() -> None:
    """Times of 0, limits without end, terminal sequences in names, seconds without I/O."""
    second = [0, 100, 0, 0, [0], [100]]
    begin = {"targets": '["\\u001b[31m"]', "rate": 500.0, "figure": "p99", "within": 4e18, "points": 99}
    points = [
        {"load": None, "cap": "none", "iops": None, "seconds": [second] * 3},
        {"load": [1, "\x1b[31mred"], "cap": "riops=1", "iops": 0, "seconds": [second, [1, 0, 9, 0, [], []]]},
        {"load": [1000000, "4k"], "cap": "none", "iops": 4e18, "seconds": []},
    ]
    happened: list[dict[str, Any]] = [{"isolation": "begin", **begin}]
    happened += ({"isolation": "point", "point": json.dumps(each)} for each in points)
    happened.append({"isolation": "end", "how": "\x1b[31mended"})
    samples = list(make_samples(count=10))
    for number, data in enumerate(happened, start=3):
        at = samples[number]
        event = Event(EventKind.LOAD, "", at.time_ns, at.monotonic_ns, data)
        samples[number] = replace(at, events=(*at.events, event))
    source = ListRecording(samples)
    async with on_stage(make_app(source)) as pilot:
        await pilot.press("9")
        await rewind_to(pilot, source, 9)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await _until_said(pilot, "NOT COMPLETE: ")
            await pilot.press(*"vvvvmmmco", "down", "down")
            await _until_said(pilot, "3 points were measured")
