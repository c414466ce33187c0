"""The screen of control groups: who does I/O, who is held back, what is hidden."""

from __future__ import annotations

import pytest

from tests.app.cgroup_samples import with_cgroups
from tests.app.sources import ListSource, make_samples
from tests.app.stage import SIZES, make_app, on_stage, play, screen_text
from tui.screens.cgroups import CgroupsScreen
from tui.screens.details import DiskView


@pytest.mark.parametrize("size", SIZES)
async def test_groups_with_io_by_iops_with_their_limit(size: tuple[int, int]) -> None:
    source = ListSource(with_cgroups(make_samples(count=20)))
    async with on_stage(make_app(source), size) as pilot:
        await play(pilot, source, 10)
        await pilot.press("8")
        await pilot.pause()
        assert isinstance(pilot.app.screen, CgroupsScreen)
        text = screen_text(pilot)
        assert text.index("/ sdc") < text.index("db.service sdc") < text.index("backup.service sdc")
        backup = next(line for line in text.splitlines() if "backup.service sdc" in line)
        assert "300" in backup
        assert "▲100" in backup
        assert "▲90.0" in backup
        assert "/idle.slice" not in text
        assert "1 idle row hidden" in text
        assert "\x1b" not in text
        await pilot.press("n")
        await pilot.pause()
        assert "/idle.slice" in screen_text(pilot)


@pytest.mark.slow
async def test_the_row_under_the_cursor_is_described_and_leads_to_its_disk() -> None:
    source = ListSource(with_cgroups(make_samples(count=20)))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 10)
        await pilot.press("8")
        await pilot.press("end")
        await pilot.pause()
        assert "/red" in screen_text(pilot)
        await pilot.press("home", "down", "down")
        await pilot.pause()
        text = screen_text(pilot)
        assert "Pressure" in text
        assert "psi some" in text
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, DiskView)
        assert "SN00002" in screen_text(pilot)
