"""Which row of A is which row of B."""

from __future__ import annotations

from collectors.compare.side import SideRow, matched


def _row(key: str, name: str, identity: str = "", table: str = "disks") -> SideRow:
    return SideRow(table, key, name, identity or key, {})


def _pairs(a: list[SideRow], b: list[SideRow]) -> list[tuple[str, str]]:
    return [(one.key, other.key) for one, other in matched(a, b)]


def test_identity_counts_and_not_the_kernel_name() -> None:
    a = [_row("sda:1", "sda", "wwid1"), _row("sdb:2", "sdb", "wwid2")]
    b = [_row("sda:7", "sda", "wwid2"), _row("sdb:8", "sdb", "wwid1")]
    assert _pairs(a, b) == [("sda:1", "sdb:8"), ("sdb:2", "sda:7")]


def test_disk_with_another_identity_is_another_disk_whatever_its_name() -> None:
    assert _pairs([_row("sda:1", "sda", "wwid1")], [_row("sda:2", "sda", "wwid2")]) == []


def test_paths_of_one_lun_are_matched_by_name() -> None:
    a = [_row("sda:1", "sda", "lun", "paths"), _row("sdb:2", "sdb", "lun", "paths")]
    b = [_row("sdb:9", "sdb", "lun", "paths"), _row("sda:8", "sda", "lun", "paths")]
    assert _pairs(a, b) == [("sda:1", "sda:8"), ("sdb:2", "sdb:9")]


def test_rows_without_identity_are_the_same_by_key_or_else_by_name() -> None:
    a = [_row("load:1:0", "/dev/x", table="load"), _row("load:1:1", "/dev/y", table="load")]
    b = [_row("load:2:0", "/dev/y", table="load"), _row("load:1:0", "/dev/x", table="load")]
    assert _pairs(a, b) == [("load:1:0", "load:1:0"), ("load:1:1", "load:2:0")]


def test_row_that_several_could_be_is_left_out() -> None:
    a = [_row("k1", "loop0"), _row("k2", "loop0")]
    assert _pairs(a, [_row("k3", "loop0")]) == []
