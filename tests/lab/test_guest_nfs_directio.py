"""The preset directio on files of NFS mounts: what is direct goes to the server, buffered reads come from the cache."""

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

_MODES = {"direct", "buffered", "sync"}
_SCRIPT = r"""
# Bytes read by programs, in the usual way and directly: fields 1 and 3 of nfs_show_stats (fs/nfs/super.c).
bytes() { awk '/^device/ { on = $5 } /^[ \t]*bytes:/ && on == "'$1'" { print "bytes", $2, $4 }' /proc/self/mountstats; }
sum() { sha256sum < $1; }
for point in /mnt/v4 /mnt/v3; do
    file=$point/$(basename $point)
    dd if=/dev/urandom of=$file bs=1M count=8 conv=fsync status=none
    before=$(sum $file)
    for mode in direct buffered,sync; do
        bytes $point
        python3 -m tui sweep --preset directio --target $file --vary mode=$mode --vary qd=1,4 --vary bs=64k \
            --runtime 1s --json || exit 1
        bytes $point
    done
    test "$before" = "$(sum $file)" && echo "unchanged"
    python3 -m tui run --target $file --headless --json --runtime 1s | tail -1
done
"""


def test_each_mode_of_the_preset_on_nfs_mounts() -> None:
    lines = run_in_guest("nfs", _SCRIPT).splitlines()
    documents: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
    sweeps = [document for document in documents if document["schema"] == "lunscope.preset/1"]
    counted = [tuple(map(int, line.split()[1:])) for line in lines if line.startswith("bytes")]
    assert len(sweeps) == 4
    for sweep, before, after in zip(sweeps, counted[::2], counted[1::2], strict=True):
        rows = sweep["tables"][1]["rows"]
        usual, direct = (late - early for early, late in zip(before, after, strict=True))
        measured = sum(row["megabytes_per_s"] * 1e6 for row in rows)
        assert sweep["complete"]
        assert all(row["direction"] == "read" and row["host_cpu_s_per_gb"] > 0 for row in rows), "reads only"
        if {row["mode"] for row in rows} == {"direct"}:
            # Each point is of 1 s; its warm-up reads, too.
            assert len(rows) == 2
            assert direct >= measured * 0.9
        else:
            assert len(rows) == 4
            assert usual >= measured * 0.9
            assert direct < usual
    assert {row["mode"] for sweep in sweeps for row in sweep["tables"][1]["rows"]} == _MODES
    assert lines.count("unchanged") == 2
    notices = [line for line in lines if "network and server" in line]
    assert any("on nfs4: " in line for line in notices)
    assert any("on nfs: " in line for line in notices)
