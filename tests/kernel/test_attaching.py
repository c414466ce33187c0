"""What tests attach is detached once, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import needs
from tests.attaching import attach_one, backing_of, detach_one

pytestmark = [needs.root, needs.loop, pytest.mark.alone]


def test_a_number_that_another_file_has_now_is_left_alone(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("first", "second"))
    for path in (first, second):
        path.write_bytes(bytes(1 << 20))
    device = attach_one("losetup", "--find", "--show", str(first))
    backing = backing_of(device)
    assert backing == str(first)
    first.unlink()
    detach_one(device, backing)
    assert backing_of(device) == ""
    attach_one("losetup", device, str(second))
    detach_one(device, backing)
    assert backing_of(device) == str(second)
    detach_one(device, str(second))
    assert backing_of(device) == ""
