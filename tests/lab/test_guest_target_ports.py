"""Target ports and the whole host over a real SCSI stack: two hosts that each see two targets with two LUNs."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

_SERIAL = r"""
export LUNSCOPE_STATE_DIR=/tmp/state
disks=$(ls -d /sys/block/sd* | xargs -n1 basename)
serial() {
    while :; do for disk in $disks; do dd if=/dev/$disk of=/dev/null bs=4k count=5 iflag=direct status=none; done; done
}
serial & load=$!
python3 -m tui report -L -H -T --total --json --tier exact 5 8
kill $load; wait
"""
"""One I/O at a time over all paths: times in which they are busy do not overlap, so that the union is their sum."""


def test_target_ports_are_their_paths_together() -> None:
    options = ("-e", "HOSTS=2", "-e", "TARGETS=2", "-e", "LUNS=2", "-e", "OPTS=ndelay=3000000")
    text = run_in_guest("scsi-debug-mp", _SERIAL, *options)
    found: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert len(found) == 8
    busy_pct = defaultdict[str, list[tuple[float, float]]](list)
    for document in found:
        paths = [path for path in document["paths"] if path["name"].startswith("sd")]
        assert len(paths) == 8
        for target in document["target_ports"]:
            own = [path for path in paths if path["target"] == target["id"]]
            if not own:
                continue
            assert target["paths"] == len(own) == 2
            assert target["iops"] == pytest.approx(sum(path["iops"] for path in own), rel=1e-6)
            # Programs are attached while the first intervals pass, and a group that is made then has no busy time yet.
            if target["tiers"].get("busy_pct") == "exact" and all(path["tiers"]["busy_pct"] == "exact" for path in own):
                busy_pct[target["id"]].append((target["busy_pct"], sum(path["busy_pct"] for path in own)))
        (host,) = document["whole_host"]
        assert host["iops"] == pytest.approx(sum(path["iops"] for path in document["paths"]), rel=1e-6)
        assert host["iops"] == pytest.approx(sum(port["iops"] for port in document["hbas"]), rel=1e-6)
        assert host["busy_low_pct"] <= host["busy_high_pct"] <= 100
    assert len(busy_pct) == 4
    for pairs in busy_pct.values():
        assert len(pairs) >= 3
        # Ports are read after paths: an I/O on its way then is in this interval of the one, in the next of the other.
        assert statistics.median(abs(port - paths) for port, paths in pairs) < 0.1
        assert sum(port for port, _ in pairs) == pytest.approx(sum(paths for _, paths in pairs), rel=0.02)
