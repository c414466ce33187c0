"""The screen of processes: who does the I/O of what is selected, and the disks of a process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from tests.app.cgroup_samples import with_cgroups
from tests.app.multipath import multipath_samples
from tests.app.process_samples import with_processes
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import SIZES, make_app, on_stage, play, rewind_to, screen_text, until
from tui.screens.caches import CachesView
from tui.screens.details import DiskView
from tui.screens.overview import OverviewScreen
from tui.screens.processes import ProcessesView
from tui.screens.shared.pages import MOST_PAGES, open_page
from tui.screens.shared.process_scope import EVERYTHING, Scope


def line_of(text: str, name: str) -> list[str]:
    return next(line for line in text.splitlines() if name in line).split()


@pytest.mark.parametrize("size", SIZES)
async def test_the_processes_of_the_disk_under_the_cursor(size: tuple[int, int]) -> None:
    source = ListSource(with_processes(make_samples(count=20)))
    async with on_stage(make_app(source), size) as pilot:
        await play(pilot, source, 10)
        await pilot.press("J")
        await until(pilot, lambda: isinstance(pilot.app.screen, ProcessesView))
        await pilot.pause()
        text = screen_text(pilot)
        assert "5 processes with I/O on sdc" in text
        assert line_of(text, "postgres[101]")[1:6] == ["1.00k", "13.3M", "0.400", "0.426", "31.2"]
        assert line_of(text, "writeback (kworker)")[2:7] == ["120", "7.50M", "5.00", "4.72", "46.9"]
        assert "[jbd2/sdc1-8]" in text
        assert text.index("postgres[101]") < text.index("rsync[202]") < text.index("writeback (kworker)")
        assert "\x1b" not in text
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(pilot.app.screen, OverviewScreen)


@pytest.mark.slow
async def test_from_a_process_to_its_disks_and_on_to_a_disk() -> None:
    source = ListSource(with_processes(make_samples(count=20)))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 10)
        await pilot.press("J")
        await pilot.pause()
        await pilot.press("down", "enter")
        await pilot.pause()
        text = screen_text(pilot)
        assert "2 devices with I/O of rsync[202]" in text
        assert line_of(text, "sdc   ")[1:3] == ["300", "2.34M"]
        assert line_of(text, "vda   ")[1:3] == ["300", "18.8M"]
        assert "postgres" not in text
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, DiskView)
        await pilot.press("J")
        await pilot.pause()
        assert "5 processes with I/O on sdc" in screen_text(pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(pilot.app.screen, OverviewScreen), "the page it came from was returned to"


async def test_from_the_table_of_processes_to_the_disks_of_one() -> None:
    source = ListSource(with_processes(make_samples(count=20)))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 10)
        grid = pilot.app.screen.query_one("#processes")
        grid.focus()
        await pilot.press("down", "enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ProcessesView)
        assert "2 devices with I/O of rsync" in screen_text(pilot)


async def test_all_devices_and_back() -> None:
    source = ListSource(with_processes(make_samples(count=20)))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 10)
        await pilot.press("J", "n")
        await pilot.pause()
        view = pilot.app.screen
        assert isinstance(view, ProcessesView)
        assert view.scope == EVERYTHING
        text = screen_text(pilot)
        assert "5 processes with I/O on all devices" in text
        assert "rsync[202] vda" in text
        assert "rsync[202] sdc" in text
        await pilot.press("n")
        await pilot.pause()
        assert "5 processes with I/O on sdc" in screen_text(pilot)


@pytest.mark.slow
async def test_the_processes_of_a_control_group_are_those_in_it_and_below() -> None:
    source = ListSource(with_cgroups(with_processes(make_samples(count=20))))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 10)
        await pilot.press("8")
        await pilot.pause()
        for moves, inside, outside in (
            (1, ("postgres[101]", "rsync[202]"), ("writeback", "jbd2")),
            (1, ("postgres[101]",), ("rsync[202]",)),
        ):
            await pilot.press(*["down"] * moves, "J")
            await pilot.pause()
            text = screen_text(pilot)
            assert "sdc of /system.slice" in text
            assert all(name in text for name in inside)
            assert not any(name in text for name in outside)
            await pilot.press("escape")
            await pilot.pause()


async def test_in_a_recording_it_is_the_moment_shown() -> None:
    samples = list(with_processes(make_samples(count=30)))
    samples[20:] = make_samples(count=30)[20:]
    source = ListRecording(samples)
    async with on_stage(make_app(source)) as pilot:
        await rewind_to(pilot, source, 10)
        await pilot.press("J")
        await pilot.pause()
        assert "5 processes with I/O on sdc" in screen_text(pilot)
        await rewind_to(pilot, source, 25)
        await pilot.pause()
        text = screen_text(pilot)
        assert "I/O by process needs exact time, which was not measured here" in text
        assert "postgres[101]" not in text


async def test_without_exact_time_it_says_why() -> None:
    source = ListSource(make_samples(count=20))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("J")
        await pilot.pause()
        assert "I/O by process needs exact time" in screen_text(pilot)


@pytest.mark.slow
async def test_it_opens_from_every_table_of_devices() -> None:
    source = ListSource(with_processes(multipath_samples(20)))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 10)
        for keys in (("5", "down"), ("6",), ("7", "right")):
            await pilot.press(*keys)
            await pilot.pause()
            await pilot.press("J")
            await pilot.pause()
            assert isinstance(pilot.app.screen, ProcessesView), keys
            await pilot.press("escape")
            await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("screen", "keys"), [("disk", ("J",)), ("process", ("J", "down", "enter"))])
def test_processes(
    screen: str, keys: tuple[str, ...], size: tuple[int, int], snap_compare: Callable[..., bool]
) -> None:
    source = ListSource(with_processes(make_samples(count=40)))

    async def run(pilot: Pilot[None]) -> None:
        await play(pilot, source, 40)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()

    assert snap_compare(make_app(source), terminal_size=size, run_before=run)


async def test_keys_do_nothing_while_parts_of_the_screen_are_missing() -> None:
    source = ListSource(with_processes(make_samples(count=20)))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 10)
        await pilot.press("J")
        await until(pilot, lambda: isinstance(pilot.app.screen, ProcessesView) and pilot.app.screen.is_whole)
        screen = pilot.app.screen
        screen._is_mounted = False
        assert not await pilot.app.run_action("processes_open", screen)
        assert not await pilot.app.run_action("processes_every", screen)
        assert not await pilot.app.run_action("app.view_ios")
        screen._is_mounted = True
        assert await pilot.app.run_action("processes_open", screen)


@pytest.mark.slow
async def test_pages_do_not_pile_up() -> None:
    """A page that is open already is returned to, and the oldest of many distinct ones is closed."""
    source = ListSource(with_processes(make_samples(count=20)))
    app = make_app(source)
    async with on_stage(app) as pilot:
        await play(pilot, source, 10)
        await pilot.press(*"JhJh")
        await pilot.pause()
        assert [type(screen) for screen in app.screen_stack] == [OverviewScreen, ProcessesView, CachesView]
        await pilot.press("J")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        scopes = [Scope(f"sd{number}", frozenset({f"8:{number}"})) for number in range(MOST_PAGES + 3)]
        pages = [ProcessesView(app.app_state, scope) for scope in scopes]
        for page in pages:
            open_page(app, page)
            await pilot.pause()
        assert app.screen_stack[1:] == pages[3:]
        await until(pilot, lambda: not any(page.is_running for page in pages[:3]))
        assert all(page.is_running for page in pages[3:])
        await pilot.press("6", "J")
        await pilot.pause()
        assert isinstance(app.screen, ProcessesView)
        await pilot.press("1")
        await pilot.pause()
        assert app.screen_stack[1:] == pages[4:], "pages of all tabs count"
