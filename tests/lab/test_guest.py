"""Real kernels with real multipath under load: books that balance, a sick path, a path that goes and comes back."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

FIO = "fio --name=x --filename={} --rw=randread --direct=1 --iodepth=16 --ioengine=libaio --runtime=60 --time_based"


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("kernel", ["stable", "backports"])
def test_nvme_paths_add_up_to_the_head_whether_the_kernel_counts_on_it_or_not(kernel: str) -> None:
    script = (
        "for policy in /sys/class/nvme-subsystem/*/iopolicy; do echo round-robin > $policy; done;"
        f"({FIO.format('/dev/nvme1n1')} >/dev/null 2>&1 &) ; sleep 3; python3 -m tui report --json --tier kernel 4 2"
    )
    found = documents(run_in_guest("nvme-mp", script, "--kernel", kernel))
    assert len(found) == 2
    for document in found:
        head = next(disk for disk in document["disks"] if disk["name"] == "nvme1n1")
        paths = [path for path in document["paths"] if path["lun"] == "nvme1n1"]
        ports = {port["name"]: port["iops"] for port in document["hbas"]}
        assert len(paths) > 1
        # The head and its paths are read one after the other while the load goes on.
        assert sum(path["iops"] for path in paths) == pytest.approx(head["iops"], rel=0.02)
        for path in paths:
            assert ports[path["port"]] == pytest.approx(path["iops"], rel=0.02)


def test_a_path_of_a_map_goes_offline_under_load_and_comes_back() -> None:
    script = (
        f"({FIO.format('/dev/mapper/mpatha')} >/dev/null 2>&1 &) ; sleep 2;"
        "path=$(ls /sys/block/$(basename $(readlink /dev/mapper/mpatha))/slaves | head -1);"
        "state=/sys/block/$path/device/state;"
        "(sleep 16; echo offline > $state; sleep 8; echo running > $state) & "
        "python3 -m tui report -d -L --tier kernel 2 20"
    )
    text = run_in_guest("scsi-mp", script)
    lost = re.search(r"path (sd[a-z]+) of mpatha lost: running, active -> offline", text)
    assert lost, text
    assert f"path {lost[1]} of mpatha back: " in text, text
    assert "its peers'" in text, "the throttled path is not named"
