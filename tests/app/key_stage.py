"""What the keys of the registry are pressed on: apps over samples, each for all keys that need the same of it."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from textual.pilot import Pilot

from collectors.model import Sample
from engine.job.spec import BlockShare, JobSpec, Knobs, TargetSpec
from engine.running.control import LoadControl
from tests.app.cache_samples import with_caches
from tests.app.cgroup_samples import with_cgroups
from tests.app.compare_samples import FASTER, QUIET, epochs
from tests.app.fleet_samples import with_hosts
from tests.app.latency_samples import with_latencies
from tests.app.multipath import multipath_samples
from tests.app.nfs_samples import with_nfs
from tests.app.process_samples import with_processes
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import make_app, on_stage, rewind_to, skip
from tests.app.sweep_states import StillSession
from tui.action import Action
from tui.app.app import LunscopeApp
from tui.kept import Choices
from tui.load.knob_memory import KnobMemory
from tui.screen_registry import (
    CACHES,
    CGROUPS,
    COMPARE,
    HOSTS,
    LATENCY,
    NFS,
    OVERVIEW,
    PATHS,
    PROCESSES,
    SHEET,
    SWEEP,
    TABS,
    TREE,
    WALL,
)
from tui.screens.shared.base import view_class
from tui.screens.sweep.shown import State

JOB = JobSpec(
    targets=(TargetSpec("/nonexistent/a"), TargetSpec("/nonexistent/b"), TargetSpec("/nonexistent/c")),
    knobs=Knobs(queue_depth=8, stripe_width=2, blocks=(BlockShare(8192),), read_pct=50.0, rate_iops=1000.0, threads=2),
)
MULTIPATH = {PATHS.id, TREE.id, WALL.id, SHEET.id, "view.sheet"}
ADDED = {
    CGROUPS.id: with_cgroups,
    PROCESSES.id: with_processes,
    HOSTS.id: with_hosts,
    NFS.id: with_nfs,
    CACHES.id: with_caches,
}
RELEASED = 13
"""Samples of a live host that are shown before a key is pressed."""
POSITION = 75
"""Number of the sample of a recording that is shown then."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a key needs of the app that it is pressed in."""

    replay: bool
    has_paths: bool
    has_latencies: bool
    own: str
    """Screen whose samples or whose sweep are its own."""

    def __str__(self) -> str:
        parts = {"replay": self.replay, "paths": self.has_paths, "latencies": self.has_latencies, self.own: self.own}
        return "-".join(filter(parts.get, parts)) or "live"


@dataclass(frozen=True, slots=True)
class Press:
    """A key of an action."""

    action: Action
    key: str

    def __str__(self) -> str:
        return f"{self.action.id}-{self.key}"


@dataclass(frozen=True, slots=True)
class Stage:
    """What a case may look at."""

    app: LunscopeApp
    pilot: Pilot[None]
    source: ListSource
    key: str

    async def press(self) -> None:
        await self.pilot.press(self.key)
        await self.pilot.pause()

    @property
    def recording(self) -> ListRecording:
        assert isinstance(self.source, ListRecording)
        return self.source

    @property
    def knobs(self) -> Knobs:
        assert self.app.app_state.controller is not None
        return self.app.app_state.controller.knobs


def setting_of(action: Action) -> Setting:
    return Setting(
        replay=bool(action.replay or _moves_in_time(action)),
        has_paths=bool({action.screen, action.id} & MULTIPATH),
        has_latencies=action.screen == LATENCY.id or "peak" in action.id,
        own=action.screen if action.screen in {*ADDED, COMPARE.id, SWEEP.id} else "",
    )


def _moves_in_time(action: Action) -> bool:
    return action.id == "latency.seek" or (action.priority and action.id != "session.suspend")


@functools.cache
def _samples(count: int, own: str, *, has_paths: bool, has_latencies: bool) -> tuple[Sample, ...]:
    """Samples with what a screen shows."""
    if own == COMPARE.id:
        return tuple(epochs(QUIET, FASTER, seconds=4))
    samples = multipath_samples(count) if has_paths else make_samples(count=count)
    if own in ADDED:
        samples = tuple(ADDED[own](samples))
    return tuple(with_latencies(samples)) if has_latencies else samples


@asynccontextmanager
async def on_setting(setting: Setting) -> AsyncIterator[tuple[LunscopeApp, Pilot[None], ListSource]]:
    """Run an app of this setting, and show the sample that keys are pressed over."""
    samples = _samples(
        150 if setting.replay else 20, setting.own, has_paths=setting.has_paths, has_latencies=setting.has_latencies
    )
    source = ListRecording(samples) if setting.replay else ListSource(samples)
    control = None if setting.replay else LoadControl()
    sweep = StillSession(control) if control is not None and setting.own == SWEEP.id else None
    app = make_app(source, control, JOB, sweep=sweep)
    async with on_stage(app) as pilot:
        if isinstance(source, ListRecording):
            await rewind_to(pilot, source, POSITION)
        else:
            await skip(pilot, source, min(RELEASED, len(samples)))
        yield app, pilot, source
    if control is not None:
        control.close()


@dataclass(frozen=True, slots=True)
class Before:
    """What keys change and is put back after each."""

    span_ns: int
    sweep: State | None
    others: tuple[object, ...]
    """What a key that is not pressed alone leaves as it was."""


def state_of(app: LunscopeApp) -> Before:
    state, load = app.app_state, app.app_state.controller
    session = state.sweeps.current
    seen = (
        state.latency_axis,
        state.density,
        state.interval_s,
        state.transport.paused,
        app.theme,
        app.appearance.save_folder,
    )
    driven = None if load is None else (load.job, load.permissions)
    sweep = session.shown if isinstance(session, StillSession) else None
    return Before(state.span_ns, sweep, (*seen, driven, len(state.sweeps.groups), app.current_mode))


async def go_back(stage: Stage, before: Before, *, new_screens: bool) -> None:
    """Undo what a key did: there are no notifications, and all screens but the overview are new if they are to be."""
    app, pilot, source = stage.app, stage.pilot, stage.source
    app.clear_notifications()
    app.app_state.choices.tables, app.app_state.span_ns, app.app_state.brief = Choices().tables, before.span_ns, ""
    home = SWEEP.id if before.sweep else OVERVIEW.id
    if new_screens and app.current_mode != OVERVIEW.id:
        await app.switch_mode(OVERVIEW.id)
    while len(app.screen_stack) > 1:
        await app.pop_screen()
    if new_screens:
        await _remove_screens(app)
    await app.switch_mode(home)
    session, load = app.app_state.sweeps.current, app.app_state.controller
    if isinstance(session, StillSession) and before.sweep is not None:
        session.shown, session.asked = before.sweep, []
    elif load is not None:
        load.edit(JOB, destroy_data=False)
        load.memory = KnobMemory()
    if isinstance(source, ListRecording):
        source.set_speed(1.0)
        await rewind_to(pilot, source, POSITION)
    await pilot.pause()
    assert state_of(app) == before, "a key that leaves something behind is to be pressed in an app of its own"


async def _remove_screens(app: LunscopeApp) -> None:
    for entry in TABS:
        if entry is not OVERVIEW and entry.id in app._screen_stacks:
            await app.remove_mode(entry.id)
            app.add_mode(entry.id, functools.partial(view_class(entry), app.app_state))
