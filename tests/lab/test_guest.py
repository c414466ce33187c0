"""Real kernels with real multipath under load: books that balance, a sick path, a path that goes and comes back."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

FIO = (
    "fio --name=x --filename={} --rw=randread --direct=1 --iodepth=16 --ioengine=libaio --runtime=600 --time_based "
    "--disk_util=0"
)
READS = """reads() { awk '$3 != "vda" { n += $4 } END { print n }' /proc/diskstats; }
"""
"""The guest's own disk is left out."""


def under_load(target: str, then: str) -> str:
    """Run a script as soon as reads of a target have really begun, and end the load with it."""
    return (
        f"{READS}before=$(reads); {FIO.format(target)} >/dev/null 2>&1 & load=$!\n"
        f"until [ $(reads) -gt $((before + 500)) ]; do sleep 0.2; done\n{then}\nkill $load; wait $load; true"
    )


HEAD = """head=$(ls /sys/block | sed -n 's/^\\(nvme[0-9]*\\)c[0-9]*n1$/\\1n1/p' | sort | uniq -c | sort -rn |
    awk 'NR == 1 { print $2 }')
controller=$(ls /sys/block | sed -n "s/^${head%n1}c\\([0-9]*\\)n1$/nvme\\1/p" | tail -1)
"""
"""The head with the most paths and one of its controllers: what is found first has the first number."""

REPORTED = """python3 -m tui report {} > /tmp/report & report=$!
shown() {{ until grep -q "$1" /tmp/report; do sleep 0.3; done; }}
shown ':.*[0-9]'
{}
kill -TERM $report; wait $report; cat /tmp/report"""
"""A report without end beside steps that wait for what it shows; what it printed is the output."""


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("kernel", ["stable", "backports"])
def test_nvme_paths_add_up_to_the_head_whether_the_kernel_counts_on_it_or_not(kernel: str) -> None:
    even = "for policy in /sys/class/nvme-subsystem/*/iopolicy; do echo round-robin > $policy; done\n"
    then = "python3 -m tui report --json --tier sampled 4 2; echo $head"
    text = run_in_guest("nvme-mp", even + HEAD + under_load("/dev/$head", then), "--kernel", kernel)
    found, name = documents(text), text.split()[-1]
    assert len(found) == 2
    for document in found:
        head = next(disk for disk in document["disks"] if disk["name"] == name)
        paths = [path for path in document["paths"] if path["lun"] == name]
        ports = {port["name"]: port["iops"] for port in document["hbas"]}
        assert len(paths) > 1
        # The head and its paths are read one after the other while the load goes on.
        assert sum(path["iops"] for path in paths) == pytest.approx(head["iops"], rel=0.02)
        for path in paths:
            assert ports[path["port"]] == pytest.approx(path["iops"], rel=0.02)


def test_a_path_of_a_map_goes_offline_under_load_and_comes_back() -> None:
    steps = """path=$(ls /sys/block/$(basename $(readlink /dev/mapper/mpatha))/slaves | head -1)
echo offline > /sys/block/$path/device/state; shown "path $path of mpatha lost"
echo running > /sys/block/$path/device/state; shown "path $path of mpatha back"
shown "! path .* its peers'"; shown "<< path .* its peers'" """
    text = run_in_guest("scsi-mp", under_load("/dev/mapper/mpatha", REPORTED.format("-d -L --tier kernel 2", steps)))
    lost = re.search(r"path (sd[a-z]+) of mpatha lost: running, active -> offline", text)
    assert lost, text
    assert f"path {lost[1]} of mpatha back: " in text, text
    odd = Counter(re.findall(r"! path (sd[a-z]+) carries .* its peers'", text))
    [(throttled, _)] = odd.most_common(1)
    assert throttled != lost[1], text
    assert f"<< path {throttled} carries" in text, text


def balance(document: dict[str, Any], lun: str, label: str) -> None:
    """What the paths of the only LUN with I/O did is what the LUN did, and what their ports did."""
    (disk,) = [disk for disk in document["disks"] if disk["name"] == lun]
    paths = [path for path in document["paths"] if path["lun"] == label]
    ports = {port["name"]: port["iops"] for port in document["hbas"]}
    assert len(paths) > 1
    assert sum(path["iops"] for path in paths) == pytest.approx(disk["iops"], rel=0.03)
    assert sum(ports.values()) == pytest.approx(disk["iops"], rel=0.03)
    assert sum(path["lun_share_pct"] for path in paths) == pytest.approx(100, abs=0.01)


