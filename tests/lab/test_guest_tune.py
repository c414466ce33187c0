"""Tunables on stock kernels with real multipath storage: queue depth, NVMe I/O policy, control groups of v2."""

from __future__ import annotations

import functools
import sys

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

_TUNE = 'export LUNSCOPE_STATE_DIR=/tmp/state; tune() { python3 -m tui tune "$@" 2>&1; }; show() { echo "= $1"; }\n'

_SCSI = (
    _TUNE
    + r"""
map=$(basename $(ls -d /sys/block/dm-*/slaves/sd* | head -1 | cut -d/ -f4))
paths=$(ls /sys/block/$map/slaves)
depths() { for path in $paths; do cat /sys/block/$path/device/queue_depth; done; }
others() { cat /sys/block/sd*/device/queue_depth | sort | uniq -c | xargs; }
show paths; echo $paths | wc -w
show before; depths; others
tune set queue_depth=3 timeout=77 --on lun:$map --keep
show kept; depths; others; for path in $paths; do cat /sys/block/$path/device/timeout; done
show limits; tune set queue_depth=99999999 --on lun:$map --keep; echo $?
show port; port=$(realpath /sys/block/$(echo $paths | cut -d' ' -f1) | grep -o 'host[0-9]*' | head -1)
tune set queue_depth=5 --on port:$port -- sh -c "cat /sys/block/sd*/device/queue_depth | grep -cx 5"
ls -d /sys/devices/*/*/*/$port/*/*/block/sd* /sys/devices/*/*/*/*/$port/*/*/block/sd* 2>/dev/null | wc -l
show saved; tune save > /tmp/saved; cat /tmp/saved
show udev; grep -v '^#' /tmp/saved > /etc/udev/rules.d/99-tune.rules; udevadm control --reload
echo 9 > /sys/block/$(echo $paths | cut -d' ' -f1)/device/queue_depth
udevadm trigger --settle --action=change /sys/block/$(echo $paths | cut -d' ' -f1); udevadm settle; depths
show undo; tune undo; depths; others
show by_path; rules=/etc/udev/rules.d/99-tune.rules; rm $rules
tune set queue_depth=33 --on port:$port --keep; tune save > /tmp/saved; tune undo
cp /tmp/saved $rules; udevadm control --reload
show tested; for path in $paths; do
  udevadm test --action=change /sys/block/$path 2>&1 | grep -q "queue_depth.*33" && realpath /sys/block/$path; done
for disk in /sys/block/sd*; do [ $(cat $disk/device/queue_depth) = 33 ] && echo 128 > $disk/device/queue_depth; done
show triggered; udevadm trigger --settle --action=change --subsystem-match=block; udevadm settle
for disk in /sys/block/sd*; do [ $(cat $disk/device/queue_depth) = 33 ] && realpath $disk; done
show disks; ls -d /sys/block/sd* | wc -l; echo $port; rm $rules
show type; tune set queue_type=ordered --on lun:$map --keep; echo $?
"""
)

_NVME = (
    _TUNE
    + r"""
policy() { cat /sys/class/nvme-subsystem/nvme-subsys*/iopolicy | sort | uniq -c | tr '\n' ' '; echo; }
show before; policy
show set; tune set iopolicy=round-robin --on all --keep; policy
show queue; tune set iopolicy=queue-depth --on all --keep; echo $?; policy
show undo; tune undo --all; policy
show wrong; tune set iopolicy=fastest --on all --keep; echo $?; true
"""
)

_GROUP = (
    _TUNE
    + r"""
echo "+io" > /sys/fs/cgroup/cgroup.subtree_control
group=/sys/fs/cgroup/lab/free
show before; cat $group/io.max
show set; tune set io.max.riops=500 io.max.wbps=2m --on cgroup:/lab/free@nullb0 --keep; cat $group/io.max
show get; tune get 'io.max.*' cgroup:/lab/free
show more; tune set io.max.riops=100 --on cgroup:/lab/free@nullb0 -- cat $group/io.max; cat $group/io.max
show weight; tune set io.weight=300 --on cgroup:/lab/free -- cat $group/io.weight; cat $group/io.weight
show absent; mkdir $group/inner; tune set io.max.riops=1 --on cgroup:/lab/free/inner@nullb0 --keep; echo $?
show undo; tune undo --all; cat $group/io.max
show bad; tune set io.max.riops=0 --on cgroup:/lab/free@nullb0 --keep
tune set io.max.riops=5 --on cgroup:/../lab@nullb0 --keep
true
"""
)

