"""NFS mounts of a real client: figures against the kernel's own counters, and a server that goes away under load."""

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

_IO = r"""
mount -t nfs -o vers=4.1,nconnect=16,proto=tcp 127.0.0.1:/ /media
operations() {
    awk '/^device/ { on = $5 } /^[ \t]*(READ|READ_PLUS|WRITE|COMMIT):/ && on == "'$1'" { print "'$2'", $1, $2 }' \
        /proc/self/mountstats
}
for point in /mnt/v4 /mnt/v3; do operations $point before; done
python3 -m tui record -o /tmp/r.luns --interval 1 --duration 3600s --tier kernel >/dev/null &
recorder=$!
until [ -s /tmp/r.luns ]; do kill -0 $recorder || exit 1; sleep 1; done
sleep 5
for point in /mnt/v4 /mnt/v3; do
    dd if=/dev/urandom of=$point/data bs=64k count=64 oflag=direct status=none
    dd if=$point/data of=/dev/null bs=64k count=64 iflag=direct status=none
    dd if=/dev/zero of=$point/buffered bs=64k count=64 conv=fsync status=none
done
sleep 3
for point in /mnt/v4 /mnt/v3; do operations $point after; done
rpc.nfsd 0
dd if=/dev/zero of=/mnt/v3/late bs=4k count=1 oflag=direct status=none &
hanging=$!
sleep 12
kill $recorder; wait $recorder
echo "still hanging: $(kill -0 $hanging 2>/dev/null && echo yes)"
rpc.nfsd 4
python3 -m tui report --from /tmp/r.luns -N -X --json
python3 -m tui report --from /tmp/r.luns -N | grep '^Average' | head -20
"""


@pytest.mark.parametrize("options", [(), ("--kernel", "backports")])
def test_mounts_and_transports_of_a_real_client(options: tuple[str, ...]) -> None:
    lines = run_in_guest("nfs", _IO, *options).splitlines()
    documents: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
    counted = _counted(lines, "after", _counted(lines, "before", {}))
    for point in ("/mnt/v4", "/mnt/v3"):
        for operation in ("WRITE", "COMMIT"):
            mine = _sum(documents, point, (operation,))
            assert mine == pytest.approx(counted[point, operation], abs=1), (point, operation)
        reads = sum(counted.get((point, each), 0) for each in ("READ", "READ_PLUS"))
        assert min(reads, counted[point, "WRITE"]) >= 64
        assert _sum(documents, point, ("READ", "READ_PLUS")) == pytest.approx(reads, abs=1)
    assert "still hanging: yes" in lines
    assert len(documents) >= 15, "samples while the server is away"
    rows = [row for document in documents for row in document["nfs"]]
    assert {(row["mount"], row["version"]) for row in rows} >= {("/mnt/v4", "4.2"), ("/mnt/v3", "3"), ("/media", "4.1")}
    transports = [row for document in documents for row in document["nfs_transports"]]
    assert {int(row["transport"]) for row in transports if row["mount"] == "/mnt/v4"} == {1, 2, 3, 4}
    assert any(row["mount"] == "/mnt/v3" and row["slots_limit"] == 65536 for row in transports)


def _counted(lines: list[str], when: str, before: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Operations by mount point, less those of before; each `operations` prints those of one mount in turn."""
    points = iter(("/mnt/v4", "/mnt/v3"))
    found: dict[tuple[str, str], int] = {}
    point = ""
    for line in lines:
        words = line.split()
        if words[:1] == [when]:
            operation = words[1].rstrip(":")
            point = next(points) if operation == "READ" else point
            found[point, operation] = int(words[2]) - before.get((point, operation), 0)
    return found


def _sum(documents: list[dict[str, Any]], point: str, operations: tuple[str, ...]) -> float:
    """Operations of the recording up to the loss of the server, after which there are none."""
    return sum(
        (row["iops"] or 0) * (document["interval_s"] or 0)
        for document in documents
        for row in document["nfs"]
        if row["mount"] == point and row["operation"] in operations
    )