def test_paths_of_a_map_over_scsi_debug_add_up_and_their_hosts_are_sampled() -> None:
    then = (
        "python3 -m tui scan --json; python3 -m tui report -d -L -H --json --tier sampled 5 2;"
        "basename $(readlink /dev/mapper/mpatha)"
    )
    text = run_in_guest(
        "scsi-debug-mp", under_load("/dev/mapper/mpatha", then), "-e", "LUNS=2", "-e", "OPTS=ndelay=3000000"
    )
    (graph, *found), lun = documents(text), text.split()[-1]
    assert len(found) == 2
    for document in found:
        balance(document, lun, "mpatha")
    usable = {path["port"] for path in graph["paths"] if path["usable"] and path["name"].startswith("sd")}
    # One of the emulated hosts is in standby: it only fails what multipathd tries now and then.
    hosts = [host for host in found[-1]["hbas"] if host["id"] in usable]
    assert len(hosts) == len(usable) == 3
    for host in hosts:
        assert host["tiers"]["busy_pct"] == "sampled"
        # Whoever has the same I/Os outstanding for 3 ms each is busy as long as that, by whatever it is told.
        assert 0 < host["busy_pct"] <= 100
        assert host["service_ms"] + host["queue_ms"] == pytest.approx(host["await_ms"], rel=0.2)


def test_hosts_and_their_disks_that_are_plugged_in_and_out_are_reported() -> None:
    steps = """plug=/sys/bus/pseudo/drivers/scsi_debug/add_host
echo 1 > $plug; shown '<< port host[0-9]* added'; shown '<< disk sd[a-z]* added'
echo -1 > $plug; shown '<< port host[0-9]* removed'; shown '<< disk sd[a-z]* removed'"""
    text = run_in_guest(
        "scsi-debug-mp", REPORTED.format("-d --all --tier kernel 1", steps), "-e", "HOSTS=2", "-e", "LUNS=1"
    )
    host, other = re.findall(r"<< port (host\d+) (?:added|removed) >>", text)
    assert host == other, text
    added, removed = (set(re.findall(rf"<< disk (sd[a-z]+) {action}", text)) for action in ("added", "removed"))
    assert len(added) == 1, text
    assert added == removed, text


def test_a_controller_that_is_pulled_takes_its_paths_with_it() -> None:
    steps = """echo 1 > /sys/class/nvme/$controller/device/remove; shown "<< port $controller removed >>"
python3 -m tui scan --json; echo $controller"""
    then = f"python3 -m tui scan --json; {REPORTED.format('-L -H --tier kernel 2', steps)}"
    text = run_in_guest("nvme-mp", HEAD + under_load("/dev/$head", then))
    before, after = documents(text)
    (gone,) = re.findall(r"^nvme\d+$", text, re.MULTILINE)
    assert gone in [port["name"] for port in before["ports"]]
    assert gone not in [port["name"] for port in after["ports"]]
    assert 0 < len(after["paths"]) < len(before["paths"])
    assert all(path["usable"] for path in after["paths"])


def test_sas_ends_as_lsscsi_lists_them_beside_other_controllers() -> None:
    text = run_in_guest("sas", "python3 -m tui scan --json; lsscsi -t")
    (graph,) = documents(text)
    names = {target["key"]: target["name"] for target in graph["targets"]}
    listed = dict(reversed(found) for found in re.findall(r"sas:(0x[0-9a-f]+) +/dev/(sd[a-z]+)", text))
    assert listed
    assert {path["name"]: names[path["target"]] for path in graph["paths"] if path["name"] in listed} == listed
    assert {port["transport"] for port in graph["ports"]} >= {"sas", "ata", "scsi", "virtio"}


def test_a_map_made_by_hand_balances_and_its_slow_path_is_named() -> None:
    then = "python3 -m tui report -d -L -H --json --tier kernel 5 2; python3 -m tui report -L --tier kernel 5 1"
    text = run_in_guest("scsi-mp", under_load("/dev/mapper/lab0", then), "-e", "MPATH=dmsetup")
    lun = next(disk["name"] for disk in documents(text)[0]["disks"] if disk["label"] == "lab0")
    for document in documents(text):
        balance(document, lun, "lab0")
    assert re.search(r"! path sd[a-z]+ carries \d+ % of lab0 and its (S|await) is [\d.]+x its peers'", text), text


MANY = {"HOSTS": 8, "TARGETS": 4, "LUNS": 75}


