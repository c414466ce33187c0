"""Path selectors of real multipath maps under I/O, arguments of dm-cache, timeouts of FC and NVMe-oF connections."""

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

_TUNE = r"""
export LUNSCOPE_STATE_DIR=/tmp/state; tune() { python3 -m tui tune "$@" 2>&1; }; show() { echo "= $1"; }
until_true() { for _ in $(seq 600); do eval "$1" && return; sleep 0.1; done; echo "never: $1"; }
"""

_SELECTOR = (
    _TUNE
    + r"""
cat > /tmp/killed.py <<'END'
# A change that is killed when the new table of the second map is loaded and not yet the active one.
import os, signal, sys
from engine.tune.map_ioctls import KernelMaps
from tui.main import main
count, resume = 0, KernelMaps.resume
def killed(self, number):
    global count
    count += 1
    os.kill(os.getpid(), signal.SIGKILL) if count == 2 else resume(self, number)
KernelMaps.resume = killed
sys.argv = ["lunscope", "tune", "set", "path_selector=queue-length", "--on", "dm-*", "--for", "60s"]
main()
END
tables() { dmsetup table | sort; }
dmsetup message lab0 0 queue_if_no_path
tables > /tmp/before
show before; dmsetup table lab0
show list; tune get path_selector
show set; tune set path_selector=round-robin --on lab0 --keep; dmsetup table lab0
show others
grep -v lab0 /tmp/before > /tmp/others; tables | grep -v lab0 > /tmp/now; diff /tmp/now /tmp/others && echo same
show undo; tune undo; dmsetup table lab0
show arguments; tune set 'path_selector=historical-service-time 2 900 4' --on lab0 -- dmsetup table lab0
first=$(dmsetup table lab0 | grep -o '8:[0-9]*' | head -1)
show weights
each=$(dmsetup table lab0 | grep -o '8:[0-9]* 1 1' | sed "s/^$first 1 1/$first 1 9/" | paste -sd, | sed 's/,/, /g')
value="service-time 0 {$each}"
tune set "path_selector=$value" --on lab0 -- dmsetup table lab0
show wrong; tune set path_selector=fastest --on lab0 --keep; echo $?
show io
fio --name=t --filename=/dev/mapper/lab0 --rw=randwrite --bs=4k --size=4m --verify=crc32c --direct=1 --ioengine=libaio \
    --iodepth=8 --loops=100 --runtime=25 --time_based --output=/tmp/fio & load=$!
flips=0
while kill -0 $load 2>/dev/null; do
    tune set path_selector=round-robin --on lab0 -- true > /dev/null && flips=$((flips + 1)); done
wait $load; echo $?; echo $flips; grep -c 'err= 0' /tmp/fio
show lost
paths=$(dmsetup table lab0 | grep -o '8:[0-9]*')
for path in $paths; do echo offline > /sys/dev/block/$path/device/state; done
dd if=/dev/mapper/lab0 of=/dev/null bs=4k count=1 iflag=direct 2>/tmp/dd & reader=$!
until_true '[ $(dmsetup status lab0 | grep -o " F " | wc -l) = 4 ]'
tune set path_selector=queue-length --on lab0 --keep; dmsetup table lab0
dmsetup status lab0 | grep -o ' F ' | wc -l; sleep 2; kill -0 $reader && echo waits
for path in $paths; do echo running > /sys/dev/block/$path/device/state; done
for path in $paths; do dmsetup message lab0 0 reinstate_path $path; done
wait $reader; echo $?; tune undo > /dev/null
show killed; python3 /tmp/killed.py > /dev/null 2>&1; echo $?; began=$(date +%s%N)
both() { dmsetup info -c --noheadings -o tables_loaded | grep -q Both; }
until_true 'tables | diff -q - /tmp/before > /dev/null && ! both'
echo $((($(date +%s%N) - began) / 1000000)) ms; tables | diff - /tmp/before && echo same
tune undo --list | tail -1
dmsetup info -c --noheadings -o suspended,tables_loaded | sort | uniq -c
show held; python3 -m tui tune set path_selector=round-robin --on lab0 -- sleep 600 > /dev/null 2>&1 & holder=$!
until_true 'dmsetup table lab0 | grep -q round-robin'
tune set path_selector=queue-length --on lab0 --keep; echo $?
kill -9 $holder; began=$(date +%s%N)
until_true 'tables | diff -q - /tmp/before > /dev/null'; echo $((($(date +%s%N) - began) / 1000000)) ms
show busy; dmsetup suspend --noflush lab1; tune set path_selector=round-robin --on lab1 --keep; dmsetup resume lab1
dmsetup table lab1 | dmsetup load lab1; tune set path_selector=round-robin --on lab1 --keep; dmsetup clear lab1
show audit; grep -c path_selector /tmp/state/tune/audit.jsonl
show end; tables | diff - /tmp/before && echo same; true
"""
)