_CACHE = (
    _TUNE
    + r"""
show mode; cat /sys/block/bcache0/bcache/cache_mode
tune set bcache.cache_mode=none --on bcache0 -- cat /sys/block/bcache0/bcache/cache_mode
cat /sys/block/bcache0/bcache/cache_mode
show wrong; tune set bcache.cache_mode=fast --on bcache0 --keep
true
"""
)


@functools.cache
def parts(topology: str, script: str, kernel: str) -> dict[str, list[str]]:
    """What was printed after each `= title`."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in run_in_guest(topology, script, "--kernel", kernel).splitlines():
        if line.startswith("= "):
            title = line[2:]
        else:
            found.setdefault(title, []).append(line)
    return found


def test_queue_depth_of_all_paths_of_a_lun() -> None:
    found = parts("scsi-mp", _SCSI, "stable")
    paths = int(found["paths"][0])
    assert paths > 1
    before = found["before"][: paths + 1]
    assert "3" not in before[:paths]
    kept = found["kept"]
    assert kept[:paths] == ["3"] * paths
    assert kept[-paths:] == ["77"] * paths
    assert found["undo"][-paths - 1 :] == before
    assert found["limits"][-1] == "2"
    assert "is not legal: 1.." in found["limits"][0]


def test_queue_depth_of_a_port() -> None:
    found = parts("scsi-mp", _SCSI, "stable")["port"]
    count = next(line for line in found if line.isdigit())
    assert int(count) > 1


def test_saved_rules_are_applied_by_udev() -> None:
    found = parts("scsi-mp", _SCSI, "stable")
    rules = [line for line in found["saved"] if "ATTR{device/queue_depth}" in line]
    assert len(rules) == 1
    assert rules[0].endswith('ATTR{device/queue_depth}="3", ATTR{device/timeout}="77"')
    assert set(found["udev"]) == {"3"}


def test_rules_saved_for_a_port_change_its_paths_and_no_others() -> None:
    """Not all paths of the LUNs that the port has paths to."""
    found = parts("scsi-mp", _SCSI, "stable")
    disks, port = found["disks"]
    (tested,) = found["tested"]
    assert len(found["triggered"]) == 4 < int(disks)
    assert all(f"/{port}/" in path for path in (tested, *found["triggered"]))


def test_a_value_that_the_kernel_ignores_is_a_failure() -> None:
    found = parts("scsi-mp", _SCSI, "stable")["type"]
    assert found[-1] != "0"
    assert "all values are as before" in found[0] or "read-only" in found[0]


@pytest.mark.parametrize("kernel", ["stable", "backports"])
def test_io_policy_of_nvme_subsystems(kernel: str) -> None:
    found = parts("nvme-mp", _NVME, kernel)
    assert found["before"] == found["undo"][-1:]
    assert found["set"][-1].split()[1::2] == ["round-robin"]
    if kernel == "backports":
        assert found["queue"][-1].split()[1::2] == ["queue-depth"]
    else:
        # Linux 6.1 does not know it: all subsystems are as before.
        assert "Invalid argument" in found["queue"][0]
        assert "all values are as before" in found["queue"][0]
        assert found["queue"][-1].split()[1::2] == ["round-robin"]
    assert found["wrong"][-1] == "2"


@pytest.mark.parametrize("kernel", ["stable", "backports"])
def test_limits_of_control_groups_of_v2(kernel: str) -> None:
    found = parts("cgroup", _GROUP, kernel)
    line = found["set"][-1]
    assert line.endswith("rbps=max wbps=2097152 riops=500 wiops=max")
    assert any(text.split()[:3] == ["/lab/free", "nullb0", "500"] for text in found["get"])
    more = [text for text in found["more"] if "rbps=" in text]
    assert [text.split()[3] for text in more] == ["riops=100", "riops=500"]
    assert [text for text in found["weight"] if text.startswith("default")] == ["default 300", "default 100"]
    assert "enable the io controller" in found["absent"][0]
    assert found["undo"] == ["lunscope: change 1: 2 of 2 values are as before it"]
    assert "0 is not legal: max|1.." in found["bad"][0]
    assert "name a group from the root" in found["bad"][1]


def test_cache_mode_of_bcache() -> None:
    found = parts("stack", _CACHE, "stable")
    before, *lines, after = found["mode"]
    assert before == after
    assert any(line.endswith("[none]") for line in lines)
    assert "fast is not legal: writethrough|" in found["wrong"][0]
