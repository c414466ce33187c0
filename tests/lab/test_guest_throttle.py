"""Waits for io.max on stock kernels, exact against a reader that times itself."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

KERNELS = ("stable", "backports")
_GROUP = "/sys/fs/cgroup/lab/capped"
_SCRIPT = f"""
python3 -m tests.lab.measure_throttle
echo "$(cat /sys/block/nullb0/dev) riops=300" > {_GROUP}/io.max
(echo $BASHPID > {_GROUP}/cgroup.procs; exec dd if=/dev/nullb0 of=/dev/null bs=4k iflag=direct status=none) & load=$!
python3 -m tui record -o /tmp/a.luns --duration 10s >&2
mkdir -m 777 /tmp/of_nobody; export LUNSCOPE_PROBE=/tmp/probe.sock
python3 -m tui probe --socket $LUNSCOPE_PROBE --user nobody >&2 & probe=$!
until [ -S $LUNSCOPE_PROBE ]; do sleep 0.2; done
as_nobody() {{ HOME=/tmp/of_nobody setpriv --reuid nobody --regid nogroup --clear-groups python3 -m tui "$@"; }}
as_nobody record -o /tmp/of_nobody/b.luns --duration 15s >&2
kill $load $probe
python3 -m tui report -C --json --from /tmp/a.luns
echo nobody
python3 -m tui report -C --json --from /tmp/of_nobody/b.luns
"""


@functools.cache
def printed(kernel: str) -> str:
    return run_in_guest("cgroup", _SCRIPT, "--kernel", kernel)


def documents(kernel: str, part: int = 0) -> tuple[dict[str, Any], ...]:
    """Documents before the line `nobody`, or after it."""
    lines = printed(kernel).split("\nnobody\n")[part].splitlines()
    return tuple(json.loads(line) for line in lines if line.startswith("{"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_wait_is_within_two_percent_of_what_the_reader_saw(kernel: str) -> None:
    measured = documents(kernel)[0]
    ((group, major, minor, ios, wait_ns),) = measured["rows"]
    assert (group, f"{major}:{minor}") == (measured["group"], measured["number"])
    assert ios > 0
    assert wait_ns == pytest.approx(measured["capped_ns"] - measured["free_ns"], rel=0.02)
    assert sum(count for _, _, count in measured["cells"]) == ios
    assert measured["cells_again"] == []
    assert measured["losses"] == [0, 0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_recording_has_the_wait_of_the_group_and_of_those_above(kernel: str) -> None:
    intervals = [one["cgroups"] for one in documents(kernel) if one.get("schema", "").startswith("lunscope.report")]
    waits = {
        name: [row["throttle_wait_ms"] for rows in intervals for row in rows if row["name"] == name]
        for name in ("/ nullb0", "/lab nullb0", "/lab/capped nullb0", "/lab/free nullb0")
    }
    capped = [wait for wait in waits["/lab/capped nullb0"] if wait is not None]
    assert capped
    # Slices of 100 ms: what exceeds one waits for the next.
    assert all(10 < wait < 200 for wait in capped)
    assert waits["/lab nullb0"] == waits["/ nullb0"] == waits["/lab/capped nullb0"]
    assert all(wait is None for wait in waits["/lab/free nullb0"])


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_user_without_rights_has_the_waits_through_the_probe_helper(kernel: str) -> None:
    rows = [row for one in documents(kernel, 1) for row in one["cgroups"] if row["name"] == "/lab/capped nullb0"]
    waits = [row["throttle_wait_ms"] for row in rows if row["throttle_wait_ms"] is not None]
    assert waits
    assert all(10 < wait < 200 for wait in waits)