_DAEMON = (
    _TUNE
    + r"""
map=$(basename $(ls /dev/mapper/mpath? | head -1)); dmsetup table $map > /tmp/before
show set; tune set path_selector=round-robin --on $map --keep; dmsetup table $map; sleep 6; dmsetup table $map
show paths; multipathd show paths format "%d %t" | grep -c active; multipath -ll $map | grep -o "policy='[^']*'"
show saved; tune save > /tmp/saved; cat /tmp/saved
mkdir -p /etc/multipath/conf.d; grep -v '^#' /tmp/saved > /etc/multipath/conf.d/lunscope-tune.conf
show undo; tune undo; dmsetup table $map | diff - /tmp/before && echo same
show reconfigured; multipathd reconfigure; until_true "dmsetup table $map | grep -q round-robin"
dmsetup table $map; true
"""
)

_CACHE = (
    _TUNE
    + r"""
show list; tune get 'dm_cache.*' cached
show set; tune set dm_cache.migration_threshold=8192 --on cached --keep; dmsetup status cached
show wrong; tune set dm_cache.migration_threshold=much --on cached --keep; echo $?
show undo; tune undo; dmsetup status cached
show save; tune save dm_cache.migration_threshold --on cached; true
"""
)

_FC = (
    _TUNE
    + r"""
disk=$(ls /sys/block | grep ^sd | head -1)
at=/sys/class/fc_remote_ports/$(realpath /sys/block/$disk | grep -o 'rport-[0-9:-]*' | head -1)
values() { cat $at/dev_loss_tmo $at/fast_io_fail_tmo | xargs; }
show before; values
show set; tune set dev_loss_tmo=120 fast_io_fail_tmo=7 --on $disk --keep; values
show off; tune set fast_io_fail_tmo=off --on $disk -- cat $at/fast_io_fail_tmo; values
show refused; tune set fast_io_fail_tmo=100000 --on $disk --keep; echo $?; values
show undo; tune undo; values; true
"""
)

_FABRICS = (
    _TUNE
    + r"""
values() { for file in ctrl_loss_tmo reconnect_delay; do cat /sys/class/nvme/nvme*/$file | sort -u | xargs; done; }
show before; values
show set; tune set ctrl_loss_tmo=300 reconnect_delay=20 --on nvme0n1 --keep; values
show off; tune set ctrl_loss_tmo=off --on nvme0n1 -- sh -c 'cat /sys/class/nvme/nvme*/ctrl_loss_tmo | sort -u'; values
show undo; tune undo; values; true
"""
)


