"""The views to choose: what they show, and that the choice is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.replacing import replace
from tests.app.latency_samples import with_latencies
from tests.app.multipath import multipath_samples
from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, make_app, on_stage, play, screen_text, until
from tui.kept import Choices, Density
from tui.screens.shared.subject_charts import SubjectCharts
from tui.widgets.chart.widget import Chart
from tui.widgets.grid.table import Grid
from tui.widgets.heatmap.widget import HeatMap


def test_the_choice_is_kept_in_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert Choices(folder).view.of("view") is None
    kept = Choices(folder).view
    kept.put("view", Density.LITE)
    assert kept.write() == ""
    assert (folder / "view.json").read_text() == '{\n "view": "lite"\n}\n'
    assert Choices(folder).view.of("view") is Density.LITE


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"view": "wide"}', '{"view": []}', "[" * 3000, "\x00"])
def test_a_file_that_is_none_counts_as_no_choice(text: str, tmp_path: Path) -> None:
    file = tmp_path / "view.json"
    file.write_text(text)
    assert Choices(tmp_path).view.of("view") is None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = Choices(tmp_path / "file").view
    kept.put("view", Density.DENSE)
    assert "view kept until you leave" in kept.write()
    assert kept.of("view") is Density.DENSE


async def test_the_setting_is_in_force_before_what_was_kept(tmp_path: Path) -> None:
    kept = Choices(tmp_path).view
    kept.put("view", Density.LITE)
    kept.write()
    assert make_app(ListSource(()), settings=replace(FROZEN, choices_folder=tmp_path)).app_state.density is Density.LITE
    settings = replace(FROZEN, choices_folder=tmp_path, view=Density.DENSE)
    assert make_app(ListSource(()), settings=settings).app_state.density is Density.DENSE


async def test_a_dense_view_shows_more_rows() -> None:
    samples = make_samples(names=tuple(f"sd{number}" for number in range(60)), count=10)
    source = ListSource(samples)
    async with on_stage(make_app(source), (120, 40)) as pilot:
        await play(pilot, source, 8)
        grid = pilot.app.screen.query_one("#disks", Grid)
        normal = grid.size.height
        await pilot.press("Y")
        await pilot.pause()
        await until(pilot, lambda: grid.size.height > normal + 5)
        assert "Quit" not in screen_text(pilot).splitlines()[-1], "no key line"
        assert "ms" in screen_text(pilot).splitlines()[3], "units are still there"


@pytest.mark.slow
@pytest.mark.parametrize("key", ["1", "2", "4", "8"])
async def test_a_lite_view_has_no_charts(key: str) -> None:
    source = ListSource(with_latencies(make_samples(count=20)))
    async with on_stage(make_app(source), (200, 60)) as pilot:
        await play(pilot, source, 12)
        await pilot.press("Y", "Y", key)
        await pilot.pause()
        screen = pilot.app.screen
        visible = [widget for widget in (*screen.query(Chart), *screen.query(HeatMap)) if widget.region.area]
        assert not visible


@pytest.mark.slow
@pytest.mark.parametrize("key", ["3", "5", "6", "7"])
async def test_a_tall_screen_has_charts_of_the_row_under_the_cursor(key: str) -> None:
    source = ListSource(multipath_samples(20))
    async with on_stage(make_app(source), (200, 60)) as pilot:
        await play(pilot, source, 12)
        await pilot.press(key)
        await pilot.pause()
        charts = pilot.app.screen.query_one(SubjectCharts)
        assert charts.region.height >= 20
        assert screen_text(pilot).count(" ms ") >= 2
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert not charts.region.area


async def test_a_lite_view_draws_few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr("tui.app.app.time.monotonic", lambda: now_s[0])
    app = make_app(ListSource(()), settings=replace(FROZEN, view=Density.LITE))
    due = []
    for _ in range(6):
        now_s[0] += 1.0
        due.append(app._is_due())
    assert due == [True, False, True, False, True, False]
    app.app_state.density = Density.NORMAL
    assert app._is_due()
    assert app._is_due()
