"""Figures of groups of paths: the books balance in every grouping, and nothing is made up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collectors.model import Frame, FrameTable, Topology
from collectors.paths.groups import GroupBy, path_groups
from collectors.paths.rollup import roll_up
from collectors.tables.block.fields import PATH_FIELDS
from tests.unit.test_block_tables import did, frame, topology

LOAD = {"sd0h0": did(900, 1, 500), "sd0h1": did(300, 4, 700), "sd1h0": did(100, 11, 300), "sdz": did(50, 2, 100)}

EVERY_FIELD = [field.id for field in PATH_FIELDS]


def rolled(by: GroupBy, of: dict[str, dict[str, int]] | None = None, about: Topology | None = None) -> FrameTable:
    found = frame(LOAD if of is None else of, about or topology())
    return roll_up(found, path_groups(found.tables["paths"].rows, found.topology, by), EVERY_FIELD)


def value(table: FrameTable, name: str, field_id: str) -> float:
    return table.value(field_id, table.rows.names.index(name))


@pytest.mark.parametrize("by", [GroupBy.PORT, GroupBy.TARGET, GroupBy.WAY, GroupBy.POLICY])
@pytest.mark.parametrize("field_id", ["iops", "read_bytes_per_s", "in_flight"])
def test_the_books_balance_in_every_grouping(by: GroupBy, field_id: str) -> None:
    paths = frame(LOAD, topology()).tables["paths"].columns[field_id].sum()
    assert rolled(by).columns[field_id].sum() == pytest.approx(paths)


def test_luns_and_disks_that_are_their_own_path_add_up_to_all() -> None:
    luns = rolled(GroupBy.LUN)
    assert luns.rows.names == ("dm-0", "dm-1", "dm-2")
    assert luns.columns["iops"].tolist() == [1200, 100, 0]


def test_means_weigh_paths_by_their_ios() -> None:
    luns = rolled(GroupBy.LUN)
    assert value(luns, "dm-0", "await_ms") == pytest.approx((900 * 1 + 300 * 4) / 1200)
    assert value(luns, "dm-0", "read_await_ms") == pytest.approx((900 * 1 + 300 * 4) / 1200)
    assert math.isnan(value(luns, "dm-0", "write_await_ms"))
    assert math.isnan(value(luns, "dm-2", "await_ms"))


def test_busy_of_a_group_is_a_range_and_never_a_sum() -> None:
    policies = rolled(GroupBy.POLICY)
    assert value(policies, "dm policy not known", "busy_low_pct") == 70
    assert value(policies, "dm policy not known", "busy_high_pct") == 100
    assert math.isnan(value(policies, "dm policy not known", "busy_pct"))


def test_a_port_has_the_busy_time_and_limit_that_its_own_table_has() -> None:
    found = frame(LOAD, topology())
    ports, own = rolled(GroupBy.PORT), found.tables["hbas"]
    assert ports.columns["busy_low_pct"].tolist() == own.columns["busy_low_pct"].tolist()
    assert value(ports, "host0+nvme0 fc", "queue_limit") == 100


def test_a_lun_has_its_own_busy_time() -> None:
    luns = rolled(GroupBy.LUN, {**LOAD, "dm-0": did(1200, 2, 900)})
    assert value(luns, "dm-0", "busy_pct") == 90


def test_a_path_of_an_unknown_amount_makes_its_group_unknown() -> None:
    ports = rolled(GroupBy.PORT, about=topology(uncounted=("sd0h0",)))
    assert math.isnan(value(ports, "host0+nvme0 fc", "iops"))
    assert value(ports, "host1 fc", "iops") == 300


def test_percentiles_are_not_made_from_percentiles() -> None:
    found = frame(LOAD, topology())
    paths = found.tables["paths"]
    known = {**paths.columns, "p99_ms": np.ones(len(paths.rows)), "max_ms": np.arange(float(len(paths.rows)))}
    table = FrameTable(paths.rows, known, paths.tiers)
    faked = Frame(found.time_ns, found.monotonic_ns, 1.0, {**found.tables, "paths": table}, found.topology)
    luns = roll_up(faked, path_groups(paths.rows, found.topology, GroupBy.LUN), EVERY_FIELD)
    assert np.isnan(luns.columns["p99_ms"]).all()
    assert luns.columns["max_ms"].tolist() == [1, 3, 5]


def test_fields_not_asked_for_are_left_out() -> None:
    found = frame(LOAD, topology())
    groups = path_groups(found.tables["paths"].rows, found.topology, GroupBy.LUN)
    few, all_fields = roll_up(found, groups, ["await_ms"]), roll_up(found, groups, EVERY_FIELD)
    assert set(few.columns) == {"await_ms", "busy_pct", "busy_low_pct", "busy_high_pct", "paths"}
    for field_id, values in few.columns.items():
        np.testing.assert_array_equal(values, all_fields.columns[field_id])
