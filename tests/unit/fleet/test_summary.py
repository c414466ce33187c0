"""What all disks of a host did together, while disks come with a past and go with theirs."""

from __future__ import annotations

from collectors.fleet.host_summary import Summary, with_sums, without_sums
from collectors.model import Sample, Topology
from collectors.tables.block.schema import DISK
from collectors.tables.fleet.schema import FLEET
from tests.unit.raw_samples import disk_row, raw_table, rows, sample


def _sample(at_s: float, **reads: int) -> Sample:
    values = [disk_row(reads=count, read_sectors=8 * count, read_ms=count // 2) for count in reads.values()]
    return sample(at_s, disks=raw_table(DISK, rows(*reads), values), topology=Topology())


def _sums(reduced: Sample) -> tuple[int, int, int]:
    (row,) = reduced.tables[FLEET.name].values
    return int(row[FLEET.index("disks")]), int(row[FLEET.index("reads")]), int(row[FLEET.index("read_bytes")])


def test_a_disk_with_a_past_adds_nothing_that_it_did_before() -> None:
    summary = Summary("host")
    taken = [
        _sample(0, sda=1000),
        _sample(1, sda=1100),
        _sample(2, sda=1200, loop0=90_000_000),
        _sample(3, sda=1300, loop0=90_000_007),
        _sample(4, sda=1400),
        _sample(5, sda=1500, sdb=5),
        _sample(6, sda=20, sdb=25),
    ]
    found = [_sums(summary.of(each, 0, 0)) for each in taken]
    assert [disks for disks, _, _ in found] == [1, 1, 2, 2, 1, 2, 2]
    assert [reads for _, reads, _ in found] == [0, 100, 200, 307, 407, 507, 527]
    assert all(read_bytes == 4096 * reads for _, reads, read_bytes in found)


def test_a_host_that_is_shown_alone_goes_on_with_the_sums_of_its_agent() -> None:
    agent, controller = Summary("host"), Summary("host")
    first, second = _sample(0, sda=1000), _sample(1, sda=1100)
    agent.of(first, 0, 0)
    full = with_sums(second, agent.of(second, 7, 9))
    assert _sums(controller.of_full(full)) == (1, 100, 409_600)
    assert FLEET.name not in without_sums(full).tables
    assert FLEET.name not in controller.of_full(second).tables, "an earlier agent has none: nothing, not a jump"
