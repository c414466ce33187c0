"""The exact tier on stock kernels and the disks of the lab: known counts come out on every kind of device."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests import needs
from tests.lab.count_exactly import BYTES, READS, WRITES
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

Rows = dict[str, dict[str, int]]
KERNELS = ("stable", "backports")


def counted(topology: str, kernel: str, devices: str, *options: str) -> tuple[Rows, list[str]]:
    """Rows of the tracer, and the kernel names of the devices driven; `devices` is for the shell."""
    script = (
        f"devices=$(echo {devices}); python3 -m tests.lab.count_exactly $devices;"
        'for device in $devices; do echo "driven $(basename $(readlink -f $device))"; done'
    )
    lines = run_in_guest(topology, script, "--kernel", kernel, *options).splitlines()
    document: dict[str, Any] = next(json.loads(line) for line in lines if line.startswith("{"))
    assert document["refusal"] == ""
    lost = {name: count for name, count in document["losses"].items() if name not in {"requeued", "unstamped"}}
    # What the second copy of a program saw was skipped before, and is no loss.
    assert lost.pop("recursion_misses") >= lost.pop("rescued")
    assert not any(lost.values()), document["losses"]
    return document["rows"], [line.split()[1] for line in lines if line.startswith("driven ")]


def check(row: dict[str, int]) -> None:
    """One device that was driven itself."""
    assert row["writes"] == WRITES
    assert row["write_bytes"] == WRITES * BYTES
    assert row["reads"] >= READS
    assert (row["dd_reads"], row["dd_writes"]) == (READS, WRITES)
    assert row["in_flight_now"] == row["in_driver_now"] == 0
    service_ns = row["service_read_ns"] + row["service_write_ns"]
    assert row["busy_ns"] >= 0.5 * service_ns > 0
    # Commands passed through, as the SCSI layer and udev send them, are neither reads nor writes, and some are refused.
    if not row["others"]:
        assert row["errors"] == 0
        assert row["busy_ns"] <= service_ns


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_nvme_disk_of_its_own(kernel: str) -> None:
    """The controller whose subsystem has no other; its disk has no paths."""
    rows, (name,) = counted(
        "nvme-mp", kernel, "/dev/$(basename $(dirname $(grep -l LABNVME1 /sys/class/nvme/*/serial)))n1"
    )
    check(rows[name])
    assert rows[name]["queue_read_ns"] > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_scsi_disks_without_multipath(kernel: str) -> None:
    rows, names = counted("scsi-mp", kernel, "/dev/sda /dev/sdb", "-e", "MPATH=none")
    for name in names:
        check(rows[name])
    assert not any(name.startswith("dm-") for name in rows)


@pytest.mark.parametrize("kernel", KERNELS)
def test_hidden_paths_count_what_the_head_was_given(kernel: str) -> None:
    rows, (head,) = counted("nvme-mp", kernel, "$(ls -d /dev/nvme*n1 | head -1)")
    assert head not in rows
    paths = [row for name, row in rows.items() if name.startswith("nvme") and "c" in name and name.endswith("n1")]
    check({name: sum(row[name] for row in paths) for name in paths[0]})


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_map_and_its_paths_count_the_same(kernel: str) -> None:
    rows, (name,) = counted("scsi-mp", kernel, "/dev/mapper/mpatha")
    check(rows[name])
    paths = [row for disk, row in rows.items() if disk.startswith("sd")]
    for column in ("reads", "writes", "read_bytes", "write_bytes"):
        assert sum(row[column] for row in paths) == rows[name][column]
    # The time of the map's requests contains that of its paths'.
    assert sum(row["service_read_ns"] for row in paths) <= rows[name]["service_read_ns"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_disks_without_requests_are_timed(kernel: str) -> None:
    rows, names = counted("stack", kernel, "/dev/md1 /dev/mapper/stripe")
    for name in names:
        check(rows[name])
        assert rows[name]["queue_read_ns"] == rows[name]["unstamped"] == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_null_blk_counts_in_either_mode(kernel: str) -> None:
    rows, names = counted("null-blk", kernel, "/dev/nullb0 /dev/nullb1 /dev/nullb2")
    assert len(names) == 3
    for name in names:
        check(rows[name])
    # Every I/O of the second takes 2 ms in the driver.
    slow = rows[names[1]]
    assert slow["service_read_ns"] / slow["reads"] > 2e6
