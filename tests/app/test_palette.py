"""The palette: commands by groups, one line each with its key, only those that work here."""

from __future__ import annotations

import pytest

from engine.replacing import replace
from engine.running.control import LoadControl
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, rewind_to, screen_text, until
from tests.app.taken import SnapCompare
from tests.app.test_snapshots import JOB, played
from tui.app.palette import GROUPS, group_of
from tui.keys import ACTIONS
from tui.screen_registry import LOAD, OVERVIEW
from tui.screens.shared.chooser import Chooser, ChooserLine

SMALL_TO_LARGE = ((60, 20), *SIZES)


def lines_of(app: object) -> list[ChooserLine[object]]:
    return list(app.palette._chooser._choices)  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_commands_come_in_groups_and_only_those_that_work() -> None:
    control = LoadControl()
    source = ListSource(make_samples(count=4))
    app = make_app(source, control, JOB)
    async with on_stage(app, SIZES[1]) as pilot:
        await play(pilot, source, 3)
        await pilot.press("2", "ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, Chooser))
        groups = list(dict.fromkeys(line.group for line in lines_of(app)))
        assert groups[0] == LOAD.title
        assert groups[1:] == [group for group in GROUPS if group in groups]
        assert {"Knobs", "Screens", "View", "Time", "Session", "Settings"} <= set(groups)
        titles = [line.title for line in lines_of(app)]
        assert LOAD.help not in titles
        assert OVERVIEW.help in titles
        assert len(set(titles)) == len(titles)
        assert not any("speed" in title for title in titles), "of recordings only"
        await pilot.press(*"knobs")
        await pilot.pause()
        assert screen_text(pilot).count("Knobs") == 1, "only at its first line"
    control.close()


async def test_keys_of_the_settings_are_shown_and_recordings_have_their_own_commands() -> None:
    source = ListRecording(make_samples(count=30))
    app = make_app(source, settings=replace(FROZEN, keys={"session.faster": "f5"}))
    async with on_stage(app) as pilot:
        await rewind_to(pilot, source, 10)
        await pilot.press("ctrl+p", *"twice")
        await pilot.pause()
        assert "Time      f5        Twice the speed" in screen_text(pilot)
        titles = [line.title for line in lines_of(app)]
        assert not any("sampling interval" in title for title in titles)


def test_every_action_has_a_group() -> None:
    assert {group_of(action, None) for action in ACTIONS} >= {"Screens", "View", "Time", "Session", "Settings", "Knobs"}


@pytest.mark.parametrize("size", SMALL_TO_LARGE)
def test_the_list(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=40))
    assert snap_compare(make_app(source), terminal_size=size, run_before=played(source, "ctrl+p"))
