"""The exact tier on stock kernels and the disks of the lab: known counts come out on every kind of device."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from collectors.model import MISSING
from tests import needs
from tests.kernel.block_events import by_chance_us
from tests.lab.count_exactly import BYTES, READS, WRITES
from tests.lab.guest import KERNELS

pytestmark = [
    needs.guest,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

Rows = dict[str, dict[str, int]]


def counting(devices: str) -> str:
    """Script that drives devices, which are words for the shell, and counts."""
    return (
        f"devices=$(echo {devices}); python3 -m tests.lab.count_exactly $devices;"
        'for device in $devices; do echo "driven $(basename $(readlink -f $device))"; done'
    )


def counted(printed: str) -> tuple[Rows, list[str]]:
    """Rows of the tracer, and the kernel names of the devices driven."""
    lines = printed.splitlines()
    document: dict[str, Any] = next(json.loads(line) for line in lines if line.startswith("{"))
    assert document["refusal"] == ""
    lost = {name: count for name, count in document["losses"].items() if name not in {"requeued", "unstamped"}}
    # What the second copy of a program saw was skipped before, and is no loss.
    assert lost.pop("recursion_misses") >= lost.pop("rescued")
    assert not any(lost.values()), document["losses"]
    if not document["fetch"]:
        for row in document["rows"].values():
            assert row.pop("busy_ns") == MISSING
    return document["rows"], [line.split()[1] for line in lines if line.startswith("driven ")]


def check(row: dict[str, int]) -> None:
    """One device that was driven itself."""
    assert row["writes"] == WRITES
    assert row["write_bytes"] == WRITES * BYTES
    assert row["reads"] >= READS
    assert (row["dd_reads"], row["dd_writes"]) == (READS, WRITES)
    assert row["in_flight_now"] == row["in_driver_now"] == 0
    service_ns = row["service_read_ns"] + row["service_write_ns"]
    assert service_ns > 0
    # Commands passed through, as the SCSI layer and udev send them, are neither reads nor writes, and some are refused.
    assert row["errors"] == 0 or row["others"]
    if "busy_ns" in row:
        assert row["busy_ns"] >= 0.5 * service_ns
        assert row["busy_ns"] <= service_ns or row["others"]


OWN_NVME = "/dev/$(basename $(dirname $(grep -l LABNVME1 /sys/class/nvme/*/serial)))n1"


@pytest.mark.guest("nvme-mp", counting(OWN_NVME))
def test_an_nvme_disk_of_its_own(printed: str) -> None:
    """The controller whose subsystem has no other; its disk has no paths."""
    rows, (name,) = counted(printed)
    check(rows[name])
    assert rows[name]["queue_read_ns"] > 0


@pytest.mark.guest("scsi-mp", counting("/dev/sda /dev/sdb"), "-e", "MPATH=none")
def test_scsi_disks_without_multipath(printed: str) -> None:
    rows, names = counted(printed)
    for name in names:
        check(rows[name])
    assert not any(name.startswith("dm-") for name in rows)


@pytest.mark.guest("nvme-mp", counting("$(ls -d /dev/nvme*n1 | head -1)"))
def test_hidden_paths_count_what_the_head_was_given(printed: str) -> None:
    rows, (head,) = counted(printed)
    assert head not in rows
    paths = [row for name, row in rows.items() if name.startswith("nvme") and "c" in name and name.endswith("n1")]
    check({name: sum(row[name] for row in paths) for name in paths[0]})


@pytest.mark.guest("scsi-mp", counting("/dev/mapper/mpatha"))
def test_a_map_and_its_paths_count_the_same(printed: str) -> None:
    rows, (name,) = counted(printed)
    check(rows[name])
    paths = [row for disk, row in rows.items() if disk.startswith("sd")]
    for column in ("reads", "writes", "read_bytes", "write_bytes"):
        assert sum(row[column] for row in paths) == rows[name][column]
    # The time of the map's requests contains that of its paths'.
    assert sum(row["service_read_ns"] for row in paths) <= rows[name]["service_read_ns"]


@pytest.mark.guest("stack", counting("/dev/md1 /dev/mapper/stripe /dev/mapper/cdata"))
def test_disks_without_requests_are_timed(printed: str) -> None:
    rows, names = counted(printed)
    for name in names:
        check(rows[name])
        assert rows[name]["queue_read_ns"] == rows[name]["unstamped"] == 0


@pytest.mark.guest("stack", counting("/dev/vg/linear"))
def test_a_volume_and_the_stripe_it_is_on_count_the_same(printed: str) -> None:
    """The stripe (md raid0) sends bios themselves on: before Linux 5.14 they complete as those of the disks below."""
    rows, (name,) = counted(printed)
    check(rows[name])
    for column in ("reads", "writes", "read_bytes", "write_bytes"):
        assert rows["md0"][column] == rows[name][column]
    assert rows["md0"]["in_flight_now"] == rows["md0"]["lost_in_driver_ns"] == 0
    assert 0 < rows["md0"]["service_read_ns"] <= rows[name]["service_read_ns"]


@pytest.mark.guest("null-blk", counting("/dev/nullb0 /dev/nullb1 /dev/nullb2"))
def test_null_blk_counts_in_either_mode(printed: str) -> None:
    rows, names = counted(printed)
    assert len(names) == 3
    for name in names:
        check(rows[name])
    # Every I/O of the second takes 2 ms in the driver.
    slow = rows[names[1]]
    assert slow["service_read_ns"] / slow["reads"] > 2e6


def with_cpus(*options: str) -> pytest.MarkDecorator:
    return pytest.mark.guest("null-blk", counting("/dev/nullb0 /dev/nullb1"), "--kernel", KERNELS[0], *options)


@pytest.mark.parametrize(
    "_cpus",
    [
        pytest.param("1", marks=with_cpus("--cpus", "1"), id="one"),
        pytest.param("2", marks=with_cpus("--append", "possible_cpus=128"), id="many-possible"),
    ],
)
def test_one_cpu_and_many_that_may_come_count_the_same(printed: str, _cpus: str) -> None:
    """Sums are kept by CPU: of those that there are, and of those that a virtual machine may get."""
    rows, names = counted(printed)
    for name in names:
        check(rows[name])


SKIPPED = 0.01
"""From Linux 6.1 on the kernel skips a program that it would run while the same one runs on that CPU."""
BUSY = 0.01
"""A program that is held up on its way to the root makes busy time longer, by less than it was held up."""


@pytest.mark.guest("null-blk", "python3 -m tests.lab.exact_truth /dev/nullb1")
def test_ios_that_interrupt_each_other_are_those_of_the_event_log(printed: str) -> None:
    """Timers end the I/Os of this device while the programs of others run: nothing is counted twice or not at all."""
    typed, raw = (json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    assert (typed["form"][0], raw["form"][0]) == (True, False)
    for document in (typed, raw):
        compare(document)


def compare(document: dict[str, Any]) -> None:
    """One log was told of each event before the tracer and one after it, however long the CPU stood still between."""
    seen, truth, losses = document["seen"], document["truth"], document["losses"]
    ios = truth["reads"] + truth["writes"]
    missing = ios - seen["reads"] - seen["writes"]
    if missing and document["form"][1]:
        # The kernel has skipped both copies: that is reported, and the log has more than was timed.
        reported = sum(losses[name] for name in ("table_full", "unseen", "stale", "healed"))
        assert 0 < missing <= reported <= SKIPPED * ios, document
        return
    # Others may have lost I/Os, as those that were under way when the programs were attached.
    assert truth["lost"] == seen["lost_in_driver_ns"] == seen["in_flight_now"] == 0, document
    assert truth["ios_of_last"] == ios
    assert document["timed"] == [truth["reads"], truth["writes"]] * 2, document
    assert losses["overtaken"] == seen["uncounted"] == 0
    slack_us = by_chance_us(ios)
    for kind in ("read", "write"):
        assert (seen[f"{kind}s"], seen[f"{kind}_bytes"]) == (truth[f"{kind}s"], truth[f"{kind}_bytes"])
        for part in ("service", "queue"):
            least, most = truth["bounds"][f"{part}_{kind}_us"]
            assert least - slack_us <= seen[f"{part}_{kind}_ns"] / 1e3 <= most + slack_us, document
    for part in ("queue", "service"):
        least, most = truth["bounds"][f"{part}_max_us"]
        assert least - 1 <= seen[f"{part}_max_ns"] / 1e3 <= most + 1, document
    if document["form"][1]:
        least, most = truth["bounds"]["busy_us"]
        assert least - slack_us <= seen["busy_ns"] / 1e3 <= (1 + BUSY) * most + slack_us, document
    else:
        assert document["seen"]["in_driver_peak"] >= MISSING


@pytest.mark.guest("null-blk", "python3 -m tests.lab.exact_hotplug /dev/nullb1")
def test_a_cpu_that_goes_and_comes_leaves_every_sum_as_it_is(printed: str) -> None:
    document = next(json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    assert document["came"] > 1
    compare(document)


def doctor_with(*limits_kb: int) -> str:
    """What doctor says of exact time, with the right to raise the limit, and without it for each of these limits."""
    check = "from collectors.doctor import exact_time; found = exact_time(Path('/proc'), Path('/sys'))"
    doctor = f'python3 -c "from pathlib import Path; {check}; print(found.found, found.fix)"'
    without_right = "setpriv --inh-caps=-sys_resource --bounding-set=-sys_resource"
    limited = f"for kb in {' '.join(map(str, limits_kb))}; do (ulimit -l $kb; {without_right} {doctor}); done"
    return f"ulimit -l 64; {doctor}; {limited}"


@pytest.mark.guest("null-blk", doctor_with(0, 1024, 8192))
def test_locked_memory_that_is_limited_is_raised_or_named(printed: str) -> None:
    """Before Linux 5.11 maps and programs count as such: too little for any, for the maps, or for the programs."""
    raised, *found = printed.splitlines()
    assert "tier exact" in raised
    assert len(found) == 3
    assert all("tier exact" in one or "locked memory" in one for one in found), found
