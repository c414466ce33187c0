"""Several device nodes as one LUN: accepted when asked for and when they are, refused in words otherwise."""

from __future__ import annotations

import pytest

from engine.errors import RefusedError, UsageError
from engine.guard import OpenTarget, open_targets
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.job.target_text import parse_lun
from tests import needs
from tests.kernel.conftest import Storage

pytestmark = needs.loop
MIB = 1 << 20


def opened(*targets: TargetSpec, read_pct: float = 100.0, permissions: Permissions | None = None) -> list[OpenTarget]:
    job = JobSpec(targets, Knobs(stripe_width=len(targets), read_pct=read_pct))
    return open_targets(job, permissions or Permissions())


def lun(*devices: str) -> TargetSpec:
    return parse_lun(",".join(devices))


def test_loop_devices_over_one_file_are_paths_and_each_is_opened(storage: Storage) -> None:
    image = storage.image(8 * MIB)
    first, second = storage.loop(backing=image), storage.loop(backing=image)
    (target,) = opened(lun(first, second))
    try:
        assert target.name == f"{first} (2 paths)"
        assert [node.path for node in target.nodes] == [first, second]
        assert len({node.fd for node in target.nodes}) == 2
        assert target.size_bytes == 8 * MIB
        target.recheck()
    finally:
        target.close()
    assert all(node.fd == -1 for node in target.nodes)


def test_the_same_two_without_being_asked_for_are_one_target_twice(storage: Storage) -> None:
    image = storage.image(8 * MIB)
    first, second = storage.loop(backing=image), storage.loop(backing=image)
    with pytest.raises(UsageError, match="on the same file"):
        opened(TargetSpec(first), TargetSpec(second))
    with pytest.raises(UsageError, match="on the same"):
        opened(lun(first, second), TargetSpec(second))
    third = storage.loop(backing=image)
    with pytest.raises(UsageError, match="on the same file"):
        opened(lun(first, second), TargetSpec(third))


def test_what_are_no_paths_of_one_lun_is_refused(storage: Storage) -> None:
    image = storage.image(8 * MIB)
    first, other = storage.loop(backing=image), storage.loop(8 * MIB)
    smaller, shifted = storage.loop(4 * MIB), storage.loop(backing=image, options=("--offset", "4096"))
    with pytest.raises(UsageError, match="nothing says that they are"):
        opened(lun(first, other))
    with pytest.raises(UsageError, match=f"one has {8 * MIB} bytes, the other {4 * MIB}"):
        opened(lun(first, smaller))
    with pytest.raises(UsageError, match="not paths of one LUN"):
        opened(lun(first, shifted))
    with pytest.raises(UsageError, match="given twice"):
        opened(lun(first, f"/dev/../{first}"))
    with pytest.raises(UsageError, match="no whole disk"):
        opened(lun(first, str(image)))
    with pytest.raises(UsageError, match="no such file or device"):
        opened(lun(first, "/dev/loop-that-is-not"))


def test_a_partition_is_no_path(storage: Storage) -> None:
    disk = storage.loop(8 * MIB)
    part = storage.partition(disk, 1, 1, 2)
    with pytest.raises(UsageError, match="no whole disk"):
        opened(lun(part, disk))


def test_writing_takes_the_permission_for_every_path(storage: Storage) -> None:
    image = storage.image(8 * MIB)
    first, second = storage.loop(backing=image), storage.loop(backing=image)
    for allowed in (frozenset[str](), frozenset({first}), frozenset({second})):
        with pytest.raises(RefusedError, match="--allow-write"):
            opened(lun(first, second), read_pct=50, permissions=Permissions(allowed))
    (target,) = opened(lun(first, second), read_pct=50, permissions=Permissions(frozenset({first, second})))
    assert all(node.writable for node in target.nodes)
    target.close()


@needs.mkfs_ext4
def test_data_and_mounts_are_seen_through_every_path(storage: Storage) -> None:
    image = storage.image(64 * MIB)
    first, second = storage.loop(backing=image), storage.loop(backing=image)
    both = frozenset({first, second})
    storage.mkfs(first)
    with pytest.raises(RefusedError, match="--destroy-data"):
        opened(lun(first, second), read_pct=0, permissions=Permissions(both))
    storage.mount(second)
    with pytest.raises(RefusedError, match="mounted"):
        opened(lun(first, second), read_pct=0, permissions=Permissions(both, destroy_data=True))
