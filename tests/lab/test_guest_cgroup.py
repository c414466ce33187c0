"""Control groups of cgroup v2 on stock kernels: counted exactly, with limits, pressure and cost."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

import pytest

from tests import needs
from tests.lab.count_groups import BYTES, READS, WRITES
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

KERNELS = ("stable", "backports")
FREE, CAPPED, ABOVE, ROOT = "/lab/free nullb0", "/lab/capped nullb0", "/lab nullb0", "/ nullb0"
_GROUP = "/sys/fs/cgroup/lab/capped"
_SCRIPT = f"""
python3 -m tests.lab.count_groups
(echo $BASHPID > {_GROUP}/cgroup.procs; exec dd if=/dev/nullb0 of=/dev/null bs=4k iflag=direct status=none) & load=$!
python3 -m tui record -o /tmp/a.luns --duration 8s --tier kernel >&2
kill $load
python3 -m tui report -C --json --from /tmp/a.luns
echo +cpu > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/few
echo "30000 100000" > /sys/fs/cgroup/few/cpu.max
drive="python3 -m tui run --headless --json -t /dev/nullb0 --mode buffered --threads 2 --runtime 3s --tier kernel"
$drive
(echo $BASHPID > /sys/fs/cgroup/few/cgroup.procs; exec $drive)
"""


@functools.cache
def documents(kernel: str) -> tuple[dict[str, Any], ...]:
    lines = run_in_guest("cgroup", _SCRIPT, "--kernel", kernel).splitlines()
    return tuple(json.loads(line) for line in lines if line.startswith("{"))


def rows(kernel: str, what: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = next(one["rows"] for one in documents(kernel) if one.get("what") == what)
    return found


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_group_is_counted_exactly_and_so_is_the_one_above(kernel: str) -> None:
    before, after = rows(kernel, "before"), rows(kernel, "after")

    def grown(name: str) -> list[int]:
        return [after[name][key] - before[name][key] for key in ("reads", "read_bytes", "writes", "write_bytes")]

    once = [READS, READS * BYTES, WRITES, WRITES * BYTES]
    assert grown(FREE) == once
    assert grown(CAPPED) == once
    assert grown(ABOVE) == [2 * count for count in once]
    assert all(root >= both for root, both in zip(grown(ROOT), grown(ABOVE), strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_limits_and_pressure_are_those_of_the_group(kernel: str) -> None:
    before, after = rows(kernel, "before"), rows(kernel, "after")
    limits = ("read_limit_bytes", "write_limit_bytes", "read_limit_ios", "write_limit_ios")
    assert [after[CAPPED][name] for name in limits] == [None, 1 << 20, 500, None]
    assert [after[FREE][name] for name in limits] == [None] * 4
    waited = {name: after[name]["psi_some_us"] - before[name]["psi_some_us"] for name in (FREE, CAPPED)}
    # 300 reads at 500 a second are more than half a second of waiting.
    assert waited[CAPPED] > 300_000
    assert waited[CAPPED] > waited[FREE]


@pytest.mark.parametrize("kernel", KERNELS)
def test_cost_is_there_once_it_is_enabled(kernel: str) -> None:
    before, after = rows(kernel, "after"), rows(kernel, "cost")
    assert before[FREE]["cost_usage_us"] is None
    assert after[FREE]["cost_usage_us"] > 0
    assert all(after[FREE][name] is not None for name in ("cost_wait_us", "cost_indebt_us", "cost_indelay_us"))
    assert after[FREE]["cost_vrate_hundredths"] is None
    assert after[ROOT]["cost_vrate_hundredths"] > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_group_comes_and_goes(kernel: str) -> None:
    assert "/lab/third nullb0" in rows(kernel, "came")
    assert "/lab/third nullb0" not in rows(kernel, "went")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_recording_says_that_the_group_is_at_its_limit(kernel: str) -> None:
    intervals = [one["cgroups"] for one in documents(kernel) if "cgroups" in one]
    assert len(intervals) > 2
    capped = [row for rows in intervals for row in rows if row["name"] == CAPPED]
    assert max(row["limit_pct"] or 0 for row in capped) > 80
    assert max(row["psi_some_pct"] or 0 for row in capped) > 20
    assert all(row["read_limit_per_s"] == 500 for row in capped)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_quota_of_processor_time_is_named_where_there_is_one(kernel: str) -> None:
    free, limited = ({each["kind"]: each for each in one["findings"]} for one in documents(kernel) if "findings" in one)
    assert "cpu_limit" not in free
    assert "cpu_limit" in limited, limited
    assert limited["cpu_limit"]["about"] == ["/few"]
    assert "may use 0.3 processors (cpu.max; " in limited["cpu_limit"]["text"]
    assert "host_cpu" not in limited
