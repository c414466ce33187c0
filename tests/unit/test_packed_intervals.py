"""Packed intervals give back every figure to seven digits, and every latency as it was."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.latency.history import pack_cells
from collectors.model import Frame, Histograms, HistogramScale, Rows
from collectors.rates import derive
from engine.replacing import replace
from tests.app.latency_samples import with_latencies
from tests.app.sources import make_samples
from tui.history.packed import IntervalPacker


def intervals(count: int) -> list[tuple[Frame, dict[str, Histograms]]]:
    samples = with_latencies(make_samples(count=count))
    return [
        (
            replace(derive(before, sample), usual_ms={"disks": np.array([1.5, np.nan, 3.0])}),
            dict(sample.histograms),
        )
        for before, sample in zip([None, *samples[:-1]], samples, strict=True)
    ]


def assert_same(found: Frame, frame: Frame) -> None:
    assert (found.time_ns, found.elapsed_s, found.cost_pct) == (frame.time_ns, frame.elapsed_s, frame.cost_pct)
    assert found.topology is frame.topology
    assert list(found.tables) == list(frame.tables)
    for name, table in frame.tables.items():
        packed = found.tables[name]
        assert (packed.rows.keys, packed.rows.names) == (table.rows.keys, table.rows.names)
        assert packed.columns.keys() == table.columns.keys()
        assert packed.tiers.keys() == table.tiers.keys()
        for field_id, values in table.columns.items():
            np.testing.assert_allclose(packed.columns[field_id], values, rtol=1e-6)
            assert packed.columns[field_id].dtype == np.float64
        for field_id, tiers in table.tiers.items():
            np.testing.assert_array_equal(packed.tiers[field_id], tiers)
    for name, usual in frame.usual_ms.items():
        np.testing.assert_allclose(found.usual_ms[name], usual, rtol=1e-6)


def test_figures_and_latencies_come_back_as_they_were() -> None:
    packer, given = IntervalPacker(), intervals(12)
    packed = [packer.pack(*interval) for interval in given]
    for one, (frame, histograms) in zip(packed, given, strict=True):
        assert_same(one.frame, frame)
        assert list(one.histograms) == list(histograms)
        for name, cells in histograms.items():
            found = one.histograms[name]
            assert (found.scale, found.rows.keys, found.series) == (cells.scale, cells.rows.keys, cells.series)
            for part in ("row", "series_index", "bucket", "count"):
                np.testing.assert_array_equal(getattr(found, part), getattr(cells, part))
                assert getattr(found, part).dtype == getattr(cells, part).dtype


def test_intervals_that_are_alike_share_their_layout_and_pay_once_for_their_rows() -> None:
    packer = IntervalPacker()
    first, second, third = (packer.pack(*interval) for interval in intervals(4)[1:])
    assert second.layout is first.layout is third.layout
    assert first.new_rows > 0
    assert second.new_rows == third.new_rows == 0
    assert first.size_bytes > second.size_bytes > len(second.data)


def test_a_table_that_comes_and_goes_leaves_the_others_where_they_belong() -> None:
    packer, given = IntervalPacker(), intervals(4)
    frame, histograms = given[2]
    fewer = replace(frame, tables={name: table for name, table in frame.tables.items() if name != "disks"})
    for wanted, cells in ((frame, histograms), (fewer, {}), (frame, histograms)):
        packed = packer.pack(wanted, cells)
        assert_same(packed.frame, wanted)
        assert packed.histograms.keys() == cells.keys()


def test_packed_figures_cannot_be_changed() -> None:
    packed = IntervalPacker().pack(*intervals(2)[1])
    table = next(iter(packed.frame.tables.values()))
    column = next(iter(table.columns.values()))
    assert not column.flags.writeable


def cells_of(rows: int, row: list[int], count: list[int]) -> Histograms:
    names = tuple(f"sd{number}" for number in range(rows))
    bucket = np.arange(len(row), dtype=np.uint16)
    series, counts = np.zeros(len(row), np.uint8), np.array(count, np.uint64)
    scale = HistogramScale(1, 6)
    return Histograms(scale, Rows(names, names), ("read",), np.array(row, np.uint32), series, bucket, counts)


@pytest.mark.parametrize(("rows", "row"), [(3, [0, 1, 2]), (70_000, [0, 65_535, 69_999])])
@pytest.mark.parametrize("count", [[1, 2, 3], [1, 2, 1 << 40]], ids=["few", "more than 32 bits hold"])
def test_cells_come_back_whatever_their_width(rows: int, row: list[int], count: list[int]) -> None:
    packed = pack_cells(cells_of(rows, row, count))
    assert packed.histograms.row.tolist() == row
    assert packed.histograms.count.tolist() == count
    assert packed.histograms.bucket.tolist() == [0, 1, 2]


def test_a_cell_beyond_the_rows_stays_beyond_them() -> None:
    packed = pack_cells(cells_of(2, [0, 1, 1 << 16], [1, 1, 1]))
    assert packed.histograms.row[-1] >= 2


def test_histograms_that_were_just_packed_are_not_packed_again() -> None:
    cells = cells_of(2, [0, 1], [1, 1])
    assert pack_cells(cells) is pack_cells(cells)
