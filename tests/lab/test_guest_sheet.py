"""Sheets against what multipath-tools say in a guest with real multipath, and the history of a path that failed."""

from __future__ import annotations

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

_SCRIPT = r"""
show() { echo "= $1"; }
for try in $(seq 60); do multipathd show maps raw format '%d' | grep -q dm- && break; sleep 1; done
map=$(multipathd show maps raw format '%d' | grep -o 'dm-[0-9]*' | head -1)
path=$(ls /sys/block/$map/slaves | head -1)
python3 -m tui record -o /tmp/r.luns >&2 & recorder=$!
until [ -s /tmp/r.luns ]; do sleep 1; done
sleep 8; echo offline > /sys/block/$path/device/state; sleep 8; echo running > /sys/block/$path/device/state; sleep 8
kill -TERM $recorder; wait $recorder
show map; echo $map $path
show multipath; multipath -ll /dev/$map
show maps; multipathd show maps raw format '%d|%F|%Q|%0|%1|%4' | grep "^$map *|"
show paths; multipathd show paths raw format '%d|%p|%c' | grep "^$path *|"
show timeout; cat /sys/block/$path/device/timeout /sys/block/$path/device/eh_timeout
show scan; python3 -m tui scan --json
show lun; python3 -m tui scan --lun $map
show past; python3 -m tui scan --path $path --from /tmp/r.luns
show end
"""


@pytest.mark.parametrize("topology", ["scsi-mp", "lio-alua"])
def test_a_sheet_agrees_with_multipath_tools(topology: str) -> None:
    answer = run_in_guest(topology, _SCRIPT, "--kernel", "stable")
    parts = {name: text.strip() for name, text in re.findall(r"^= (\w+)\n(.*?)(?=^= )", answer, re.M | re.S)}
    name, path = parts["map"].split()
    document = json.loads(parts["scan"])
    (lun,) = (one for one in document["luns"] if one["name"] == name)
    listed = parts["multipath"]
    features, handler = (re.search(rf"{word}='\d+ ?(.*?)'", listed) for word in ("features", "hwhandler"))
    assert features
    assert handler
    assert lun["features"] == (features[1] or "none")
    assert lun["hw_handler"] == (handler[1] or "none")
    _, failback, queueing, *_ = (part.strip() for part in parts["maps"].split("|"))
    assert (lun["failback"], lun["no_path_retry"]) == (failback, queueing)
    (known,) = (one for one in document["paths"] if one["name"] == path)
    _, priority, checker = (part.strip() for part in parts["paths"].split("|"))
    assert (str(known["priority"]), known["checker"]) == (priority, checker)
    assert [known["timeout_ms"] // 1000, known["eh_timeout_s"]] == [int(word) for word in parts["timeout"].split()]
    states = set(re.findall(r"status=(\w+)", listed))
    of_lun = [one for one in document["paths"] if one["lun"] == lun["key"]]
    assert {one["group_state"] for one in of_lun} == states
    assert lun["without_paths"] in re.sub(r"\s+", " ", parts["lun"])
    assert re.search(r"failures +1 ", parts["past"]), parts["past"]
    assert re.search(r"time down +([4-9]|\d\d)\.\d s", parts["past"]), parts["past"]
