"""Run in a guest with cgroup v2: known I/O in two groups, and what was read of them, as one JSON document a line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from collectors.model import MISSING, Table
from collectors.tables.block.counters import BlockCollector
from collectors.tables.cgroup.reader import CgroupCollector
from collectors.tables.cgroup.tree import find_hierarchy

ROOT = Path("/sys/fs/cgroup")
READS, WRITES, BYTES = 300, 40, 4096
PATIENCE_S = 60.0
Rows = dict[str, dict[str, int | None]]


def dd(group: str, *arguments: str) -> None:
    """Run dd in a group."""
    join = f'echo $$ > {ROOT}/{group}/cgroup.procs && exec dd bs={BYTES} status=none "$@"'
    subprocess.run(["sh", "-c", join, "sh", *arguments], check=True)


def rows_of(table: Table) -> Rows:
    """Rows by name, None where missing."""
    ids = [column.id for column in table.schema.columns]
    values = [[None if value == MISSING else int(value) for value in row] for row in table.values]
    return {name: dict(zip(ids, row, strict=True)) for name, row in zip(table.rows.names, values, strict=True)}


def wait_for(read: Callable[[], Rows], wanted: Callable[[Rows], bool]) -> Rows:
    """Read until something is so, or patience ends."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not wanted(rows := read()) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return rows


def tell(what: str, rows: Rows) -> None:
    """Print rows for the test that waits for them."""
    sys.stdout.write(json.dumps({"what": what, "rows": rows}) + "\n")
    sys.stdout.flush()


def drive(group: str) -> None:
    """Read and write a known number of blocks."""
    dd(group, "if=/dev/nullb0", "of=/dev/null", "iflag=direct", f"count={READS}")
    dd(group, "if=/dev/zero", "of=/dev/nullb0", "oflag=direct", f"count={WRITES}")


def main() -> None:
    """Drive both groups, have io.cost enabled, and make and remove a third group."""
    block = BlockCollector()
    hierarchy = find_hierarchy("/sys")
    assert hierarchy is not None

    def disks() -> Table | None:
        block.read()
        return block.table

    collector = CgroupCollector(hierarchy, disks)

    def read() -> Rows:
        return rows_of(collector.read().tables["cgroup"])

    drive("lab/free")
    drive("lab/capped")
    tell("before", read())
    drive("lab/free")
    drive("lab/capped")
    tell("after", read())
    number = Path("/sys/block/nullb0/dev").read_text().strip()
    (ROOT / "io.cost.qos").write_text(f"{number} enable=1")
    Path("/sys/module/blk_cgroup/parameters/blkcg_debug_stats").write_text("1")
    drive("lab/free")
    tell("cost", read())
    third = ROOT / "lab/third"
    third.mkdir()
    drive("lab/third")
    tell("came", wait_for(read, lambda rows: "/lab/third nullb0" in rows))
    third.rmdir()
    tell("went", wait_for(read, lambda rows: "/lab/third nullb0" not in rows))
    collector.close()


if __name__ == "__main__":
    main()
