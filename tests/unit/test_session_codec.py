"""The native codec on its own: everything comes back, nothing hostile gets through."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from engine import _native

_SHAPES = st.tuples(st.integers(0, 12), st.integers(0, 9))
_VALUES = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 300), st.sampled_from([0, 2**32 - 1, 2**64 - 1]))


@st.composite
def _runs(draw: st.DrawFn) -> list[NDArray[np.uint64]]:
    shape = draw(_SHAPES)
    return draw(st.lists(arrays.arrays(np.uint64, shape, elements=_VALUES), min_size=1, max_size=6))


@pytest.mark.slow
@given(_runs(), st.booleans())
def test_any_run_of_values_comes_back(run: list[NDArray[np.uint64]], settle: bool) -> None:
    writer, reader = (_native.TableCodec(*run[0].shape) for _ in range(2))
    for values in run:
        reader.apply(writer.encode(values))
        np.testing.assert_array_equal(reader.values(), values)
        if settle:
            writer.settle()
            reader.settle()


@pytest.mark.slow
@given(_runs(), st.data())
def test_rows_may_move_between_ticks(run: list[NDArray[np.uint64]], data: st.DataObject) -> None:
    rows = run[0].shape[0]
    writer, reader = (_native.TableCodec(*run[0].shape) for _ in range(2))
    for values in run:
        source = np.array(data.draw(st.lists(st.integers(-1, rows - 1), min_size=rows, max_size=rows)), np.int64)
        writer, reader = writer.rearranged(source), reader.rearranged(source)
        reader.apply(writer.encode(values))
        np.testing.assert_array_equal(reader.values(), values)


def test_idle_rows_cost_nothing_and_busy_ones_little() -> None:
    random = np.random.default_rng(7)
    values = random.integers(0, 1 << 40, (2000, 21)).astype(np.uint64)
    codec = _native.TableCodec(2000, 21)
    codec.encode(values)
    codec.settle()
    assert len(codec.encode(values)) == 1
    for _ in range(3):
        values[:100, :12] += random.poisson(1000, (100, 12)).astype(np.uint64)
        data = codec.encode(values)
    assert len(data) < 100 * 14


@given(st.binary(max_size=200))
def test_hostile_tables_are_value_errors_and_change_nothing(data: bytes) -> None:
    codec = _native.TableCodec(5, 4)
    codec.encode(np.arange(20, dtype=np.uint64).reshape(5, 4))
    before = codec.values()
    try:
        codec.apply(data)
    except ValueError:
        np.testing.assert_array_equal(codec.values(), before)


@given(st.binary(max_size=200))
def test_hostile_cells_and_frames_are_value_errors(data: bytes) -> None:
    for decode in (_native.decode_cells, lambda data: _native.decompress(data, 1 << 16)):
        try:
            decode(data)
        except ValueError:
            continue


def test_bombs_and_absurd_sizes_are_refused() -> None:
    bomb = _native.compress(bytes(1 << 26))
    with pytest.raises(ValueError, match="larger than allowed"):
        _native.decompress(bomb, 1 << 20)
    with pytest.raises(ValueError, match="too large"):
        _native.TableCodec(1 << 40, 1 << 20)
    with pytest.raises(ValueError, match="too large"):
        _native.TableCodec(1 << 40, 0)
    with pytest.raises(ValueError, match="shape"):
        _native.TableCodec(2, 2).encode(np.zeros((2, 3), np.uint64))


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 255), st.integers(0, 65535), _VALUES), max_size=50))
def test_histogram_cells_come_back_sorted(cells: list[tuple[int, int, int, int]]) -> None:
    types = (np.uint32, np.uint8, np.uint16, np.uint64)
    decoded = _native.decode_cells(
        _native.encode_cells(
            np.array([cell[0] for cell in cells], np.uint32),
            np.array([cell[1] for cell in cells], np.uint8),
            np.array([cell[2] for cell in cells], np.uint16),
            np.array([cell[3] for cell in cells], np.uint64),
        )
    )
    assert [array.dtype for array in decoded] == [np.dtype(type_) for type_ in types]
    assert list(zip(*(array.tolist() for array in decoded), strict=True)) == sorted(cells)
