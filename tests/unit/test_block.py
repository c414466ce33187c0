"""The DISK table from fake kernels of several ages."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.kernel import uevents
from collectors.model import MISSING, Table
from collectors.tables.block.counters import BlockCollector
from collectors.tables.block.schema import DISK
from engine._native import BlockReader
from tests.fake_kernel import FakeDisk, FakeKernel, busy_counters

METHODS = ("diskstats", "sysfs")


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def reader(kernel: FakeKernel, method: str = "diskstats") -> BlockReader:
    return BlockReader(str(kernel.procfs), str(kernel.sysfs), method)  # type: ignore[arg-type]


def collector_of(kernel: FakeKernel) -> BlockCollector:
    """A collector that follows every uevent at once."""
    return BlockCollector(str(kernel.procfs), str(kernel.sysfs), identity_share=float("inf"))


def collect(collector: BlockCollector) -> Table:
    return collector.read().tables[DISK.name]


@pytest.mark.parametrize(("fields", "present"), [(14, 11), (18, 15), (20, 17), (24, 17)])
def test_every_kernel_fills_the_columns_it_has(tmp_path: Path, fields: int, present: int) -> None:
    kernel = FakeKernel(tmp_path, fields=fields)
    counters = busy_counters(1)
    kernel.add(FakeDisk("sda", counters=counters))
    values = reader(kernel).read()
    assert values[0, :present].tolist() == list(counters[:present])
    assert (values[0, present:] == MISSING).all()


@pytest.mark.parametrize("method", METHODS)
def test_both_sources_tell_the_same(kernel: FakeKernel, method: str) -> None:
    kernel.add(*(FakeDisk(f"sd{n}", minor=n * 16, counters=busy_counters(n), partitions=2) for n in range(40)))
    one = reader(kernel, method)
    values = dict(zip(one.names(), one.read().tolist(), strict=False))
    values = one.read().tolist()
    assert dict(zip(one.names(), values, strict=True)) == {f"sd{n}": list(busy_counters(n)) for n in range(40)}
    assert dict(zip(one.names(), one.numbers().tolist(), strict=True)) == {f"sd{n}": [8, n * 16] for n in range(40)}
    assert one.method == method


def test_many_devices_are_read_from_sysfs(kernel: FakeKernel) -> None:
    kernel.add(*(FakeDisk(f"sd{n}", minor=n) for n in range(30)))
    one = BlockReader(str(kernel.procfs), str(kernel.sysfs), switch_bytes=1000)
    methods = []
    for gone in (range(0), range(18)):
        for n in gone:
            kernel.remove(f"sd{n}")
        one.rescan()
        methods.append((len(one.read()), one.method))
    assert methods == [(30, "sysfs"), (12, "diskstats")]


def test_malformed_lines_are_skipped_and_counted(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda"), FakeDisk("sdb", minor=16))
    broken = [
        b"rubbish\n",
        b"\n",
        b"8 32 sdc 1 2 x 4 5 6 7 8 9 10 11\n",
        b"8 48 sdd 1 2 3\n",
        b"99999999999 0 sde 1\n",
        b"8 0",
    ]
    kernel.write_diskstats(extra_lines=broken)
    for name in ("sdc", "sdd"):
        (kernel.sysfs / "block" / name).mkdir()
    one = reader(kernel)
    for _ in range(2):
        assert one.read().shape == (2, 17)
        assert one.names() == ["sda", "sdb"]
        assert one.malformed == len(broken)


def test_lines_that_are_left_out_are_reported_once_and_again_when_there_are_more(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda"))
    collector = collector_of(kernel)
    said = []
    for broken in ([], [b"rubbish\n"], [b"rubbish\n"], [b"rubbish\n", b"8 0\n"], [], [b"rubbish\n"]):
        kernel.write_diskstats(extra_lines=broken)
        said.append([event.text for event in collector.read().events])
    one, two = (f"disk counters: {lines} of the kernel not understood and left out" for lines in ("1 line", "2 lines"))
    assert said == [[], [one], [], [two], [], [one]]
    collector.close()


def test_a_disk_with_fewer_than_no_ios_in_flight_is_shown_without_them(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda"))
    kernel.write_diskstats(extra_lines=[b"8 16 sdb 1 2 3 4 5 6 7 8 -1 10 11 12 13 14 15 16 17\n"])
    (kernel.sysfs / "block/sdb").mkdir()
    one = reader(kernel)
    assert one.read()[1].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, MISSING, *range(10, 18)]
    assert one.malformed == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_device_that_vanishes_drops_out_and_a_new_one_comes_in(kernel: FakeKernel, method: str) -> None:
    kernel.add(FakeDisk("sda"), FakeDisk("sdb", minor=16))
    one = reader(kernel, method)
    one.read()
    generation = one.generation
    kernel.remove("sda")
    kernel.add(FakeDisk("sdc", minor=32))
    one.rescan()
    assert one.read().shape == (2, 17)
    assert sorted(one.names()) == ["sdb", "sdc"]
    assert one.generation > generation
    generation = one.generation
    one.read()
    assert one.generation == generation


def test_names_may_hold_slashes_and_any_bytes(kernel: FakeKernel) -> None:
    odd = "vol\udcff"
    kernel.add(FakeDisk("cciss/c0d0", major=104), FakeDisk(odd, major=9, attributes={"device/model": b"\xffX\x1b[2J"}))
    for method in METHODS:
        one = reader(kernel, method)
        one.read()
        assert sorted(one.names()) == ["cciss/c0d0", odd]
    table = collect(collector_of(kernel))
    assert table.rows.names == ("cciss/c0d0", "vol\\xff")
    assert all(key.encode("utf-8") for key in table.rows.keys)


def test_missing_roots_are_reported_with_their_path(tmp_path: Path, kernel: FakeKernel) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        BlockReader(str(tmp_path / "no"), str(kernel.sysfs)).read()
    assert caught.value.filename == str(tmp_path / "no/diskstats")
    with pytest.raises(FileNotFoundError) as caught:
        BlockReader(str(kernel.procfs), str(tmp_path / "no")).read()
    assert caught.value.filename == str(tmp_path / "no/block")


def test_rows_stay_the_same_object_until_somebody_comes_or_goes(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda", diskseq=3))
    collector = collector_of(kernel)
    rows = collect(collector).rows
    assert rows.keys == ("sda:8:0#3",)
    kernel.uevent()
    assert collect(collector).rows is rows
    kernel.add(FakeDisk("sdb", minor=16, diskseq=4))
    assert collect(collector).rows.keys == ("sda:8:0#3", "sdb:8:16#4")


def test_a_name_that_returns_as_another_device_has_another_row(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda", diskseq=3, counters=busy_counters(1)))
    collector = collector_of(kernel)
    before = collect(collector).rows
    kernel.remove("sda")
    kernel.add(FakeDisk("sda", diskseq=9, counters=busy_counters(2)))
    after = collect(collector).rows
    assert (before.names, after.names) == (("sda",), ("sda",))
    assert (before.keys, after.keys) == (("sda:8:0#3",), ("sda:8:0#9",))


def test_without_diskseq_a_name_that_was_away_has_another_row(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda", diskseq=None))
    collector = collector_of(kernel)
    before = collect(collector).rows.keys
    kernel.remove("sda")
    assert collect(collector).rows.keys == ()
    kernel.add(FakeDisk("sda", diskseq=None))
    after = collect(collector).rows.keys
    assert len(after) == 1
    assert before != after


def test_devices_without_size_and_io_are_left_out_until_they_have_either(kernel: FakeKernel) -> None:
    kernel.add(*(FakeDisk(f"loop{n}", 7, n, sectors=0) for n in range(3)), FakeDisk("sda"))
    collector = collector_of(kernel)
    assert collect(collector).rows.names == ("sda",)
    kernel.count("loop1", busy_counters(1))
    kernel.write_diskstats()
    table = collect(collector)
    assert table.rows.names == ("loop1", "sda")
    assert table.column("reads").tolist() == [busy_counters(1)[0], 0]
    kernel.set("loop2", "size", "2048\n")
    kernel.uevent()
    assert collect(collector).rows.names == ("loop1", "loop2", "sda")


def test_uevents_of_others_do_not_make_every_tick_dear(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.add(FakeDisk("sda", diskseq=3))
    monkeypatch.setattr(uevents, "CHEAP_S", 0.0)
    collector = BlockCollector(str(kernel.procfs), str(kernel.sysfs), identity_share=1e-9)
    assert collect(collector).rows.keys == ("sda:8:0#3",)
    kernel.set("sda", "diskseq", "4\n")
    kernel.uevent()
    assert collect(collector).rows.keys == ("sda:8:0#3",)
    collector.rescan()
    assert collect(collector).rows.keys == ("sda:8:0#4",)
