"""The screens of paths, tree and wall: groups, filters, what vanished, what never had a path, replay, hostile names."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from collectors.graph import Graph, Lun, Path, Port
from collectors.model import Sample, Topology
from engine.replacing import replace
from tests.app.multipath import key, laptop_samples, make_topology, multipath_samples
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import SIZES, make_app, on_stage, play, rewind_to, screen_text
from tui.app.app import LunscopeApp
from tui.screens.details import PathView
from tui.screens.latency.screen import LatencyScreen
from tui.widgets.chart.widget import Chart
from tui.widgets.grid.rows import natural_key
from tui.widgets.grid.table import Grid
from tui.widgets.wall import Wall


def line_of(pilot: Pilot[None], words: str) -> str:
    return next(line for line in screen_text(pilot).splitlines() if words in line)


def rows_of(pilot: Pilot[None]) -> int:
    return pilot.app.screen.query_one("#paths", Grid).row_count


def with_topology(samples: tuple[Sample, ...], *changed: Topology) -> list[Sample]:
    """Let the topology change sample by sample; the last one stays."""
    about = [*changed, *[changed[-1]] * len(samples)]
    return [replace(sample, topology=topology) for sample, topology in zip(samples, about, strict=False)]


async def test_groups_open_and_close_by_enter_and_the_cursor_stays() -> None:
    source = ListSource(multipath_samples(10))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5", "down", "enter")
        grid = pilot.app.screen.query_one("#paths", Grid)
        assert grid.cursor_key == f"LUN:{key('dm-0')}"
        assert "sick 4.2x" in line_of(pilot, "sdc host1 fc")
        await play(pilot, source, 2)
        assert grid.cursor_key == f"LUN:{key('dm-0')}"
        assert "path sdc carries 29 % of mpath0 and its S is 4.2x its peers'" in " ".join(screen_text(pilot).split())
        await pilot.press("enter")
        assert "sdc host1 fc" not in screen_text(pilot)


@pytest.mark.parametrize(
    ("times", "title", "names"),
    [
        (1, "HBA port / path", ("host0 fc", "host1 fc", "nvme0 nvme-pcie")),
        (2, "target port / path", ("0x5006016000000000", "0x5006016000000001", "nvme0")),
        (3, "controller / path", ("0x5006016000000000", "0x5006016000000001", "nvme0")),
        (4, "way / path", ("host0 fc -> 0x5006", "host1 fc -> 0x5006")),
        (5, "policy / path", ("dm queue-length 0", "no multipath")),
        (6, "LUN / path", ("dm-0 mpath0", "dm-1 mpath1")),
    ],
)
async def test_groupings(times: int, title: str, names: tuple[str, ...]) -> None:
    source = ListSource(multipath_samples(10))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5", *"b" * times)
        assert title in screen_text(pilot)
        for name in names:
            assert "+ " in line_of(pilot, name) or name == "nvme0"


async def test_filters_meet_with_the_text_filter() -> None:
    source = ListSource(multipath_samples(10))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5", "n", "n")
        assert "sick or uneven" in screen_text(pilot)
        assert rows_of(pilot) == 2
        await pilot.press("n")
        assert rows_of(pilot) == 0
        assert "no path is hot" in screen_text(pilot)
        await pilot.press("n", "slash", *"sdf", "enter")
        assert rows_of(pilot) == 2
        assert "failed" in line_of(pilot, "sdf host0 fc")
        await pilot.press("escape")
        assert rows_of(pilot) == 5


@pytest.mark.slow
async def test_a_path_that_vanished_is_missed_and_its_page_keeps_its_past() -> None:
    whole = make_topology()
    graph = replace(whole.graph, paths=tuple(path for path in whole.graph.paths if path.name != "sdi"))
    samples = with_topology(multipath_samples(12), *[whole] * 6, replace(whole, graph=graph))
    source = ListSource(samples)
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5", "slash", *"sdi", "enter", "down", "d")
        assert isinstance(pilot.app.screen, PathView)
        await play(pilot, source, 4)
        assert "this path is gone" in screen_text(pilot)
        await pilot.press("escape", "escape", "n")
        assert "1 of 4 gone" in line_of(pilot, "mpath2")
        await pilot.press("home")
        assert "3 of 3 paths usable" in screen_text(pilot)
        assert "sdi gone since 00:00:06" in " ".join(screen_text(pilot).split())


@pytest.mark.slow
async def test_one_disk_is_its_own_only_path() -> None:
    source = ListSource(laptop_samples(6))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5")
        assert "1 disk, no multipath: the disk is its own only path" in screen_text(pilot)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, PathView)
        await pilot.press("escape", "6", "x", "x")
        assert "nvme0n1p1 partition" in screen_text(pilot)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topology", "words"),
    [
        (Topology(), "scanning devices"),
        (replace(make_topology(), graph=Graph()), "this session has no device graph"),
        (replace(make_topology(), graph=Graph(luns=(Lun("loop0", "loop0"),))), "all are virtual"),
    ],
)
async def test_without_paths_the_screen_says_why(topology: Topology, words: str) -> None:
    source = ListSource(with_topology(multipath_samples(6), topology))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5")
        assert words in screen_text(pilot)
        await pilot.press("x", "b", "n", "d", "i", "5", "6", "x", "X", "d", "7", "c", "o")


async def test_nvme_native_multipath_with_a_path_that_does_not_serve() -> None:
    graph = Graph(
        ports=tuple(Port(f"tcp:{way}", f"nvme{way}", "nvme-tcp", members=(f"nvme{way}",)) for way in range(2)),
        luns=(Lun(key("dm-0"), "nvme0n1", "nvme", "round-robin"),),
        paths=(
            Path(key("sda"), "nvme0c0n1", key("dm-0"), "tcp:0", "", "nvme0 nsid 1", "live", "optimized"),
            Path(key("sdb"), "nvme0c1n1", key("dm-0"), "tcp:1", "", "nvme1 nsid 1", "live", "inaccessible"),
        ),
    )
    source = ListSource(with_topology(multipath_samples(6), replace(make_topology(), graph=graph)))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5", "x")
        assert "1 of 2 act" in line_of(pilot, "mpath0")
        assert "inaccessible" in line_of(pilot, "sdb nvme1")
        assert "nvme round-robin" in screen_text(pilot)


@pytest.mark.slow
async def test_a_recording_shows_the_same_forwards_and_backwards() -> None:
    source = ListRecording(multipath_samples(60))
    async with on_stage(make_app(source)) as pilot:
        for position in (30, 50, 10):
            await rewind_to(pilot, source, position)
            await pilot.press("5")
            assert "1 of 4 sick" in line_of(pilot, "mpath0")
        await pilot.press("7")
        wall = pilot.app.screen.query_one(Wall)
        before = wall.cursor_key
        await pilot.press("right")
        assert wall.cursor_key != before
        assert isinstance(pilot.app, LunscopeApp)
        assert pilot.app.app_state.frame is not None
        assert pilot.app.app_state.frame.time_ns == source.samples[10].time_ns


async def test_the_tree_is_searched_where_it_is_closed() -> None:
    source = ListSource(multipath_samples(6))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("6", "slash", *"oracle", "enter")
        assert screen_text(pilot).count("/oracle (xfs)") > 1
        await pilot.press("escape")
        assert "/oracle" not in screen_text(pilot)


async def test_the_tree_orders_its_names_once_until_a_branch_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[str] = []

    def counting(name: str) -> tuple[tuple[int, int, str], ...]:
        ordered.append(name)
        return natural_key(name)

    monkeypatch.setattr("tui.widgets.grid.rows.natural_key", counting)
    source = ListSource(multipath_samples(10))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("6")
        await play(pilot, source, 1)
        assert ordered
        ordered.clear()
        await play(pilot, source, 2)
        assert not ordered
        await pilot.press("enter")
        assert ordered


@pytest.mark.parametrize("screen", ["5", "6", "7"])
async def test_slowest_ios_of_what_is_under_the_cursor(screen: str) -> None:
    source = ListSource(multipath_samples(6))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press(screen, "down", "i")
        assert isinstance(pilot.app.screen, LatencyScreen)


async def test_thousands_of_disks_on_the_wall_scroll_and_keep_the_cursor() -> None:
    names = tuple(f"sd{number}" for number in range(3000))
    source = ListSource(make_samples(names, 3, events=False))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 2)
        await pilot.press("7", *["pagedown"] * 4)
        wall = pilot.app.screen.query_one(Wall)
        assert wall.cursor_key is not None
        assert wall.cursor_key.partition("@")[0] in screen_text(pilot)
        assert wall.scroll_offset.y > 0
        before = wall.cursor_key
        await play(pilot, source, 1)
        assert wall.cursor_key == before


async def test_a_filter_is_typed_and_dropped_while_a_chart_has_the_focus() -> None:
    source = ListSource(multipath_samples(10))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5", "tab")
        grid = pilot.app.screen.query_one("#paths", Grid)
        assert isinstance(pilot.app.screen.focused, Chart)
        await pilot.press("slash", *"nowhere")
        assert (grid.filter_text, rows_of(pilot)) == ("nowhere", 0)
        await pilot.press("enter", "tab", "escape")
        assert grid.filter_text == ""
        assert rows_of(pilot)


@pytest.mark.parametrize("size", SIZES)
async def test_all_attributes_of_a_path_have_room(size: tuple[int, int]) -> None:
    source = ListSource(multipath_samples(4))
    async with on_stage(make_app(source), size) as pilot:
        await play(pilot, source, 3)
        await pilot.press("5", "x", "down", "enter")
        view = pilot.app.screen
        assert isinstance(view, PathView)
        assert view.app_state.frame is not None
        titles = [title for title, _ in view.facts(view.app_state.frame)]
        text = screen_text(pilot)
        assert "limit" in titles
        assert [title for title in titles if f" {title} " not in text] == []
