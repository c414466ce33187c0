"""Searches for the highest rate and presets on the Sweep screen: what is shown, what the keys do, live and replayed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.job.knobs import Knobs
from engine.job.spec import JobSpec, TargetSpec
from engine.rate_search.bounds import LoadClass
from engine.rate_search.plan import RatePoint
from engine.replacing import replace
from engine.running.control import LoadControl, LoadState
from engine.study.points import StudyPoints
from tests.app.point_rows import shown_sweep
from tests.app.rate_states import StillRates, searched_plan, searched_trials, step_plan, with_search
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, rewind_to, screen_text, until
from tests.app.still_sessions import group_of
from tests.app.sweep_states import StillSession, with_sweep
from tui.app.app import LunscopeApp
from tui.screens.shared.chooser import Chooser
from tui.screens.shared.dialogs import Dialog
from tui.screens.sweep.rate_rows import RateState, curve_figures
from tui.screens.sweep.rates import RateBody
from tui.sweep.session import StudySession
from tui.sweep.state import StudyState, SweepPhase

SnapCompare = Callable[..., bool]
SMALL, LARGE = SIZES
ALL = 10_000
ENDED: dict[str, Any] = {"phase": SweepPhase.ENDED, "ended": "complete", "now": None}


# ------------------------------------------------------------------------------------------------ pictures


@pytest.mark.parametrize(("view", "keys"), [("table", ""), ("plot", "v"), ("answer", "vv")])
def test_views_of_a_small_window(view: str, keys: str, control: LoadControl, snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=5))
    changes: dict[str, Any] = ENDED if view == "answer" else {}
    app = make_app(source, control, sweep=StillRates(control, ALL if changes else 30, **changes))
    assert snap_compare(app, terminal_size=SMALL, run_before=shown_sweep(source, *keys))


@pytest.mark.parametrize("count", [30, ALL])
def test_large_window(count: int, control: LoadControl, snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=5))
    changes: dict[str, Any] = ENDED if count == ALL else {}
    app = make_app(source, control, sweep=StillRates(control, count, **changes))
    assert snap_compare(app, terminal_size=LARGE, run_before=shown_sweep(source))


def test_small_window_in_ascii(control: LoadControl, snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=5))
    settings = replace(FROZEN, theme="lunscope-ansi", glyphs="ascii")
    app = make_app(source, control, settings=settings, sweep=StillRates(control, 30))
    assert snap_compare(app, terminal_size=SMALL, run_before=shown_sweep(source, "v"))


def test_closed_and_open_loop_are_in_one_plot(control: LoadControl, snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=5))
    closed = StillSession(control, 100, phase=SweepPhase.ENDED, ended="complete")
    app = make_app(source, control, sweep=closed)
    app.app_state.sweeps.add(group_of(StillRates(control, ALL, **ENDED)))
    assert snap_compare(app, terminal_size=LARGE, run_before=shown_sweep(source))


# ------------------------------------------------------------------------------------------------ states and keys


STATES: tuple[tuple[int, dict[str, Any], str], ...] = (
    (20, {}, "20 trials   about 47 s left   now rate="),
    (1, {}, "finding the maximum of the load first"),
    (20, {"phase": SweepPhase.PAUSED, "now": None}, "PAUSED"),
    (0, {"phase": SweepPhase.PREPARING, "now": None}, "prepares the open loop"),
    (ALL, ENDED, "no rate keeps p50<=0.1us"),
    (20, {**ENDED, "ended": "stopped"}, "NOT COMPLETE: stopped; 20 trials were made"),
    (20, {"wanted": RatePoint(0, 5000.0)}, "on end: rate=5,000/s"),
)


@pytest.mark.slow
async def test_state_is_said(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = StillRates(control)
    states = [(StillRates(control, count, **changes).shown, says) for count, changes, says in STATES]
    async with on_stage(make_app(source, control, sweep=session)) as pilot:
        await play(pilot, source, 2)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            for state, says in states:
                session.shown = state
                await until(pilot, functools.partial(lambda says: says in screen_text(pilot), says))


async def test_answer_is_under_the_cursor_and_enter_sets_its_rate(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    session = StillRates(control, ALL, searched_plan("p99<=5ms", "mean<=1ms"), **ENDED)
    async with on_stage(make_app(source, control, sweep=session), SMALL) as pilot:
        await play(pilot, source, 2)
        best = curve_figures(session.state, 0).best
        assert best is not None
        await until(pilot, lambda: f"use rate={best:,.0f}/s: keeps all limits" in screen_text(pilot))
        await pilot.press("enter")
        assert session.asked == [RatePoint(0, best)]
        await pilot.press("down", "enter")
        assert session.asked[-1].rate > best  # type: ignore[attr-defined]


def test_classes_agree_with_the_bounds() -> None:
    plan = searched_plan()
    state: RateState = StudyState(plan, StudyPoints(searched_trials(plan, ALL)), SweepPhase.ENDED)
    found = curve_figures(state, 0)
    for number, answer in enumerate(found.answers.limits):
        bounds = {row.point.rate: row.classes[number] for row in found.rows if row.classes[number].is_bound}
        for bound, wanted in ((answer.lower, LoadClass.LOWER), (answer.upper, LoadClass.UPPER)):
            if bound is not None:
                assert bounds[bound.rate].found is wanted
        assert len(bounds) == sum(bound is not None for bound in (answer.lower, answer.upper))


@pytest.mark.slow
async def test_any_windows_and_combinations_areshown_sweep(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    plan = searched_plan("p99<=5ms", curves=[("bs=4k", Knobs(queue_depth=4)), ("bs=64k", Knobs(queue_depth=8))])
    session = StillRates(control, 40, plan)
    async with on_stage(make_app(source, control, sweep=session)) as pilot:
        await play(pilot, source, 2)
        for size in (*SIZES, (40, 12), (20, 5)):
            await pilot.resize_terminal(*size)
            session.asked.clear()
            await pilot.press(*"vvvcmoOt", "enter", "down", "up", "pagedown", "p", "n", "x")
            assert session.asked[-3:] == ["pause", "skip", "stop"]


async def test_next_limit_comes_to_the_front(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source, control, sweep=StillRates(control, 30)), SMALL) as pilot:
        await play(pilot, source, 2)
        await pilot.press("m", "v")
        await until(pilot, lambda: "mean (ms) over rate (I/Os per s)" in screen_text(pilot))


@pytest.mark.slow
async def test_sweep_and_search_are_shown_in_turn(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    app = make_app(source, control, sweep=StillSession(control, 100, phase=SweepPhase.ENDED, ended="complete"))
    app.app_state.sweeps.add(group_of(StillRates(control, ALL, **ENDED)))
    async with on_stage(app, SMALL) as pilot:
        await play(pilot, source, 2)
        await until(pilot, lambda: "bounds in I/Os per s" in screen_text(pilot))
        await pilot.press("t")
        await until(pilot, lambda: "(1 of 2) COMPLETE: " in screen_text(pilot))
        await pilot.press("t")
        await until(pilot, lambda: "bounds in I/Os per s" in screen_text(pilot))


@pytest.mark.slow
async def test_replay_shows_the_search_as_of_the_moment() -> None:
    source = ListRecording(with_search(make_samples(count=90), 30))
    async with on_stage(make_app(source), SMALL) as pilot:
        await pilot.press("9")
        await rewind_to(pilot, source, 2)
        await until(pilot, lambda: "no sweep here" in screen_text(pilot))
        await rewind_to(pilot, source, 7)
        await until(pilot, lambda: "2 trials" in screen_text(pilot))
        await rewind_to(pilot, source, 30)
        await until(pilot, lambda: "25 trials" in screen_text(pilot))
        await until(pilot, lambda: "bounds in I/Os per s" in screen_text(pilot))
        await rewind_to(pilot, source, 80)
        await until(pilot, lambda: "COMPLETE: 30 trials" in screen_text(pilot))


@pytest.mark.slow
async def test_replay_of_a_sweep_and_a_search_has_both() -> None:
    samples = with_search(with_sweep(make_samples(count=90), 12), 20, first=40)
    source = ListRecording(samples)
    async with on_stage(make_app(source), SMALL) as pilot:
        await pilot.press("9")
        await rewind_to(pilot, source, 80)
        await until(pilot, lambda: "COMPLETE: 20 trials" in screen_text(pilot))
        await pilot.press("t")
        await until(pilot, lambda: "(1 of 2) COMPLETE: 12 measurements" in screen_text(pilot))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 10), *SIZES])
async def test_open_loop_without_limits_says_what_is_carried(size: tuple[int, int], control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    app = make_app(source, control, sweep=StillSession(control, 100, phase=SweepPhase.ENDED, ended="complete"))
    app.app_state.sweeps.add(group_of(StillRates(control, ALL, step_plan(), **ENDED)))
    async with on_stage(app, size) as pilot:
        await play(pilot, source, 2)
        await until(pilot, lambda: "rate=18,000/s is carried" in screen_text(pilot))
        await pilot.press("v", "m", "v", "enter")


@pytest.mark.slow
async def test_closed_and_open_loop_without_limits_are_in_one_plot(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    app = make_app(source, control, sweep=StillSession(control, 100, phase=SweepPhase.ENDED, ended="complete"))
    app.app_state.sweeps.add(group_of(StillRates(control, ALL, step_plan(), **ENDED)))
    async with on_stage(app, LARGE) as pilot:
        await play(pilot, source, 2)
        await until(pilot, lambda: "p99 (ms) over rate (I/Os per s), both log  + open loop" in screen_text(pilot))
        assert "dotted: closed loop" in screen_text(pilot)
        assert "backlog grows" in screen_text(pilot)
        await pilot.press("m")
        await until(pilot, lambda: "mean (ms) over rate" in screen_text(pilot))


@pytest.mark.slow
async def test_replay_shows_an_open_loop_without_limits() -> None:
    samples = with_search(with_sweep(make_samples(count=90), 12), 4, first=40, plan=step_plan())
    source = ListRecording(samples)
    async with on_stage(make_app(source), SMALL) as pilot:
        await pilot.press("9")
        await rewind_to(pilot, source, 42)
        await until(pilot, lambda: "rate=12,000/s is carried" in screen_text(pilot))
        await rewind_to(pilot, source, 80)
        await until(pilot, lambda: "rate=18,000/s is carried; 22,000/s is not" in screen_text(pilot))


# ------------------------------------------------------------------------------------------------ starting


def _app(source: ListSource, control: LoadControl, *paths: Path) -> LunscopeApp:
    return make_app(source, control, JobSpec(tuple(TargetSpec(str(path)) for path in paths)))


async def test_limits_that_cannot_be_are_said(control: LoadControl) -> None:
    source = ListSource(make_samples(count=5))
    refused = (("p98<=5ms", "p98<=5ms"), ("", "needs a limit"), ("p99<=5ms qd=1,2", "one queue depth"))
    async with on_stage(_app(source, control), SMALL) as pilot:
        await play(pilot, source, 2)
        for typed, says in refused:
            await pilot.press("9", "r")
            await until(pilot, lambda: isinstance(pilot.app.screen, Dialog))
            await pilot.press("ctrl+u", *typed, "enter")
            await until(pilot, lambda: not isinstance(pilot.app.screen, Dialog))
            await until(pilot, functools.partial(lambda says: says in screen_text(pilot), says))
            assert control.status.state is LoadState.IDLE


@pytest.mark.slow
async def test_search_is_started_from_the_screen_and_stopped(control: LoadControl, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4 << 20))
    source = ListSource(make_samples(count=5))
    async with on_stage(_app(source, control, path), SMALL) as pilot:
        await play(pilot, source, 2)
        await pilot.press("9", "r")
        await until(pilot, lambda: isinstance(pilot.app.screen, Dialog))
        await pilot.press("ctrl+u", *"p99<=900ms rate=50..400 qd=8", "enter")
        await until(pilot, lambda: pilot.app.screen.query(RateBody) and "now rate=" in screen_text(pilot))
        session = pilot.app.app_state.sweeps.current  # type: ignore[attr-defined]
        assert isinstance(session, StudySession)
        assert session.state.plan.curves[0][1].queue_depth == 8
        await until(pilot, lambda: session.state.points.done)
        await pilot.press("p")
        await until(pilot, lambda: session.state.phase is SweepPhase.PAUSED and session.state.points.measuring is None)
        await pilot.press("p")
        done = session.state.points.done
        await until(pilot, lambda: session.state.points.done > done and "1/1" in screen_text(pilot))
        await pilot.press("x")
        await until(pilot, lambda: "NOT COMPLETE: stopped" in screen_text(pilot))
        await until(pilot, lambda: control.status.state is LoadState.FINISHED)
        await pilot.press("enter")
        await until(pilot, lambda: "the load was started with it" in screen_text(pilot))
        assert control.knobs.knobs.rate_iops is not None


@pytest.mark.slow
async def test_presets_say_what_they_need(control: LoadControl, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4 << 20))
    source = ListSource(make_samples(count=5))
    async with on_stage(_app(source, control, path), SMALL) as pilot:
        await play(pilot, source, 2)
        await pilot.press("9", "P")
        await until(pilot, lambda: isinstance(pilot.app.screen, Chooser))
        for words in (
            "skytap      1 target, writes, about",
            "flashcache  1 target, a command, writes",
            "multipath   no: ",
        ):
            await until(pilot, functools.partial(lambda words: words in screen_text(pilot), words))
        await pilot.press(*"multipath", "enter")
        await until(pilot, lambda: "name the paths of a LUN" in screen_text(pilot))


@pytest.mark.slow
async def test_preset_is_started_from_the_screen_reading_only(control: LoadControl, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"precious" * (1 << 17))
    source = ListSource(make_samples(count=5))
    async with on_stage(_app(source, control, path), SMALL) as pilot:
        await play(pilot, source, 2)
        await pilot.press("9", "P")
        await until(pilot, lambda: isinstance(pilot.app.screen, Chooser))
        await pilot.press(*"fourcorners", "enter")
        await until(pilot, lambda: "Type its name" in screen_text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "that writes is left out" in screen_text(pilot))
        await until(pilot, lambda: "[fourcorners: part 1 of 2, sequential]" in screen_text(pilot))
        session = pilot.app.app_state.sweeps.current  # type: ignore[attr-defined]
        assert isinstance(session, StudySession)
        await until(pilot, lambda: session.state.points.measuring)
        await pilot.press("x")
        await until(pilot, lambda: "NOT COMPLETE: stopped" in screen_text(pilot))
        assert path.read_bytes() == b"precious" * (1 << 17)
