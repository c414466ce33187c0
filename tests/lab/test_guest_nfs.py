"""NFS mounts of a real client: figures against the kernel's own counters and a reader's clock, and a lost server."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from collectors.latency.heat_map import bucket_of
from collectors.tables.nfs.schema import LATENCY_SCALE
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


_WITNESS = r"""
mkdir /mnt/one /mnt/sixteen /mnt/second
mount -t nfs -o vers=4.0,proto=tcp 127.0.0.1:/ /mnt/one
mount -t nfs -o vers=4.1,nconnect=16,proto=tcp 127.0.0.1:/ /mnt/sixteen
# A file system of its own on the connections of /mnt/v3.
mount -t nfs -o vers=3,nconnect=2,proto=tcp,nolock,nosharecache 127.0.0.1:/srv/x /mnt/second
dd if=/dev/urandom of=/mnt/v4/data bs=64k count=4 conv=fsync status=none
tc qdisc add dev lo root netem delay 10ms
python3 -m tui record -o /tmp/r.luns --interval 1 --duration 3600s >/dev/null & recorder=$!
until [ -s /tmp/r.luns ]; do kill -0 $recorder || exit 1; sleep 0.5; done
sleep 4
python3 -m tests.lab.read_nfs 28 2 /mnt/one/data /mnt/v4/data /mnt/sixteen/data
python3 -m tests.lab.read_nfs 5 0 /mnt/v3/data /mnt/second/data
sleep 2
kill $recorder; wait $recorder
python3 -m tui report --from /tmp/r.luns -N -X --json
python3 -m tui report --from /tmp/r.luns -N -P | grep '^Average'
python3 -m tui export /tmp/r.luns --format jsonl --table slow_calls
"""
_CONNECTIONS = {"/mnt/one": 1, "/mnt/v4": 4, "/mnt/sixteen": 16}
_READS = ("READ", "READ_PLUS")
_SLOW_READS = 2 * 4
"""By each thread of the reader; as many of one operation and interval are listed."""


@pytest.mark.parametrize("options", [(), ("--kernel", "backports")])
def test_percentiles_are_those_of_a_reader_that_times_itself(options: tuple[str, ...]) -> None:
    lines = run_in_guest("nfs", _WITNESS, *options).splitlines()
    documents = [json.loads(line) for line in lines if line.startswith("{")]
    took_ns = {one["witness"].rpartition("/")[0]: one["took_ns"] for one in documents if "witness" in one}
    intervals: list[dict[str, Any]] = [one for one in documents if "nfs" in one]
    averages = [line.split()[1:] for line in lines if line.startswith("Average:")]
    newer = bool(options)
    for point, connections in _CONNECTIONS.items():
        reads = next(words for words in averages if words[0] == point and words[1] in _READS)
        p99_ns = 1e6 * float(reads[-2])
        rank = math.ceil(0.99 * len(took_ns[point]))
        mine, theirs = bucket_of(LATENCY_SCALE, np.array([p99_ns, float(took_ns[point][rank - 1])])).tolist()
        assert abs(mine - theirs) <= 1, (point, p99_ns, took_ns[point])
        assert _timed(intervals, "nfs", point, _READS) == len(took_ns[point])
        # What mountstats counts, of which a call may end between the readings of both.
        timed, counted = _timed(intervals, "nfs", point, ("all",)), _sum(intervals, point, ("all",))
        assert timed == pytest.approx(counted, abs=2)
        transports = {row["transport"] for one in intervals for row in one["nfs_transports"] if row["mount"] == point}
        assert len(transports) == connections
        by_transport = _timed(intervals, "nfs_transports", point, transports)
        assert by_transport == pytest.approx(timed if newer else 0, rel=0.001)
    sharing = {point: _timed(intervals, "nfs", point, _READS) for point in ("/mnt/v3", "/mnt/second")}
    by_client = [
        _timed([one], "nfs", "-", ("READ",)) for one in intervals if any(row["mount"] == "-" for row in one["nfs"])
    ]
    slow = [one for one in documents if one.get("schema") == "lunscope.slow_calls/1"]
    for point, connections in _CONNECTIONS.items():
        reads_ms = [one["execute_ms"] for one in slow if one["mount"] == point and one["operation"] in _READS]
        slowest_ms, theirs_ms = sorted(reads_ms)[-_SLOW_READS:], [ns / 1e6 for ns in took_ns[point][-_SLOW_READS:]]
        # The reader wakes up after its call has ended.
        assert all(0.9 * took <= ms <= took for ms, took in zip(slowest_ms, theirs_ms, strict=True)), (point, slow)
        known = {one["transport"] for one in slow if one["mount"] == point}
        assert known <= ({str(number + 1) for number in range(connections)} if newer else {"-"})
    assert any(one["command"].startswith("python3") and one["pid"] for one in slow), slow
    assert all(one["pid"] is None for one in slow if one["operation"] in _READS)
    assert all(int(one["xid"], 16) for one in slow)
    both = len(took_ns["/mnt/v3"]) + len(took_ns["/mnt/second"])
    if newer:
        assert sharing == {point: len(took_ns[point]) for point in sharing}
    else:
        assert sharing == dict.fromkeys(sharing, 0)
        assert sum(by_client) == both


def _timed(intervals: list[dict[str, Any]], table: str, point: str, parts: Collection[str]) -> float:
    """Operations timed one by one, of rows of these operations or transports."""
    part = "operation" if table == "nfs" else "transport"
    return sum(
        round((row["timed_per_s"] or 0) * (one["interval_s"] or 0))
        for one in intervals
        for row in one[table]
        if row["mount"] == point and row[part] in parts
    )
