"""What a run says of one path among several, on real multipath."""

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

NVME = """head=$(ls /sys/block | sed -n 's/^\\(nvme[0-9]*\\)c[0-9]*n1$/\\1n1/p' | sort | uniq -c | sort -rn |
    awk 'NR == 1 { print $2 }')
for policy in numa round-robin; do
    for file in /sys/class/nvme-subsystem/*/iopolicy; do echo $policy > $file; done
    python3 -m tui run --json --runtime 4s --qd 8 --interval 1 --tier kernel -t /dev/$head
done
"""


def test_one_path_of_several_is_named_and_paths_in_turn_are_not() -> None:
    lines = run_in_guest("nvme-mp", NVME).splitlines()
    documents: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
    numa, in_turn = ({each["kind"]: each for each in document["findings"]} for document in documents)
    paths = documents[0]["devices"]["paths"]
    busiest = max(paths, key=lambda path: path["iops"])
    assert numa["one_path"]["confidence"] == "certain"
    assert numa["one_path"]["about"] == [busiest["name"]]
    assert next(each for each in numa["one_path"]["evidence"] if each["name"] == "usable paths")["value"] == len(paths)
    assert "one_path" not in in_turn


SCSI = """export LUNSCOPE_STATE_DIR=/tmp/state
map=$(basename $(ls -d /sys/block/dm-*/slaves/sd* | head -1 | cut -d/ -f4))
path=$(ls /sys/block/$map/slaves | head -1)
echo 2 > /sys/block/$path/device/queue_depth
judge() { python3 -m tui run --json --runtime 3s --qd 4 --interval 1 --tier kernel -t /dev/$map; }
judge > /tmp/before; cat /tmp/before
python3 -m tui doctor | grep settings
change=$(python3 -c 'import json, sys
document = json.loads([line for line in open("/tmp/before") if line.startswith("{")][-1])
print(next(each["command"] for each in document["findings"] if each["kind"] == "unequal_limit"))')
echo "= $change"; python3 -m tui ${change#lunscope } || exit 1
judge
"""


def test_unequal_depths_of_the_paths_of_a_lun_and_the_command_that_ends_them() -> None:
    lines = run_in_guest("scsi-mp", SCSI).splitlines()
    before, after = [json.loads(line) for line in lines if line.startswith("{")]
    (finding,) = [each for each in before["findings"] if each["kind"] == "unequal_limit"]
    assert "1 x 2" in finding["text"]
    assert any("settings" in line and "queue_depth" in line for line in lines)
    assert next(line for line in lines if line.startswith("= ")) == f"= {finding['command']}"
    assert finding["command"].startswith("lunscope tune set queue_depth=")
    assert [each for each in after["findings"] if each["kind"] == "unequal_limit"] == []
