"""The screens of paths, tree and wall over captured hosts: every path of the tools' own lists is there to be found."""

from __future__ import annotations

import re

import numpy as np
import pytest

from collectors.model import HostFacts, Sample, Table, Tier, Topology
from collectors.tables.block.counters import BlockCollector
from collectors.topology.scanner import TopologyScanner
from tests import needs
from tests.app.sources import SECOND_NS, START_NS, ListSource
from tests.app.stage import SIZES, make_app, on_stage, play, screen_text
from tests.lab.fixtures import Capture, names, unpack
from tui.screens.paths.screen import PathsScreen
from tui.widgets.grid.table import Grid
from tui.widgets.wall import Wall

pytestmark = needs.lab


def samples_of(capture: Capture, count: int = 5) -> list[Sample]:
    """The captured counters, and then as many I/Os of 2 ms a second on every device that ever did one."""
    roots = str(capture.procfs), str(capture.sysfs)
    table = BlockCollector(*roots).read().tables["disk"]
    devices, graph = TopologyScanner(*roots).scan(table.rows)
    topology = Topology(devices, HostFacts("captured", "6.1.0", "x86_64", 4, tier=Tier.KERNEL), graph)
    return [Sample(START_NS + tick * SECOND_NS, tick * SECOND_NS, topology, {"disk": _at(table, tick)})
            for tick in range(count)]  # fmt: skip


def _at(table: Table, tick: int) -> Table:
    values = table.values.copy()
    used = (values[:, table.schema.index("reads")] > 0)[:, np.newaxis].astype(np.uint64)
    for name, each in (("reads", 100), ("read_sectors", 800), ("read_ms", 200), ("busy_ms", 200)):
        values[:, table.schema.index(name)] += np.uint64(each * tick) * used[:, 0]
    return Table(table.schema, table.rows, values)


@pytest.fixture(scope="module", params=names() or ["none"])
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    if request.param == "none":
        pytest.skip("no captures in the lab")
    return unpack(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("size", SIZES)
async def test_every_path_is_counted_found_and_reported(capture: Capture, size: tuple[int, int]) -> None:
    samples = samples_of(capture)
    graph = samples[0].topology.graph
    source = ListSource(samples)
    async with on_stage(make_app(source), size) as pilot:
        await play(pilot, source, 4)
        await pilot.press("5", "x")
        assert isinstance(pilot.app.screen, PathsScreen)
        grid = pilot.app.screen.query_one("#paths", Grid)
        groups = len({path.lun for path in graph.paths if path.lun != path.key})
        assert grid.row_count == len(graph.paths) + groups
        await pilot.press("n")
        idle = [path for path in graph.paths if not path.usable]
        assert grid.row_count == (len(idle) + len({path.lun for path in idle if path.lun != path.key}))
        for path in idle[:3]:
            assert re.search(rf"\b{path.name}\b.*({path.map_state}|{path.access}|{path.state})", screen_text(pilot))
        await pilot.press(*"bbbb")


async def test_the_tree_has_every_mount_and_the_wall_every_disk(capture: Capture) -> None:
    samples = samples_of(capture)
    topology = samples[0].topology
    source = ListSource(samples)
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 4)
        await pilot.press("6", *"xxxxxx")
        for mount in topology.graph.mounts[:5]:
            pilot.app.screen.query_one("#tree", Grid).set_filter(f"{mount.point} (")
            await pilot.pause()
            await pilot.pause()
            assert f"{mount.point} (" in screen_text(pilot)
        await pilot.press("7")
        wall = pilot.app.screen.query_one(Wall)
        luns = [lun.key for lun in topology.graph.luns if topology.devices[lun.key].size_bytes]
        assert set(luns) <= set(wall._rows.keys)
