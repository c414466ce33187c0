"""One target under two names is refused with both names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.guard import open_targets
from engine.job.spec import JobSpec, Knobs, Mode, Permissions, TargetSpec
from tests import needs
from tests.kernel.conftest import Storage

MIB = 1 << 20


def targets(*paths: str | Path) -> list[str]:
    job = JobSpec(tuple(TargetSpec(str(path)) for path in paths), Knobs(mode=Mode.BUFFERED))
    opened = open_targets(job, Permissions())
    for target in opened:
        target.close()
    return [target.name for target in opened]


def refused(first: str | Path, second: str | Path) -> None:
    for pair in ((first, second), (second, first)):
        with pytest.raises(UsageError) as caught:
            targets(*pair)
        assert f"{pair[0]} and {pair[1]} are" in str(caught.value)
        assert caught.value.exit_code == 2


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(MIB))
    return path


def test_files_under_two_names(data_file: Path) -> None:
    link, hard = data_file.with_name("link"), data_file.with_name("hard")
    link.symlink_to(data_file)
    hard.hardlink_to(data_file)
    refused(data_file, data_file)
    refused(data_file, link)
    refused(data_file, hard)
    refused(link, f"{data_file.parent}/./{data_file.name}")
    with data_file.open("rb") as file:
        refused(data_file, f"/proc/self/fd/{file.fileno()}")


def test_two_files_are_two_targets(data_file: Path) -> None:
    other = data_file.with_name("other")
    other.write_bytes(os.urandom(MIB))
    assert targets(data_file, other) == [str(data_file), str(other)]


def test_one_new_file_under_two_names(tmp_path: Path) -> None:
    job = JobSpec(
        (TargetSpec(f"{tmp_path}/new"), TargetSpec(f"{tmp_path}/./new")), Knobs(mode=Mode.BUFFERED), size_bytes=MIB
    )
    typed = frozenset(str(target.path) for target in job.targets)
    with pytest.raises(UsageError, match=r"new and .*new are the same file"):
        open_targets(job, Permissions(typed=typed))
    assert not (tmp_path / "new").exists()


@needs.root
@needs.loop
def test_devices(storage: Storage) -> None:
    image = storage.image(96 * MIB)
    disk = storage.loop(backing=image)
    link = storage.folder / "ata-DISK"
    link.symlink_to(disk)
    first, second = storage.partition(disk, 1, 1, 30), storage.partition(disk, 2, 32, 30)
    refused(disk, link)
    refused(disk, f"/proc/self/root{disk}")
    refused(disk, first)
    refused(disk, image)
    refused(disk, storage.loop(backing=image))
    refused(disk, storage.loop(backing=disk))
    assert targets(first, second) == [first, second]
    assert len(targets(disk, storage.loop())) == 2


@needs.root
@needs.loop
def test_parts_of_one_file_by_loop_devices_with_offsets(storage: Storage) -> None:
    image = storage.image(16 * MIB)
    first = storage.loop(backing=image, options=("--sizelimit", str(8 * MIB)))
    second = storage.loop(backing=image, options=("--offset", str(8 * MIB)))
    inside = storage.loop(backing=image, options=("--offset", str(4 * MIB), "--sizelimit", str(8 * MIB)))
    assert targets(first, second) == [first, second]
    refused(first, inside)
    refused(second, inside)
    refused(second, image)


@needs.root
@needs.loop
def test_loop_devices_over_one_device(storage: Storage) -> None:
    disk = storage.loop()
    upper, other = storage.loop(backing=disk), storage.loop(backing=disk)
    first, second = storage.partition(upper, 1, 1, 30), storage.partition(upper, 2, 32, 30)
    refused(upper, other)
    refused(first, other)
    refused(first, disk)
    assert targets(first, second) == [first, second]
