"""The transports of a real NFS client, taken offline and brought online while it reads."""

from __future__ import annotations

import sys

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

_TUNE = r"""
export LUNSCOPE_STATE_DIR=/tmp/state; tune() { python3 -m tui tune "$@" 2>&1; }; show() { echo "= $1"; }
offline() { cat /sys/kernel/sunrpc/xprt-switches/*/xprt-*/xprt_state | grep -c OFFLINE; }
sends() { awk '/mounted on/ { on = $5 } /xprt:/ && on == "/mnt/v4" { print $9 }' /proc/self/mountstats | paste -sd' '; }
read_all() { dd if=/mnt/v4/data of=/dev/null bs=4k count=200 iflag=direct status=none && echo read; }
dd if=/dev/urandom of=/mnt/v4/data bs=64k count=20 oflag=direct status=none
show list; tune get nfs.transports nfs:/mnt/v4
show two; tune set nfs.transports=2 --on nfs:/mnt/v4 --keep > /dev/null; offline; sends; read_all; sends
show undo; tune undo > /dev/null; offline; sends; read_all; sends
show command; tune set nfs.transports=1 --on nfs:/mnt/v4 -- grep -l OFFLINE -r /sys/kernel/sunrpc --include=xprt_state
offline
show many; tune set nfs.transports=5 --on nfs:/mnt/v4 --keep; echo $?
show killed; python3 -m tui tune set nfs.transports=1 --on nfs:/mnt/v4 -- sleep 600 > /dev/null 2>&1 & holder=$!
for _ in $(seq 600); do [ "$(offline)" = 3 ] && break; sleep 0.1; done
offline; kill -9 $holder
for _ in $(seq 600); do [ "$(offline)" = 0 ] && break; sleep 0.1; done
offline
show end; true
"""


def _sections(text: str) -> dict[str, list[str]]:
    parts = (part.splitlines() for part in text.split("\n= ")[1:])
    return {name: lines for name, *lines in parts}


def _calls(before: str, after: str) -> list[int]:
    return [int(b) - int(a) for a, b in zip(before.split(), after.split(), strict=True)]


@pytest.mark.parametrize("options", [(), ("--kernel", "backports")])
def test_transports_are_a_live_value(options: tuple[str, ...]) -> None:
    found = _sections("\n" + run_in_guest("nfs", _TUNE, *options))
    assert "/mnt/v4 (switch-1) 4     4       1..4" in found["list"][-1]
    offline, before, _, after = found["two"]
    assert offline == "2"
    calls = _calls(before, after)
    assert sum(call > 20 for call in calls) == 2
    assert sum(calls) >= 200
    offline, before, _, after = found["undo"]
    assert offline == "0"
    assert all(call > 20 for call in _calls(before, after))
    assert found["command"][-1] == "0"
    assert sum("xprt_state" in line for line in found["command"]) == 3
    assert "1..4" in found["many"][0]
    assert found["many"][-1] == "2"
    assert found["killed"] == ["3", "0"]
