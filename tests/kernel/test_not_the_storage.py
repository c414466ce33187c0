"""What is not the storage, on this kernel: paging as vmstat counts it, a quota that is named and its control not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collectors.subject import Interval
from collectors.tables.host.reader import HostCollector
from collectors.tables.host.subject import host_tables
from engine.replacing import replace
from tests import needs
from tests.kernel.conftest import Storage
from tests.unit import raw_samples as raw

pytestmark = [needs.root, needs.loop]

ROOT = Path(__file__).parents[2]
GROUPS = Path("/sys/fs/cgroup")
MIB = 1 << 20
HOG = """
import mmap, sys
memory = mmap.mmap(-1, 40 << 20)
for turn in range(3):
    for page in range(0, len(memory), mmap.PAGESIZE):
        memory[page:page + 8] = (page * 31 + turn).to_bytes(8, "little")
"""


def group_file(controller: str, name: str) -> str:
    """Say why a limit of cgroup v1 cannot be set here; empty if it can."""
    return "" if (GROUPS / controller / name).exists() else f"no {name} in {GROUPS / controller} (cgroup v1)"


@contextmanager
def limited(controller: str, **limits: int) -> Iterator[Path]:
    """A control group with these limits, removed at the end."""
    group = GROUPS / controller / f"lunscope-test-{os.getpid()}"
    group.mkdir()
    try:
        for name, limit in limits.items():
            (group / f"{controller}.{name}").write_text(str(limit))
        yield group
    finally:
        group.rmdir()


def run_in(group: Path, *command: str) -> str:
    """Run a command as a member of the group from its first instruction on."""
    script = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    words = ["sh", "-c", script, "sh", *command]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def vmstat() -> dict[str, int]:
    lines = subprocess.run(["vmstat", "-s"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {words: int(count) for count, words in (line.split(maxsplit=1) for line in lines if "swapped" in line)}


@needs.swap
@pytest.mark.skipif(bool(group_file("memory", "memory.limit_in_bytes")), reason="needs cgroup v1 memory")
def test_what_a_hog_pages_is_what_vmstat_says(storage: Storage) -> None:
    storage.swapon(storage.loop(size_bytes=64 * MIB))
    host, seen = HostCollector(), vmstat()
    first = host.read().tables["host"]
    with limited("memory", limit_in_bytes=24 * MIB) as group:
        run_in(group, sys.executable, "-c", HOG)
    last, now = host.read().tables["host"], vmstat()
    begin, end = (replace(raw.sample(at), tables={"host": table}) for at, table in enumerate((first, last)))
    table = host_tables(Interval(begin, end, 1.0), last)["host"]
    pages = {way: now[f"pages swapped {way}"] - seen[f"pages swapped {way}"] for way in ("in", "out")}
    assert min(pages.values()) > 1000
    for way, count in pages.items():
        assert table.value(f"swap_{way}_bytes_per_s", 0) == pytest.approx(count * os.sysconf("SC_PAGESIZE"), rel=0.01)


@pytest.mark.skipif(bool(group_file("cpu", "cpu.cfs_quota_us")), reason="needs cgroup v1 cpu with quotas")
@pytest.mark.parametrize(("quota_us", "is_said"), [(20_000, True), (-1, False)])
def test_a_quota_is_named_and_its_control_is_not(storage: Storage, quota_us: int, *, is_said: bool) -> None:
    # Reads of memory take all the time that they get, however busy the host is otherwise.
    load = ("-t", storage.loop(), "--mode", "buffered", "--threads", "2", "--qd", "8", "--runtime", "2s")
    words = ("run", "--headless", "--json", *load, "--tier", "kernel")
    with limited("cpu", cfs_period_us=100_000, cfs_quota_us=quota_us) as group:
        found = json.loads(run_in(group, sys.executable, "-m", "tui", *words))["findings"]
    kinds = {each["kind"] for each in found}
    assert ("cpu_limit" in kinds) == is_said
    if is_said:
        (limit,) = (each for each in found if each["kind"] == "cpu_limit")
        assert limit["about"] == [f"/{group.name}"]
        assert "may use 0.2 processors" in limit["text"]
        assert "host_cpu" not in kinds