@functools.cache
def answers(topology: str, script: str, kernel: str, *options: str) -> dict[str, list[str]]:
    """What was printed after each `= title`."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in run_in_guest(topology, script, "--kernel", kernel, *options).splitlines():
        if line.startswith("= "):
            title = line[2:]
        else:
            found.setdefault(title, []).append(line)
    return found


def paths_of(table: str) -> str:
    """Device numbers of a table, in their order."""
    return " ".join(word for word in table.split() if word.startswith("8:"))


@pytest.mark.parametrize("kernel", ["stable", "backports"])
def test_a_selector_is_exchanged_under_load_and_after_all_paths_have_failed(kernel: str) -> None:
    found = answers("scsi-mp", _SELECTOR, kernel, "-e", "MPATH=dmsetup")
    (before,) = found["before"]
    assert before.startswith("0 2097152 multipath 1 queue_if_no_path 0 1 1 service-time 0 4 2 ")
    changed = "0 2097152 multipath 1 queue_if_no_path 0 1 1 {} 0 4 1 " + " ".join(
        f"{one} 1" for one in paths_of(before).split()
    )
    assert found["set"][-1].strip() == changed.format("round-robin")
    assert found["others"] == found["end"] == ["same"]
    assert found["undo"][-1] == before
    first = paths_of(before).split()[0]
    assert found["weights"][1] == before.replace(f"{first} 1 1", f"{first} 1 9")
    # Debian's kernels lack this selector.
    assert (
        "historical-service-time 2 900 4 4 1" in found["arguments"][0]
        or "all values are as before" in found["arguments"][0]
    )
    assert found["wrong"][-1] == "2"
    status, flips, verified = map(int, found["io"])
    assert (status, verified) == (0, 1)
    assert flips > 0
    table, failed, waits, read = found["lost"][-4:]
    assert table.strip() == changed.format("queue-length")
    assert (failed, waits, read) == ("4", "waits", "0")


@pytest.mark.parametrize("kernel", ["stable", "backports"])
def test_kill_9_restores_the_maps_and_drops_the_loaded_table(kernel: str) -> None:
    found = answers("scsi-mp", _SELECTOR, kernel, "-e", "MPATH=dmsetup")
    status, _, same, summary, tables = found["killed"]
    assert (status, same, tables.split()) == ("137", "same", ["4", "Active:Live"])
    assert "path_selector service-time 0 -> queue-length 0 on dm-0, dm-1, dm-2 and 1 more" in summary
    refused, code, _ = found["held"]
    assert "dm-0: held by change" in refused
    assert code == "1"
    assert "suspended: resume it first" in found["busy"][0]
    assert "another table is loaded" in found["busy"][1]
    assert int(found["audit"][0]) >= 10


def test_multipathd_keeps_a_selector_and_reads_the_one_that_is_saved() -> None:
    found = answers("scsi-mp", _DAEMON, "stable")
    assert [" round-robin 0 4 1 " in table for table in found["set"][-2:]] == [True, True]
    assert found["paths"] == ["16", "policy='round-robin 0'"]
    assert '        path_selector "round-robin 0"' in found["saved"]
    assert found["undo"][-1] == "same"
    assert " round-robin 0 4 1 " in found["reconfigured"][-1]


def test_arguments_of_a_cache() -> None:
    found = answers("stack", _CACHE, "stable")
    assert [row.split()[:2] for row in found["list"] if "cached" in row or "dm-" in row]
    assert " migration_threshold 8192 smq " in found["set"][-1]
    assert found["wrong"][-1] == "2"
    assert " migration_threshold 2048 smq " in found["undo"][-1]
    assert "dmsetup message cached 0 migration_threshold 2048" in "".join(found["save"])


def test_timeouts_of_a_remote_port() -> None:
    found = answers("fc", _FC, "stable")
    assert found["set"][-1] == "120 7"
    assert "off" in found["off"]
    assert found["off"][-1] == found["refused"][-1] == "120 7"
    assert found["undo"][-1] == found["before"][0]


def test_timeouts_of_a_fabrics_controller() -> None:
    found = answers("nvme-tcp", _FABRICS, "stable")
    assert found["set"][-2:] == found["off"][-2:] == ["300", "20"]
    assert "off" in found["off"]
    assert found["undo"][-2:] == found["before"]
