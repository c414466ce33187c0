"""Rows that need arithmetic, found in one pass: the same as by comparing whole arrays."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.model import MISSING
from engine._native import changed_rows


def test_rows_are_those_that_differ_or_lack_a_required_value() -> None:
    random = np.random.default_rng(7)
    before = random.integers(0, 3, (5_000, 6), np.uint64)
    now = np.where(random.random(before.shape) < 0.05, random.integers(0, 3, before.shape, np.uint64), before)
    for values in (before, now):
        values[random.random(before.shape) < 0.02] = MISSING
    required = np.array([True, False, True, True, False, False])
    expected = (now != before).any(axis=1) | (now[:, required] == MISSING).any(axis=1)
    assert 0 < expected.sum() < len(expected)
    assert changed_rows(before, now, required).tolist() == expected.tolist()


def test_no_columns_and_no_rows_have_no_changes() -> None:
    nothing = np.zeros(0, np.bool_)
    assert changed_rows(np.zeros((3, 0), np.uint64), np.zeros((3, 0), np.uint64), nothing).tolist() == [False] * 3
    assert not len(changed_rows(np.zeros((0, 1), np.uint64), np.zeros((0, 1), np.uint64), np.ones(1, np.bool_)))


def test_shapes_must_agree_and_arrays_be_contiguous() -> None:
    table, one = np.zeros((4, 2), np.uint64), np.ones(1, np.bool_)
    with pytest.raises(ValueError, match="different shapes"):
        changed_rows(table, table[:3], np.ones(2, np.bool_))
    with pytest.raises(ValueError, match="different shapes"):
        changed_rows(table, table, one)
    with pytest.raises(TypeError, match="contiguous"):
        changed_rows(table[:, :1], table[:, :1], one)
