"""What tests attach is detached once, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import needs
from tests.attaching import attached, backing_of
from tests.kernel.conftest import run

pytestmark = [needs.root, needs.loop, pytest.mark.alone]


def test_a_number_that_another_file_has_now_is_left_alone(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("first", "second"))
    for path in (first, second):
        path.write_bytes(bytes(1 << 20))
    with attached("losetup", "--find", "--show", str(first)) as device:
        assert backing_of(device) == str(first)
        first.unlink()
    assert backing_of(device) == ""
    first.write_bytes(bytes(1 << 20))
    with attached("losetup", "--show", device, str(first)):
        run("losetup", "--detach", device)
        run("losetup", device, str(second))
    assert backing_of(device) == str(second)
    run("losetup", "--detach", device)
    assert backing_of(device) == ""
