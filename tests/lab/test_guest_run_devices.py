"""What a run says of the devices under its target, on real multipath: the device, its paths and their ports agree."""

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

RUN = "python3 -m tui run --json --runtime 4s --qd 8 --interval 1 --tier {} -t {}"
NVME = """for policy in /sys/class/nvme-subsystem/*/iopolicy; do echo round-robin > $policy; done
head=$(ls /sys/block | sed -n 's/^\\(nvme[0-9]*\\)c[0-9]*n1$/\\1n1/p' | sort | uniq -c | sort -rn |
    awk 'NR == 1 { print $2 }')
"""
MOUNTED = """modprobe loop
mkfs.ext4 -q -O ^has_journal /dev/mapper/mpatha && mkdir -p /tmp/m && mount /dev/mapper/mpatha /tmp/m
dd if=/dev/urandom of=/tmp/m/data bs=1M count=8 status=none; sync
loop=$(losetup -f --show --direct-io=on /tmp/m/data)
"""


def run_of(topology: str, script: str, *options: str) -> dict[str, Any]:
    lines = run_in_guest(topology, script, *options).splitlines()
    document: dict[str, Any] = json.loads(next(line for line in lines if line.startswith("{")))
    return document


def ios_of(rows: list[dict[str, Any]]) -> float:
    return float(sum(row["iops"] for row in rows))


def check(document: dict[str, Any], tier: str) -> None:
    """The paths add up to the device, the ports to the paths, and all of them to the load."""
    devices = document["devices"]
    lun, paths, ports = devices["disks"][-1], devices["paths"], devices["hbas"]
    ios = document["total"]["ios"] + sum(epoch["transient_ios"] for epoch in document["epochs"])
    assert len(paths) > 1
    assert {path["lun"] for path in paths} == {lun["label"] or lun["name"]}
    assert {path["port"] for path in paths} == {port["name"] for port in ports}
    assert lun["iops"] * devices["elapsed_s"] == pytest.approx(ios, rel=0.1)
    assert ios_of(paths) == pytest.approx(lun["iops"], rel=0.05)
    assert ios_of(ports) == pytest.approx(ios_of(paths), rel=0.02)
    assert devices["tier"] == tier
    assert all(row["targets"] == document["targets"] for row in (*devices["disks"], *paths, *ports))
    busiest = max(paths, key=lambda path: path["iops"])
    if tier == "exact":
        assert busiest["tiers"]["service_ms"] == "exact"
        assert busiest["service_ms"] > 0
        assert busiest["queue_ms"] is not None


@pytest.mark.parametrize("tier", ["exact", "sampled"])
def test_a_map_has_its_paths_and_their_ports(tier: str) -> None:
    document = run_of("scsi-mp", RUN.format(tier, "/dev/mapper/mpatha"))
    check(document, tier)
    assert [disk["label"] for disk in document["devices"]["disks"]] == ["mpatha"]


def test_a_loop_device_over_a_file_on_a_map_leads_down_to_the_ports() -> None:
    document = run_of("scsi-mp", MOUNTED + RUN.format("exact", "$loop"))
    disks = document["devices"]["disks"]
    assert [disk["name"].rstrip("0123456789") for disk in disks] == ["loop", "dm-"]
    check(document, "exact")


@pytest.mark.parametrize("kernel", ["stable", "backports"])
def test_an_nvme_head_has_its_paths_and_their_controllers(kernel: str) -> None:
    check(run_of("nvme-mp", NVME + RUN.format("exact", "/dev/$head"), "--kernel", kernel), "exact")
