"""The preset isolation with io.max on a stock kernel: caps hold, and nothing is left, after kill -9 either."""

from __future__ import annotations

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

_CAP = 40
_SWEEP = "python3 -m tui sweep --preset isolation --json --target /dev/nullb0 --rate 20 --vary qd=4 --runtime 3s"
_SCRIPT = f"""
echo +io > /sys/fs/cgroup/cgroup.subtree_control
{_SWEEP} --cap riops={_CAP} --within 100
left() {{ ls -d /sys/fs/cgroup/lunscope-isolation-* 2>/dev/null; }}
echo "left: $(left)"
{_SWEEP} --cap riops={_CAP} > /dev/null & sweep=$!
until grep -qs riops={_CAP} /sys/fs/cgroup/lunscope-isolation-*/io.max; do sleep 0.1; done
kill -9 $sweep
for try in $(seq 300); do test -z "$(left)" && break; sleep 0.1; done
echo "left: $(left)"
pgrep -f 'tui run' > /dev/null || echo "no load is left"
"""


def test_caps_of_cgroup_v2_hold_and_nothing_is_left() -> None:
    lines = run_in_guest("cgroup", _SCRIPT).splitlines()
    document: dict[str, Any] = next(json.loads(line) for line in lines if line.startswith("{"))
    alone, free, capped, again = document["isolation"]["points"]
    assert free["aggressor_iops"] > capped["aggressor_iops"] > 0
    assert capped["aggressor_iops"] < 2 * _CAP
    assert all(len(point["seconds"]) == 3 for point in (alone, free, capped, again))
    assert [line.strip() for line in lines if line.startswith("left:")] == ["left:", "left:"]
    assert "no load is left" in lines
