"""The filter language: what it finds, what it says of mistakes, and that it takes any text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collectors.filtering.fields import FilterFields, figures_of, texts_of
from collectors.filtering.parse import read_filter
from collectors.model import FrameTable, Rows
from collectors.registry import fields_of
from tui.widgets.grid.filtering import GridRows
from tui.widgets.grid.rows import RowNames

NAMES = ("sda", "sdb", "nvme0n1", "nvme1n1", "dm-3")
FIELDS = FilterFields((*figures_of(fields_of("disks")), *texts_of("name", "alias", "state")))
TABLE = FrameTable(
    Rows(tuple(f"{name}@1" for name in NAMES), NAMES),
    {
        "busy_pct": np.array([10.0, 49.7, 50.0, 99.0, math.nan]),
        "iops": np.array([0.0, 0.3, 99_700.0, 100_400.0, math.nan]),
        "p99_ms": np.array([0.2, 5.0, 6.0, 1500.0, math.nan]),
        "bytes_per_s": np.array([0.0, 1024.0, 1.5 * 1024**2, 2.0**30, math.nan]),
        "in_flight": np.array([0.0, 1.0, 32.0, 1000.0, math.nan]),
    },
)


class SomeTexts:
    """Texts of the rows besides their names."""

    fields = texts_of("alias", "state")
    _texts: Mapping[str, Sequence[str]] = {
        "alias": ["", "oradata one", "", "", "oradata two"],
        "state": ["active", "failed", "", "sick 3.1x", "active"],
    }

    def texts(self, field_id: str) -> Sequence[str] | None:
        return self._texts.get(field_id)


ROWS = GridRows(TABLE, RowNames(TABLE.rows, None), SomeTexts(), lambda found: found)


def found(text: str) -> list[str]:
    read = read_filter(text, FIELDS)
    assert read.problem is None
    mask = read.expression.matches(ROWS)
    assert mask.dtype == np.bool_
    return [name for name, matched in zip(NAMES, mask, strict=True) if matched]


def test_an_incomplete_term_leaves_those_before_it_in_force() -> None:
    assert read_filter("sd busy>", FIELDS).expression == read_filter("sd ", FIELDS).expression
    assert read_filter("sda | nvme busy>", FIELDS).expression == read_filter("sda | nvme ", FIELDS).expression
    typing = read_filter("sd bu", FIELDS)
    assert (typing.last_word, typing.before_last) == ("bu", read_filter("sd ", FIELDS).expression)
    assert FIELDS.begun_by("bu")
    assert not read_filter("sd bu ", FIELDS).last_word


@pytest.mark.slow
@given(st.text(st.sampled_from('abiopsyus_5019.%kMG/-!|<>=~" \t\n\x00µ') | st.characters(), max_size=60))
@example("busy>" + "9" * 5000)
@example("busy=1e-999")
@example("busy>.")
@example("-" * 3000)
@example("|" * 3000)
def test_takes_any_text(text: str) -> None:
    read = read_filter(text, FIELDS)
    assert len(read.expression.matches(ROWS)) == len(NAMES)
    if read.problem is not None:
        assert 0 <= read.problem.position <= len(text)
        assert "\n" not in read.problem.text


@given(st.sampled_from(["busy", "iops", "p99", "in_flight"]), st.sampled_from([">", "<", ">=", "<=", "=", "!="]))
def test_a_missing_figure_matches_no_comparison_nor_its_opposite(field: str, sign: str) -> None:
    assert "dm-3" not in found(f"{field}{sign}5")
    assert "dm-3" not in found(f"-{field}{sign}5")
    assert sorted(found(f"{field}{sign}5") + found(f"!{field}{sign}5")) == sorted(NAMES[:-1])
