"""Caches on stock kernels: dm-cache, dm-writecache and bcache, read back against I/O whose hits are known."""

from __future__ import annotations

import functools
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

_IO = r"""
modprobe dm_writecache
D() { readlink -f /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_LABDISK$1; }
dmsetup create wslow --table "0 1048576 delay $(D 6) 0 0 $(D 6) 0 20"
dmsetup create wcached --table "0 1048576 writecache s /dev/mapper/wslow $(D 9) 4096 0"
status() { dmsetup status cached; dmsetup status wcached; }
dd if=/dev/mapper/cached of=/dev/null bs=64k count=64 iflag=direct status=none
status
python3 -m tui record -o /tmp/r.luns --interval 1 --duration 60s --tier kernel >/dev/null &
until [ -s /tmp/r.luns ]; do sleep 1; done
sleep 5
read_twice() { for i in 1 2 3 4; do dd if=$1 of=/dev/null bs=4k count=200 skip=$2 iflag=direct status=none; done; }
read_twice /dev/mapper/cached 0
dd if=/dev/zero of=/dev/mapper/wcached bs=64k count=64 oflag=direct status=none
dd if=/dev/mapper/wcached of=/dev/null bs=64k count=64 iflag=direct status=none
read_twice /dev/bcache0 1000
wait
status
python3 -m tui report --from /tmp/r.luns -c --json
dd if=/dev/zero of=/tmp/pages bs=64k count=100 status=none; chmod 644 /tmp/pages
cat > /tmp/ask.py <<'END'
import json, os
from collectors.tables.cache.page_caches import page_cache_values
from collectors.tables.cache.page_caches import resident_bytes
descriptor = os.open("/tmp/pages", os.O_RDONLY)
try:
    print("pages", json.dumps(page_cache_values(descriptor)))
    print("resident", resident_bytes(descriptor, 6553600))
except OSError as error:
    print("refused", error.strerror)
END
export PYTHONPATH=$PWD:$PYTHONPATH; python3 /tmp/ask.py; sync; python3 /tmp/ask.py
setpriv --reuid nobody --regid nogroup --clear-groups python3 /tmp/ask.py
"""
"""The guest's `cached` is over a map with 20 ms delay; the writecache is over one with 20 ms for writes."""


KERNELS = ((), ("--kernel", "backports"))


@functools.cache
def printed(options: tuple[str, ...]) -> list[str]:
    return run_in_guest("stack", _IO, *options).splitlines()


@pytest.mark.parametrize("options", KERNELS)
def test_rows_of_real_caches(options: tuple[str, ...]) -> None:
    lines = printed(options)
    documents: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
    rows = [{each["kind"]: each for each in document["caches"]} for document in documents]
    last = rows[-1]
    assert last["dm-cache"]["name"].endswith("dm-cache writeback")
    assert last["dm-writecache"]["size_bytes"] > 0
    assert [last[kind]["failed"] for kind in ("dm-cache", "dm-writecache", "bcache")] == [0, 0, 0]
    statuses = [line.split()[3:] for line in lines if " cache " in line]
    hits, misses = (int(statuses[1][at]) - int(statuses[0][at]) for at in (4, 5))
    assert hits > 0
    assert _counted(documents, rows, "dm-cache", "hits_per_s") == pytest.approx(hits, abs=1)
    assert _counted(documents, rows, "dm-cache", "misses_per_s") == pytest.approx(misses, abs=1)
    written = [line.split()[3:] for line in lines if " writecache " in line]
    lookups = [int(words[4]) + int(words[6]) for words in written]
    assert _counted(documents, rows, "dm-writecache", "lookups_per_s") == pytest.approx(lookups[1] - lookups[0], abs=1)
    assert max(row["bcache"]["lookups_per_s"] or 0 for row in rows) > 0


@pytest.mark.parametrize("options", KERNELS)
def test_page_cache_of_a_file_with_and_without_cachestat(options: tuple[str, ...]) -> None:
    lines = printed(options)
    values = [json.loads(line.partition(" ")[2]) for line in lines if line.startswith("pages ")]
    resident = [int(line.split()[1]) for line in lines if line.startswith("resident ")]
    size = 100 << 16
    assert [(one["size_bytes"], one["used_bytes"]) for one in values[:2]] == [(size, size)] * 2
    assert resident[:2] == [size] * 2
    # Linux 6.1 has no cachestat(2).
    assert ["dirty_bytes" in one for one in values[:2]] == [bool(options)] * 2
    if not options:
        refused = [line for line in lines if line.startswith("refused ")]
        assert ["only its owner and those who may write it" in line for line in refused] == [True]


def _counted(documents: list[dict[str, Any]], rows: list[dict[str, Any]], kind: str, field: str) -> float:
    pairs = zip(documents, rows, strict=True)
    return sum((row[kind][field] or 0) * (document["interval_s"] or 0) for document, row in pairs if kind in row)