def test_thousands_of_paths() -> None:
    """Real sd devices: everything is found, and the books balance."""
    count = """
import json, sys
lines = [json.loads(line) for line in sys.stdin]
graph, reports = lines[0], lines[1:]
last = reports[-1]
print(json.dumps({"paths": len(graph["paths"]), "luns": len(graph["luns"]), "ports": len(graph["ports"]),
    "multipath": sum(lun["multipath"] == "dm" for lun in graph["luns"]),
    "shown": [len(last[name]) for name in ("disks", "paths", "hbas")],
    "iops": [sum(row["iops"] for row in last[name]) for name in ("disks", "paths", "hbas")]}))
"""
    measured = "python3 -m tui scan --json; python3 -m tui report -d -L -H --json --tier kernel 10 2"
    targets = ":".join(f"/dev/mapper/lab{place}" for place in ("0-0", "1-3", "2-7", "3-11"))
    script = under_load(targets, f"({measured}) | python3 -c '{count}'")
    options = [part for name, value in {**MANY, "MAPS": 1}.items() for part in ("-e", f"{name}={value}")]
    text = run_in_guest("scsi-many", script, *options, "--mem", "6000")
    (found,) = documents(text)
    luns = MANY["TARGETS"] * MANY["LUNS"]
    assert (found["paths"], found["multipath"]) == (luns * MANY["HOSTS"] + found["luns"] - luns, luns), found
    disks, paths, ports = found["iops"]
    assert disks > 0
    assert paths == pytest.approx(disks, rel=0.05)
    assert ports == pytest.approx(disks, rel=0.05)


def test_commands_that_fail_are_reported_of_the_path() -> None:
    """The driver aborts every hundredth command (opts=16, drivers/scsi/scsi_debug.c); nothing is lost, but counted."""
    steps = """driver=/sys/bus/pseudo/drivers/scsi_debug
echo 16 > $driver/opts; echo 100 > $driver/every_nth; shown '<< path sd[a-z]* of mpatha: [0-9,]* errors >>'
echo 0 > $driver/every_nth"""
    script = under_load("/dev/mapper/mpatha", REPORTED.format("-L --tier kernel 1", steps))
    text = run_in_guest("scsi-debug-mp", script, "-e", "HOSTS=2", "-e", "LUNS=1")
    assert re.search(r"<< path sd[a-z] of mpatha: [\d,]+ errors >>", text), text


def test_a_tape_that_is_written_and_rewound() -> None:
    steps = """mt -f /dev/nst0 rewind
(while :; do dd if=/dev/zero of=/dev/nst0 bs=64k count=200 2>/dev/null; mt -f /dev/nst0 rewind; done) & writer=$!
shown 'st0 .*[0-9]'
kill $writer; wait $writer"""
    text = run_in_guest("tape", REPORTED.format("-t --tier kernel 2", steps))
    (average,) = [line.split() for line in text.splitlines() if line.startswith("Average: st0")]
    iops, kib_per_s, await_ms, _, others_per_s, busy_pct = map(float, average[2:])
    assert kib_per_s == pytest.approx(64 * iops, rel=0.1)
    assert await_ms > 0
    assert others_per_s > 0
    assert 0 < busy_pct <= 100
    assert " st1 " not in text


def test_a_container_without_uevents_reports_paths_and_disks_all_the_same() -> None:
    """Its sysfs is a mount of its own, and the kernel announces nothing in network namespaces of other users."""
    steps = """path=$(ls /sys/block/$(basename $(readlink /dev/mapper/mpatha))/slaves | head -1)
unshare --user --map-root-user --net --mount sh -c 'mkdir -p /tmp/sys; mount -t sysfs none /tmp/sys
    exec python3 -m tui report -d -L --all --tier kernel --sysfs /tmp/sys 1' > /tmp/report & report=$!
shown() { started=$(date +%s); until grep -q "$1" /tmp/report; do sleep 0.3; done
    echo "took $(($(date +%s) - started)) s: $1"; }
shown ':.*[0-9]'
echo offline > /sys/block/$path/device/state; shown "path $path of mpatha lost"
echo running > /sys/block/$path/device/state; shown "path $path of mpatha back"
echo 1 > /sys/block/$path/device/delete; shown "disk $path removed"
kill -TERM $report; wait $report; cat /tmp/report"""
    text = run_in_guest("scsi-mp", under_load("/dev/mapper/mpatha", steps))
    took = {what: int(seconds) for seconds, what in re.findall(r"took (\d+) s: (path .* (?:lost|back)|disk .*)", text)}
    assert len(took) == 3, text
    # An emulated processor under load is many times slower than the hosts that the bounds of 2 and 5 s are for.
    assert max(took.values()) <= 20, text
