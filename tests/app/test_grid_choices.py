"""Filters, columns and pins as the operator drives them by keys, on the screens."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from textual import events
from textual.binding import Binding
from textual.keys import _character_to_key
from textual.pilot import Pilot

from engine.replacing import replace
from tests.app.multipath import multipath_samples
from tests.app.shows import text_of
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import FROZEN, SIZES, make_app, on_stage, play, rewind_to, said, screen_text, until
from tui.kept import Choices
from tui.keys import ACTIONS
from tui.screens.shared.column_dialog import ColumnDialog
from tui.settings import load_settings
from tui.text.columns import UnitStyle, grid_columns, in_units
from tui.widgets.grid.table import Grid


def grid_of(pilot: Pilot[None], selector: str) -> Grid:
    return pilot.app.screen.query_one(selector, Grid)


def titles(grid: Grid) -> list[str]:
    return [column.title for column in grid.columns]


def filter_keys(text: str) -> list[str]:
    named = {" ": "space", ">": "greater_than_sign", "=": "equals_sign", "!": "exclamation_mark", "~": "tilde"}
    return ["slash", *(named.get(char, char) for char in text)]


@pytest.mark.parametrize("size", SIZES)
async def test_a_filter_by_figures_stays_while_samples_come(size: tuple[int, int]) -> None:
    source = ListSource(make_samples(count=12))
    async with on_stage(make_app(source), size) as pilot:
        await play(pilot, source, 4)
        disks = grid_of(pilot, "#disks")
        total = disks.row_count
        await pilot.press(*filter_keys("iops>"))
        assert disks.row_count == total
        assert "character 6: a value is missing after iops>" in screen_text(pilot)
        await pilot.press(*"1000k", "enter")
        assert disks.row_count == 0
        assert f"0 of {total}" in screen_text(pilot)
        await pilot.press("slash", *["backspace"] * 5, "0", "enter")
        assert 0 < disks.row_count <= total
        count = f"/iops>0  {disks.row_count} of {total}"
        assert count in screen_text(pilot)
        await play(pilot, source, 3)
        assert disks.filter_text == "iops>0"
        await pilot.press("escape")
        assert disks.row_count == total
        assert "/iops" not in screen_text(pilot)


@pytest.mark.slow
async def test_paths_are_found_by_state_and_port_below_their_sums() -> None:
    source = ListSource(multipath_samples(10))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5", *filter_keys("state=failed"), "enter")
        paths = grid_of(pilot, "#paths")
        assert paths.row_count == 2
        assert "/state=failed  1 of" in screen_text(pilot)
        assert "sdf host0 fc" in screen_text(pilot)
        await pilot.press("escape", *filter_keys("mpath2 port=host0 -state=failed"), "enter")
        text = screen_text(pilot)
        assert "mpath2" in text
        assert "sdf host0 fc" not in text
        await pilot.press("escape", *filter_keys("vendor>5"))
        assert "vendor is a text: compare with = != ~ or !~" in screen_text(pilot)


@pytest.mark.slow
async def test_columns_are_chosen_and_kept_for_the_next_start(tmp_path: Path) -> None:
    settings = replace(FROZEN, choices_folder=tmp_path / "new")
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source, settings=settings)) as pilot:
        await play(pilot, source, 4)
        disks = grid_of(pilot, "#disks")
        first, second, *_ = titles(disks)
        await pilot.press("V")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnDialog))
        assert f"[x] {first}" in screen_text(pilot)
        await pilot.press("greater_than_sign", "end", "space", "enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ColumnDialog))
        chosen = titles(disks)
        assert chosen[:2] == [second, first]
        assert len(chosen) == len(disks.default_columns) + 1
        await pilot.press("V", *["space"] * 60, "escape")
        assert titles(disks) == chosen
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source, settings=settings)) as pilot:
        await play(pilot, source, 4)
        assert titles(grid_of(pilot, "#disks")) == chosen
        await pilot.press("V", "r", "enter")
        await until(pilot, lambda: titles(grid_of(pilot, "#disks"))[0] == first)
    assert json.loads((tmp_path / "new" / "columns.json").read_text()) == {}


def test_a_file_of_columns_that_cannot_be_read_is_named_and_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "columns.json"
    file.write_text("{")
    kept = Choices(tmp_path).columns
    assert str(file) in kept.problem
    kept.put("overview.disks", ("iops",))
    assert str(file) in kept.write()
    assert kept.of("overview.disks") == ("iops",)
    assert file.read_text() == "{"
    file.write_text('{"a": ["iops"], "b": 5, "c": [5]}')
    kept = Choices(tmp_path).columns
    assert (kept.problem, kept.of("a"), kept.of("b"), kept.of("c")) == ("", ("iops",), None, None)
    (tmp_path / "file").write_text("")
    kept = Choices(tmp_path / "file").columns
    kept.put("a", ("iops",))
    assert "columns kept until you leave: " in kept.write()


def test_what_is_chosen_is_kept_beside_the_settings(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "config.toml").choices_folder == tmp_path


async def test_a_pinned_row_stays_at_the_top_and_idle_rows_can_be_hidden() -> None:
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 4)
        disks = grid_of(pilot, "#disks")
        await pilot.press("end")
        last = disks.cursor_key
        await pilot.press("K")
        assert disks._view.key_at(0) == last
        await pilot.press("greater_than_sign", "home", "down")
        assert disks._view.key_at(0) == last
        assert "^" in "".join(disks.render_line(y).text for y in range(disks.size.height))
        await pilot.press("home", "K")
        assert disks._view.top_keys == ()
        await pilot.press("H")
        assert "idle rows hidden" in screen_text(pilot)
        await pilot.press("H")
        assert "idle rows hidden" not in screen_text(pilot)


@pytest.mark.slow
async def test_order_units_pins_and_hidden_rows_are_kept_for_the_next_start(tmp_path: Path) -> None:
    settings = replace(FROZEN, choices_folder=tmp_path / "new")
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source, settings=settings), SIZES[1]) as pilot:
        await play(pilot, source, 4)
        disks = grid_of(pilot, "#disks")
        before = text_of(disks)
        await pilot.press("greater_than_sign", "I", "u", "end", "K", "H")
        chosen = (disks.sorting, disks.unit_style, disks.idle_hidden, disks.pinned_keys)
        assert len(disks.pinned_keys) == 1
        await pilot.press("7", "1")
    for _ in range(2):
        source = ListSource(make_samples(count=6))
        async with on_stage(make_app(source, settings=settings), SIZES[1]) as pilot:
            await play(pilot, source, 4)
            disks = grid_of(pilot, "#disks")
            assert (disks.sorting, disks.unit_style, disks.idle_hidden, disks.pinned_keys) == chosen
    async with on_stage(make_app(source := ListSource(make_samples(count=6)), settings=settings), SIZES[1]) as pilot:
        await play(pilot, source, 4)
        await pilot.press("home", "K", "H", "u", "u", "less_than_sign", "home")
        assert text_of(grid_of(pilot, "#disks")) == before
        await until(pilot, lambda: json.loads((tmp_path / "new" / "tables.json").read_text()) == {})


async def test_a_pinned_row_that_is_absent_is_kept_until_it_is_back(tmp_path: Path) -> None:
    file = tmp_path / "tables.json"
    absent = {"key": "gone", "name": "nvme9n1", "id": "eui.9"}
    file.write_text(json.dumps({"overview.disks": {"pinned": [absent], "sort": "no such field", "units": "none"}}))
    settings = replace(FROZEN, choices_folder=tmp_path)
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source, settings=settings)) as pilot:
        await play(pilot, source, 4)
        disks = grid_of(pilot, "#disks")
        assert (disks.pinned_keys, disks.sorting.field_id) == ((), "heat")
        await pilot.press("K")
    pins = json.loads(file.read_text())["overview.disks"]["pinned"]
    assert [pin["name"] for pin in pins] == ["sdc", "nvme9n1"]


async def test_a_replay_leaves_its_keys_to_a_filter_being_typed() -> None:
    source = ListRecording(make_samples(count=30))
    async with on_stage(make_app(source)) as pilot:
        await rewind_to(pilot, source, 10)
        await pilot.press("slash", *"sfg,.", "space", *"id")
        assert grid_of(pilot, "#disks").filter_text == "sfg,. id"
        assert source.speed == 1.0


async def test_keys_that_arrive_together_all_reach_the_filter() -> None:
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 4)
        for char in "/busy q":
            pilot.app.post_message(events.Key(_character_to_key(char), char))
        await until(pilot, lambda: grid_of(pilot, "#disks").filter_text == "busy q")


@pytest.mark.slow
async def test_the_palette_offers_what_the_focused_table_can_do() -> None:
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 4)
        await pilot.press("ctrl+p", *"hide", "space", *"rows", "enter")
        await until(pilot, lambda: "idle rows hidden" in screen_text(pilot))


def test_keys_of_tables_are_no_keys_of_a_screen() -> None:
    moves = {"up", "down", "left", "right", "home", "end", "pageup", "pagedown", "enter"}
    of_tables = {key for one in Grid.BINDINGS if isinstance(one, Binding) for key in one.key.split(",")} - moves
    assert {"slash", "H", "K", "V", "u"} <= of_tables
    assert not of_tables & {key for action in ACTIONS for key in action.keys.split(",")}


async def test_units_change_and_come_back() -> None:
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 4)
        disks = grid_of(pilot, "#disks")
        before = text_of(disks)
        await pilot.press("u")
        assert text_of(disks) != before
        assert said(pilot.app, "k, M, G of 1000 bytes")
        await pilot.press("u")
        assert said(pilot.app, "as 250u")
        await pilot.press("u")
        assert text_of(disks) == before


@pytest.mark.parametrize(
    ("style", "field", "value", "text"),
    [
        (UnitStyle.DECIMAL, "bytes_per_s", 1.5e6, "1.50M"),
        (UnitStyle.BINARY, "bytes_per_s", 1.5e6, "1.43M"),
        (UnitStyle.DECIMAL, "queue_ms", 0.25, "0.250"),
        (UnitStyle.MICROSECONDS, "queue_ms", 0.25, "250u"),
        (UnitStyle.MICROSECONDS, "queue_ms", 9.999, "9999u"),
        (UnitStyle.MICROSECONDS, "queue_ms", 12.0, "12.0"),
        (UnitStyle.MICROSECONDS, "queue_ms", 0.0, "0"),
        (UnitStyle.MICROSECONDS, "queue_ms", math.nan, "-"),
    ],
)
def test_figures_in_other_units(style: UnitStyle, field: str, value: float, text: str) -> None:
    (column,) = grid_columns("disks", [field])
    assert in_units(column, style).format(value) == text
