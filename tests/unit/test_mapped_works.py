"""Work on maps of the device mapper, from status and table as dmsetup prints them."""

from __future__ import annotations

import pytest

from collectors.kernel.mapped_targets import MappedTarget
from collectors.model import Rows, Table
from collectors.tables.background.mapped_works import KINDS, mapped_work
from collectors.tables.background.reader import BackgroundCollector
from collectors.tables.background.schema import BACKGROUND, ArrayWork
from tests.unit import raw_samples as raw

SECTOR = 512
TABLES = {
    "raid": "raid1 3 0 region_size 1024 2 252:0 252:1 252:2 252:3",
    "mirror": "core 2 1024 nosync 2 252:1 0 252:2 0",
    "snapshot": "253:3 253:4 P 8",
    "snapshot-merge": "253:3 253:4 P 8",
    "thin-pool": "252:2 252:3 128 0 0 ",
}


def target(kind: str, table: str | None = None) -> MappedTarget:
    return MappedTarget("dm-4:252:4", "dm-4", (252, 4), kind, TABLES[kind] if table is None else table)


def done(work: ArrayWork | None) -> tuple[str, int | None, int | None, int | None, int | None]:
    assert work is not None
    return work.action, work.done_bytes, work.total_bytes, work.members, work.missing_members


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("raid", "raid1 2 Aa 1024/409600 recover 0 0 -", ("recovery", 1024 * SECTOR, 409600 * SECTOR, 2, 0)),
        ("raid", "raid5_ls 3 AAD 7/8 check 0 0 -", ("check", 7 * SECTOR, 8 * SECTOR, 3, 1)),
        # Its progress is that of the array, not that of a member.
        ("raid", "raid10 4 AAAA 7/8 resync 0 0 -", ("resync", 7 * SECTOR, 8 * SECTOR, None, 0)),
        ("mirror", "2 252:1 252:2 300/400 1 AD 1 core", ("recovery", 300 << 19, 400 << 19, 2, 1)),
        ("snapshot", "1024/204800 16", ("fill", 1024 * SECTOR, 204800 * SECTOR, None, None)),
        ("snapshot-merge", "1040/2048 16", ("merge", 1024 * SECTOR, 2048 * SECTOR, None, None)),
        # lvs of the same moment said 23.78 %.
        (
            "thin-pool",
            "1 116/1024 761/3200 - rw discard_passdown queue_if_no_space - 256 ",
            ("fill", 761 << 16, 3200 << 16, None, None),
        ),
    ],
)
def test_progress_as_the_kernel_says(kind: str, status: str, expected: tuple[object, ...]) -> None:
    assert done(mapped_work(target(kind), status)) == expected


def test_the_region_of_a_mirror_with_a_log_on_a_disk() -> None:
    work = mapped_work(target("mirror", "disk 2 252:9 2048 2 252:1 0 252:2 0"), "2 252:1 252:2 3/4 1 AA 3 disk 252:9 A")
    assert done(work)[:3] == ("recovery", 3 << 20, 4 << 20)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("raid", "raid1 2 AA 409600/409600 idle 0 0 -"),
        ("raid", "raid1 2 AA 409600/409600 frozen 0 0 -"),
        ("mirror", "2 252:1 252:2 400/400 1 AA 1 core"),
        ("snapshot", "Invalid"),
        ("snapshot-merge", "Merge failed"),
        ("thin-pool", "Fail"),
        *((kind, text) for kind in KINDS for text in ("", "1 2", "x/y z", "é " * 9, "9" * 40)),
    ],
)
def test_nothing_under_way_and_unknown_formats_are_no_work(kind: str, status: str) -> None:
    assert mapped_work(target(kind), status) is None


class Maps:
    """Maps whose status a test sets."""

    def __init__(self) -> None:
        self.now: list[tuple[MappedTarget, str]] = []

    def states(self, _disks: Rows) -> list[tuple[MappedTarget, str]]:
        return self.now

    def close(self) -> None:
        pass


def test_work_begins_and_ends_and_a_store_does_neither(tmp_path: object) -> None:
    maps = Maps()
    disks = raw.disks(Rows(("dm-4:252:4",), ("dm-4",)), {})
    reader = BackgroundCollector(str(tmp_path), lambda: disks, maps)  # type: ignore[arg-type]
    said, rows = [], []
    check, pool = (target("raid"), "raid1 2 AA 8/64 check 0 0 -"), (target("thin-pool"), "1 1/9 3/9 -")
    for maps.now in ([], [pool, check], [pool], []):
        reading = reader.read()
        said += [event.text for event in reading.events]
        table: Table | None = reading.tables.get(BACKGROUND.name)
        rows.append(() if table is None else table.rows.names)
    assert said == ["dm-4: check began", "dm-4: check ended after 0 s"]
    assert rows == [(), ("dm-4 fill", "dm-4 check"), ("dm-4 fill",), ()]
