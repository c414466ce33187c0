"""The Hosts screen of a fleet in use: hosts that are not as they should be are named with the reason."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pytest

from collectors.fleet.fleet_source import FleetSource, HostOrFleet
from engine.events import Event, EventKind
from engine.job.spec import JobSpec, Knobs
from engine.replacing import replace
from engine.running.status import LoadState
from engine.sweep.axes import parse_axis
from engine.sweep.hosts_knob import hosts_knob
from engine.sweep.plan import make_plan
from engine.sweep.runner import SweepRunner
from tests.app.fleet_samples import with_hosts
from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, play, screen_text, until
from tests.unit.fleet.answering_hosts import answering_fleet, drive_of
from tests.unit.fleet.made_hosts import ahead, clock, fleet_of, old, slow
from tests.unit.sweep.fake_load import FakeLoad
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.load.fleet_load_controller import FleetLoadController


async def test_odd_hosts_are_named_on_the_screen() -> None:
    controller = fleet_of("db1", "db2", "db3")
    ahead(controller, "db1")
    slow(controller, "db2")
    old(controller, "db3")
    controller._judge(time.monotonic())
    source = ListSource(with_hosts(make_samples(count=5)))
    app = LunscopeApp(AppInput(source, fleet=HostOrFleet(source, controller)), settings=FROZEN)
    async with app.run_test(size=(120, 40)) as pilot:
        await play(pilot, source, 5)
        await pilot.pause()
        text = screen_text(pilot)
    assert "db1 (clock)" in text
    assert "s ahead" in text
    assert "db2 (slow)" in text
    assert "round trip 2" in text
    assert "db3: failed: lunscope 0.9 there speaks version" in text


@pytest.mark.slow
async def test_the_keys_of_a_load_turn_its_knobs_on_all_hosts_and_undo_it() -> None:
    fleet, links = answering_fleet("db1", "db2", "db3")
    load = FleetLoadController(drive_of(fleet, Knobs(queue_depth=4), paths=("/dev/sdz",)))
    source = ListSource(with_hosts(make_samples(count=5)))
    app = LunscopeApp(AppInput(source, fleet=HostOrFleet(source, fleet), fleet_load=load), settings=FROZEN)
    async with app.run_test(size=(120, 40)) as pilot:
        await play(pilot, source, 3)
        await until(pilot, lambda: load.status.state is LoadState.RUNNING)
        await pilot.press("plus")
        await until(pilot, lambda: links.knobs.keys() == {"db1", "db2", "db3"} and not load.drive.is_turning)
        assert {knobs[-1].queue_depth for knobs in links.knobs.values()} == {6}
        await until(pilot, lambda: "the last turn within" in screen_text(pilot))
        assert "RUNNING" in screen_text(pilot)
        await pilot.press("U")
        await until(pilot, lambda: [knobs[-1].queue_depth for knobs in links.knobs.values()] == [4, 4, 4])
        await pilot.press("R")
        await until(pilot, lambda: len(app.screen_stack) > 2)
        assert "/dev/sdz" in screen_text(pilot)
        await pilot.press("escape")
        await pilot.press("1", "f3")
        await until(pilot, lambda: "RUNNING" in screen_text(pilot))
        for _ in range(16):
            clock(fleet, "db2", trip_ns=30_000_000_000)
        await pilot.press("plus")
        await until(pilot, lambda: "not synchronous: the clock of db2" in screen_text(pilot))
        await until(pilot, lambda: load.knobs.queue_depth == 4)
        await pilot.press("x")
        await until(pilot, lambda: "FINISHED" in screen_text(pilot))


@pytest.mark.slow
async def test_a_sweep_over_hosts_is_on_its_screen_or_why_it_did_not_begin() -> None:
    plan = make_plan(JobSpec(), (parse_axis("hosts=1,2", {"hosts": hosts_knob(2)}),))
    fleet, events = FleetSource(fleet_of("db1", "db2")), list[Event]()
    load = FakeLoad(lambda depth: 1000 * depth)
    SweepRunner(plan, load, clock=load.clock, note=lambda text, data: events.append(_event(text, data))).run()
    samples = list(with_hosts(make_samples(count=4)))
    samples[2] = replace(samples[2], events=tuple(replace(each, monotonic_ns=1) for each in events))
    source = ListSource(samples)
    shown = HostOrFleet(source, fleet.controller)
    app = LunscopeApp(AppInput(source, fleet=shown, first_screen="sweep"), settings=FROZEN)
    async with app.run_test(size=(150, 44)) as pilot:
        shown.report("db1: the guard refuses")
        await play(pilot, source, 1)
        await until(pilot, lambda: "db1: the guard refuses" in screen_text(pilot))
        shown.report("")
        await play(pilot, source, 3)
        await until(pilot, lambda: "Targets at hosts=1" in screen_text(pilot))
        assert "the guard refuses" not in screen_text(pilot)


def _event(text: str, data: Mapping[str, str | float | None]) -> Event:
    return Event.now(EventKind.LOAD, text, **data)


def test_events_of_the_controller_are_in_its_samples_once() -> None:
    source, stop = FleetSource(fleet_of("db1")), threading.Event()
    source.add_event(Event.now(EventKind.LOAD, "sweep begins"))
    steps = source.steps(stop)
    found = [[event.text for event in next(steps).current.events if event.kind is EventKind.LOAD] for _ in range(2)]
    stop.set()
    assert found == [["sweep begins"], []]
