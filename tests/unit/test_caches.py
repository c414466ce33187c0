"""Caches: statuses and kstats parsed, figures derived, reported, recorded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from collectors.kernel.mapped_targets import MappedTarget
from collectors.model import MISSING, Sample, Step, Table
from collectors.rates import derive
from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.tables.cache.bcaches import PERIOD_NS, Bcaches, size_bytes
from collectors.tables.cache.dm_caches import (
    cache_entry,
    parse_cache,
    parse_writecache,
    writecache_block_bytes,
)
from collectors.tables.cache.page_caches import PageCaches, page_cache_values
from collectors.tables.cache.reader import CacheCollector, table_values
from collectors.tables.cache.schema import CACHE, CacheEntry
from collectors.tables.cache.zfs import parse_kstat, read_zfs
from engine._native import read_attributes
from engine.replacing import replace
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_zfs import ARC, POOL, kstat_text, write_zfs
from tests.unit import raw_samples as raw
from tests.unit.raw_samples import rows

WHO = rows("dm-1 dm-writecache", "arc")
STATUS = "8 11/4096 128 771/2048 5766 841 2490 297 7 771 5 1 writeback 2 migration_threshold 2048 smq 0 rw -"
"""A dm-cache of Linux 6.1 said this, but for demotions and dirty blocks."""


def cache_sample(at_s: int, *values: dict[str, int]) -> Sample:
    """What a test does not name is MISSING."""
    entries = [CacheEntry(key, name, each) for key, name, each in zip(WHO.keys, WHO.names, values, strict=True)]
    return replace(raw.sample(at_s), tables={CACHE.name: Table(CACHE, WHO, table_values(entries))})


def steps(*moments: tuple[dict[str, int], dict[str, int]]) -> list[Step]:
    samples = [cache_sample(at, *values) for at, values in enumerate(moments, start=1)]
    return [Step(before, now) for before, now in zip([None, *samples], samples, strict=False)]


def test_status_of_dm_cache() -> None:
    mode, values = parse_cache(STATUS)
    assert mode == "writeback"
    assert values["read_hits"] == 5766
    assert (values["write_misses"], values["demotions"], values["promotions"]) == (297, 7, 771)
    assert (values["used_bytes"], values["size_bytes"]) == (771 * 65536, 2048 * 65536)
    assert values["dirty_bytes"] == 5 * 65536
    assert (values["metadata_used_bytes"], values["metadata_size_bytes"]) == (11 * 4096, 4096 * 4096)
    assert values["failed"] == 0
    assert parse_cache(STATUS[:-1] + "needs_check")[1]["failed"] == 1
    assert parse_cache("Fail") == ("", {"failed": 1})


def test_status_of_dm_writecache_with_14_fields_and_with_four() -> None:
    values = parse_writecache("0 1000 250 10 100 40 80 5 15 20 40 3 7 2", 4096)
    assert (values["size_bytes"], values["used_bytes"], values["writeback_bytes"]) == (4096000, 750 * 4096, 40960)
    assert (values["read_hits"], values["read_misses"]) == (40, 60)
    assert (values["write_hits"], values["write_misses"], values["write_bypasses"]) == (20, 40, 20)
    assert (values["blocked"], values["flushes"], values["discards"]) == (3, 7, 2)
    old = parse_writecache("5 1000 250 10", 4096)
    assert old["failed"] == 1
    assert "read_hits" not in old
    assert writecache_block_bytes("s 254:0 254:1 4096 2 high_watermark 50") == 4096


@pytest.mark.parametrize("status", ["", "8 11/4096", STATUS.replace("771/2048", "x/2048"), "-1 2 3 4", "é" * 4])
def test_unknown_formats_give_no_row(status: str) -> None:
    for kind in ("cache", "writecache"):
        target = MappedTarget("dm-1:254:1", "dm-1", (254, 1), kind, "s 254:1 254:2 4096 0")
        assert cache_entry(target, status) is None


def test_rates_shares_and_the_alarm_of_a_full_cache() -> None:
    before = {"read_hits": 100, "read_misses": 100, "write_hits": 0, "write_misses": 0, "write_bypasses": 0}
    after = {"read_hits": 190, "read_misses": 110, "write_hits": 50, "write_misses": 50, "write_bypasses": 300}
    blocked = {"blocked": 0, "size_bytes": 1000, "used_bytes": 500, "dirty_bytes": 250}
    arc = {"read_hits": 0, "read_inflight_hits": 0, "read_misses": 0}
    later = {"read_hits": 70, "read_inflight_hits": 20, "read_misses": 10}
    _, step = steps((before | blocked, arc), (after | blocked | {"blocked": 12}, later))
    table = derive(step.previous, step.current).tables["caches"]
    assert table.value("hit_pct", 0) == pytest.approx(70)
    assert table.value("read_hit_pct", 0) == pytest.approx(90)
    assert table.value("write_hit_pct", 0) == pytest.approx(50)
    assert table.value("bypass_pct", 0) == pytest.approx(75)
    assert (table.value("lookups_per_s", 0), table.value("blocked_per_s", 0)) == (200, 12)
    assert (table.value("used_pct", 0), table.value("dirty_pct", 0)) == (50, 25)
    assert [table.value(name, 1) for name in ("hit_pct", "inflight_hit_pct", "miss_pct")] == pytest.approx([70, 20, 10])
    assert np.isnan(table.value("bypass_pct", 1))
    assert np.isnan(table.value("blocked_per_s", 1))


def test_no_lookups_no_share_and_a_reload_no_figures() -> None:
    busy = {"read_hits": 10, "read_misses": 10, "size_bytes": 7}
    _, idle, reloaded = steps((busy, {}), (busy, {}), ({"read_hits": 1, "read_misses": 1, "size_bytes": 7}, {}))
    table = derive(idle.previous, idle.current).tables["caches"]
    assert table.value("lookups_per_s", 0) == 0
    assert np.isnan(table.value("hit_pct", 0))
    table = derive(reloaded.previous, reloaded.current).tables["caches"]
    assert np.isnan(table.value("lookups_per_s", 0))
    assert table.value("size_bytes", 0) == 7
    assert np.isnan(derive(None, reloaded.current).tables["caches"].value("lookups_per_s", 0))


def test_kstats_of_zfs(tmp_path: Path) -> None:
    write_zfs(tmp_path, ARC, {"tank": POOL, "old": {"arc_read_bytes": 1}})
    found = {entry.name: entry.values for entry in read_zfs(str(tmp_path))}
    assert found["arc"]["read_inflight_hits"] == 2000
    assert found["arc"]["blocked"] == 3
    assert found["arc demand metadata"]["read_misses"] == 500
    assert found["arc mru ghost"] == {"read_hits": 700, "used_bytes": 256 << 20}
    assert found["l2arc"]["used_bytes"] == 6 << 30
    assert found["tank zfs"]["read_bypasses"] == 24_000
    assert found["tank zfs"]["bypass_bytes"] == 24_100 << 17
    assert "old zfs" not in found
    assert list(read_zfs(str(tmp_path / "absent"))) == []


def test_damaged_kstats_are_left_out() -> None:
    text = kstat_text({"hits": 5, "misses": 3}).replace("misses ", "misses -").replace("type data", "typ")
    assert parse_kstat(text) == {"hits": 5}
    assert parse_kstat("") == {}


@pytest.fixture
def bcache(tmp_path: Path) -> FakeKernel:
    attributes = {
        "bcache/stats_total/cache_hits": "10",
        "bcache/stats_total/cache_misses": "2",
        "bcache/stats_total/cache_bypass_hits": "1",
        "bcache/stats_total/cache_bypass_misses": "3",
        "bcache/stats_total/bypassed": "1.5M",
        "bcache/stats_five_minute/cache_hit_ratio": "83",
        "bcache/dirty_data": "2.0k",
        "bcache/cache_mode": "writethrough [writeback] writearound none",
        "bcache/state": "dirty",
        "bcache/cache/cache0/nbuckets": "100",
        "bcache/cache/bucket_size": "64.0k",
    }
    kernel = FakeKernel(tmp_path)
    kernel.add(FakeDisk("bcache0", 252, 0, attributes=attributes))
    return kernel


def test_bcache_counts_over_the_period_of_the_kernel(bcache: FakeKernel) -> None:
    reader, disks = Bcaches(str(bcache.sysfs)), rows("bcache0")
    (first,) = reader.entries(disks, 0)
    assert first.name == "bcache0 bcache writeback"
    assert first.values == {
        "read_hits": 10,
        "read_misses": 2,
        "read_bypasses": 4,
        "bypass_bytes": 3 << 19,
        "recent_hit_percent": 83,
        "dirty_bytes": 2048,
        "size_bytes": 6_553_600,
        "failed": 0,
        "counted_ns": 0,
    }
    (still,) = reader.entries(disks, 10**9)
    assert still.values["counted_ns"] == 0
    (bcache.sysfs / "block/bcache0/bcache/stats_total/cache_hits").write_text("290\n")
    (grown,) = reader.entries(disks, 2 * 10**9)
    assert grown.values["counted_ns"] == PERIOD_NS
    (bcache.sysfs / "block/bcache0/bcache/stats_total/cache_hits").write_text("300\n")
    (late,) = reader.entries(disks, 62 * 10**9)
    assert late.values["counted_ns"] == 60 * 10**9


def test_a_period_of_bcache_is_a_rate_and_the_time_between_has_none() -> None:
    moments: list[tuple[dict[str, int], dict[str, int]]] = [
        ({"read_hits": 0, "read_misses": 0, "counted_ns": 0}, {}),
        ({"read_hits": 0, "read_misses": 0, "counted_ns": 0}, {}),
        ({"read_hits": 150, "read_misses": 150, "counted_ns": 15 * 10**9}, {}),
    ]
    _, quiet, counted = steps(*moments)
    assert np.isnan(derive(quiet.previous, quiet.current).tables["caches"].value("lookups_per_s", 0))
    table = derive(counted.previous, counted.current).tables["caches"]
    assert table.value("lookups_per_s", 0) == pytest.approx(20)
    assert table.value("hit_pct", 0) == 50


@pytest.mark.parametrize(
    ("words", "size"), [("512", 512), ("4.0k", 4096), ("1.5G", 3 << 29), ("-3.0k", 0), ("", None), ("1.x", None)]
)
def test_sizes_as_bcache_prints_them(words: str, size: int | None) -> None:
    assert size_bytes(words) == size


def test_a_host_without_caches_has_no_table_and_keeps_its_rows(tmp_path: Path, bcache: FakeKernel) -> None:
    assert CacheCollector(str(tmp_path), str(bcache.sysfs), lambda: None).read().tables == {}
    write_zfs(tmp_path)
    collector = CacheCollector(str(tmp_path), str(bcache.sysfs), lambda: None)
    first = collector.read().tables["cache"]
    assert collector.read().tables["cache"].rows is first.rows
    assert int(first.column("read_hits")[0]) == 90_000


def test_page_cache_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(bytes(256 * 1024))
    with file.open("rb") as opened:
        values = page_cache_values(opened.fileno())
    assert values["size_bytes"] == 256 * 1024
    assert values["used_bytes"] == 256 * 1024
    paths = [str(file)]
    caches = PageCaches(lambda: paths)
    (entry,) = caches.entries()
    assert entry.name == f"{file} page cache"
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    paths.clear()
    assert list(caches.entries()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors - 1


def test_report_and_recording(tmp_path: Path) -> None:
    write_zfs(tmp_path, ARC, {"tank": POOL})
    entries = tuple(read_zfs(str(tmp_path)))
    who = rows(*(entry.name for entry in entries))
    grown = table_values(entries)
    zero = np.where(grown == MISSING, MISSING, np.uint64(0))
    tables = [Table(CACHE, who, values) for values in (zero, grown)]
    samples = [replace(raw.sample(at), tables={CACHE.name: table}) for at, table in enumerate(tables, start=1)]
    both = [Step(None, samples[0]), Step(samples[0], samples[1])]
    lines = list(report_text(both, ReportOptions(("caches",))))
    arc = next(line.split() for line in lines if " arc " in line)
    assert arc[2:5] == ["90.0", "2.0", "8.0"]
    # Of a list that remembers what it had, only hits and its size are counted.
    ghost = next(line.rpartition("arc mru ghost")[2].split() for line in lines if "arc mru ghost" in line)
    assert [cell for cell in ghost if cell != "-"] == ["700.0", str(256 << 10)]
    documents = list(report_json(both, ReportOptions(("caches",))))
    tank = next(each for each in json.loads(documents[-1])["caches"] if each["name"] == "tank zfs")
    assert tank["bypass_pct"] == 75
    with SessionWriter(tmp_path / "a.luns") as writer:
        for each in samples:
            writer.write(each)
    with SessionReader(tmp_path / "a.luns") as reader:
        read = reader.sample_at(1)
    assert read is not None
    assert (read.tables["cache"].values == samples[1].tables["cache"].values).all()


def test_attributes_of_bcache_lead_through_links(bcache: FakeKernel) -> None:
    assert read_attributes(f"{bcache.sysfs}/block", ["bcache0"], ["bcache/state"]) == [[b"dirty"]]
