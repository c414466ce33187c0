"""Alerts on the screens: the header, the list of rules, events, a replay of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as StopFlag

import pytest

from collectors.alerts.alert_settings import AlertSettings
from collectors.alerts.parse import parse_rule
from collectors.alerts.service import AlertService
from collectors.model import Sample, Step
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, rewind_to, said, screen_text, until
from tests.app.taken import SnapCompare
from tests.app.test_snapshots import played
from tui.alert_state import recorded_alerts
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.settings import load_settings

RULES = ("slow: disks await_ms>0.01ms for 3s", "never: disks await_ms>1h", "load_total iops>1 for 1s on nothing")


class AlertingSource(ListSource):
    """The samples with the events of alerts, as the live source adds them."""

    def __init__(self, samples: tuple[Sample, ...], service: AlertService) -> None:
        super().__init__(samples)
        self._service = service

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        return map(self._service.step, super().steps(stop))


def staged(*rules: str, bell: bool = False) -> tuple[LunscopeApp, AlertingSource]:
    service = AlertService(AlertSettings(tuple(map(parse_rule, rules)), bell=bell))
    source = AlertingSource(make_samples(count=40, events=False), service)
    return LunscopeApp(AppInput(source, alert_service=service), settings=FROZEN), source


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
async def test_header_list_and_events_show_what_is_raised(size: tuple[int, int]) -> None:
    app, source = staged(*RULES)
    async with on_stage(app, size) as pilot:
        await play(pilot, source, 3)
        assert "alert" not in screen_text(pilot).splitlines()[0]
        await play(pilot, source, 17)
        assert "▲ 3 alerts" in screen_text(pilot).splitlines()[0]
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: "Raised: 3" in screen_text(pilot))
        text = screen_text(pilot)
        assert "slow  raised: 3" in text
        assert "disks await_ms>0.01ms for 3s" in text
        assert "never  quiet" in text
        assert "iops  nothing to evaluate now" in text
        await pilot.press("escape", "3")
        await until(pilot, lambda: "alert slow raised: vda await_ms" in screen_text(pilot))


@pytest.mark.slow
async def test_the_bell_rings_for_new_alerts_only_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for bell in (False, True):
        rung: list[int] = []
        app, source = staged(RULES[0], bell=bell)
        monkeypatch.setattr(app, "bell", lambda rung=rung: rung.append(1))
        async with on_stage(app) as pilot:
            await play(pilot, source, 20)
            assert bool(rung) == bell
            before = len(rung)
            await play(pilot, source, 5)
            assert len(rung) == before


@pytest.mark.slow
async def test_a_replay_shows_what_was_raised_at_its_position() -> None:
    service = AlertService(AlertSettings((parse_rule("slow: disks await_ms>0.01ms for 5s on sdc"),)))
    steps = list(map(service.step, _steps(make_samples(count=40, events=False))))
    source = ListRecording([step.current for step in steps])
    async with on_stage(make_app(source)) as pilot:
        source.advance()
        await rewind_to(pilot, source, 2)
        assert "alert" not in screen_text(pilot).splitlines()[0]
        await rewind_to(pilot, source, 30)
        assert "▲ 1 alert: slow sdc" in screen_text(pilot).splitlines()[0]
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: "these alerts were recorded" in screen_text(pilot))
        assert "slow sdc" in screen_text(pilot)


def _steps(samples: tuple[Sample, ...]) -> Iterator[Step]:
    for previous, current in zip((None, *samples), samples, strict=False):
        yield Step(previous, current)


def test_alerts_of_a_recording_are_counted_with_those_not_listed() -> None:
    def event(at: int, change: str, key: str = "", **data: int) -> Event:
        facts: dict[str, str | int] = {"rule": "slow", "change": change, "key": key, "object": key, **data}
        return Event(EventKind.ALERT, f"alert slow {change}: {key}", at, at, facts)

    events = [event(1, "raised", "a"), event(1, "raised", more=10), event(3, "cleared", "a"), event(4, "cleared", "b")]
    assert [recorded_alerts(events, at).count for at in (0, 1, 3, 4)] == [0, 11, 10, 9]
    hostile = replace(events[0], data={})
    assert recorded_alerts([hostile], 5).count == 0


async def test_broken_rules_are_notices_and_the_app_starts(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[alerts.rules]\nbad = 'disks awiat_ms>3ms'\n")
    source = ListSource(make_samples(count=3))
    settings = replace(load_settings(file), theme_folder=FROZEN.theme_folder)
    app = make_app(source, settings=settings)
    async with on_stage(app, SIZES[1]) as pilot:
        await play(pilot, source, 3)
        assert said(app, "[alerts.rules] bad: disks: no field 'awiat_ms'")


@pytest.mark.parametrize("size", SIZES)
def test_alerts_dialog(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    app, source = staged(*RULES)
    assert snap_compare(app, terminal_size=size, run_before=played(source, "exclamation_mark"))
