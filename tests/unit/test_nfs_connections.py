"""Connections that carried a load: transports of the mounts of its files that sent requests meanwhile."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.model import MISSING, Rows, Sample, Table
from collectors.tables.nfs.connections import used_connections
from collectors.tables.nfs.schema import NFS_TRANSPORT, NfsKey
from engine.replacing import replace
from tests.unit.raw_samples import disks, rows, sample


def _sample(at: int, sends: dict[tuple[str, int], int]) -> Sample:
    keys = tuple(NfsKey("4.2", "tcp", "10.0.0.1", "srv:/x", point, str(part)).text for point, part in sends)
    values = np.zeros((len(keys), len(NFS_TRANSPORT.columns)), np.uint64)
    values[:, NFS_TRANSPORT.index("sends")] = list(sends.values())
    table = Table(NFS_TRANSPORT, Rows(keys, keys), values)
    return replace(sample(at, disks=disks(rows("sda"), {})), tables={NFS_TRANSPORT.name: table})


BEFORE = {("/mnt/a", 1): 5, ("/mnt/a", 2): 0, ("/mnt/a", 3): 9, ("/mnt/b\\040c", 1): 1, ("/mnt", 1): 0}
AFTER = {("/mnt/a", 1): 50, ("/mnt/a", 2): 40, ("/mnt/a", 3): 9, ("/mnt/b\\040c", 1): 2, ("/mnt", 1): 70}


@pytest.mark.parametrize(
    ("files", "count"),
    [
        (["/mnt/a/file"], 2),
        (["/mnt/a/file", "/mnt/b c/deep/file"], 3),
        (["/mnt/other"], 1),
        (["/data/file"], None),
        (["/dev/sda"], None),
        ([], None),
    ],
)
def test_transports_that_sent_are_counted(files: list[str], count: int | None) -> None:
    assert used_connections(_sample(1, BEFORE), _sample(2, AFTER), files) == count


def test_what_is_not_known_at_both_ends_is_not_counted() -> None:
    files = ["/mnt/a/file"]
    unknown = _sample(1, {**BEFORE, ("/mnt/a", 1): int(MISSING)})
    mounted_again = _sample(2, {**AFTER, ("/mnt/a", 3): 1})
    assert used_connections(unknown, _sample(2, AFTER), files) is None
    assert used_connections(_sample(1, BEFORE), mounted_again, files) is None
    assert used_connections(None, _sample(2, AFTER), files) is None
    assert used_connections(sample(1, disks=disks(rows("sda"), {})), _sample(2, AFTER), files) is None
