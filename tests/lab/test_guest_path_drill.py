"""Paths of real multipath storage that are taken offline by a drill: under a checked load, the last one, and killed."""

from __future__ import annotations

import functools
import json
import re
import sys

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

_BEGIN = r"""
export LUNSCOPE_STATE_DIR=/tmp/state; show() { echo "= $1"; }
until_true() { for _ in $(seq 600); do eval "$1" && return; sleep 0.1; done; echo "never: $1"; }
map=/dev/mapper/$(ls /dev/mapper | grep -v control | head -1)
node=$(basename $(readlink -f $map)); paths=$(ls /sys/block/$node/slaves)
first=$(echo $paths | cut -d' ' -f1)
states() { for path in $paths; do cat /sys/block/$path/device/state; done | sort | uniq -c | xargs; }
used() { dmsetup status $map | grep -o '[0-9]:[0-9]* A ' | wc -l; }
"""

_DRILL = (
    _BEGIN
    + r"""
show list; python3 -m tui path list $paths
show drill
python3 -m tui path offline $first --for 6s --around 3s --json -- python3 -m tui run --headless --json \
    --target $map --allow-write $map --destroy-data --rw randrw --verify --size 4m --qd 8 --runtime 60s --tier kernel \
    > /tmp/drill 2> /tmp/run; echo $?; tail -3 /tmp/run >&2
cat /tmp/drill
show errors; grep '^{"schema' /tmp/run | python3 -c 'import json, sys; print(json.load(sys.stdin)["errors"])'
show after; states; until_true '[ $(used) = 4 ]'; used
show port; port=$(realpath /sys/block/$first | grep -o 'host[0-9]*' | head -1)
python3 -m tui path offline port:$port --for 600s --around 0s > /tmp/text 2>&1 & drill=$!
until_true '[ "$(cat /sys/block/$first/device/state)" = offline ] || [ $(used) = 3 ]'
python3 -m tui path offline $(echo $paths | cut -d' ' -f2) --for 3s 2>&1; echo $?
show term; kill -TERM $drill; wait $drill; echo $?; states; until_true '[ $(used) = 4 ]'; used
show all; python3 -m tui path offline lun:$node --for 3s 2>&1; echo $?
"""
)

_LAST = (
    _BEGIN
    + r"""
show refuse; python3 -m tests.lab.drill_paths refuse 2>&1
show kill; python3 -m tests.lab.drill_paths kill 150 2>&1
show end; states; until_true '[ $(used) = 4 ]'; used
"""
)


@functools.cache
def answers(topology: str, script: str, *options: str) -> dict[str, list[str]]:
    """What was printed after each `= title`."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in run_in_guest(topology, script, *options).splitlines():
        if line.startswith("= "):
            title = line[2:]
        else:
            found.setdefault(title, []).append(line)
    return found


CASES = [
    ("scsi-mp", "multipathd", "scsi"),
    ("scsi-mp", "dmsetup", "map"),
]


@pytest.mark.parametrize(("topology", "manager", "by"), CASES)
def test_a_path_goes_offline_under_a_checked_load_and_comes_back(topology: str, manager: str, by: str) -> None:
    found = answers(topology, _DRILL, "-e", f"MPATH={manager}")
    assert len([line for line in found["list"] if line.endswith("may be taken offline")]) == 4
    status, *text = found["drill"]
    assert status == "0"
    drill = json.loads("\n".join(text))
    (taken,), (lun,) = drill["offline"], drill["luns"]
    assert taken["by"] == by
    assert (lun["paths"], lun["paths_left"]) == (4, 3)
    assert drill["command_status"] == 0
    assert drill["ended_early"] is None
    for phase in ("before", "offline", "after"):
        assert lun[phase]["ios"] > 0
        assert lun[phase]["pause_ms"] > 0
    assert lun["offline"]["duration_s"] == pytest.approx(6, abs=2)
    assert found["errors"] == ["[]"]
    assert found["after"] == ["4 running", "4"]


@pytest.mark.parametrize(("topology", "manager", "by"), CASES)
def test_one_drill_at_a_time_and_signals_bring_paths_back(topology: str, manager: str, by: str) -> None:
    del by
    found = answers(topology, _DRILL, "-e", f"MPATH={manager}")
    refusal, code = found["port"]
    assert "another drill takes paths offline now" in refusal
    assert code == "2"
    assert found["term"] == ["143", "4 running", "4"]
    assert "are all usable paths of LUN" in found["all"][0]
    assert found["all"][-1] == "2"


@pytest.mark.parametrize(("topology", "manager", "by"), CASES)
def test_last_paths_are_refused_and_killed_drills_leave_nothing(topology: str, manager: str, by: str) -> None:
    del by
    found = answers(topology, _LAST, "-e", f"MPATH={manager}")
    assert found["refuse"][-1] == "refused: 100 of 100"
    killed, offline, back = map(int, re.findall(r"\d+", found["kill"][-1]))
    assert killed == back >= 10
    assert offline > 0
    assert found["end"] == ["4 running", "4"]
