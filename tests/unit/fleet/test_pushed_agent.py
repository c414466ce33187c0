"""The copy that --push sends: nothing of it is run unless it arrived as it was sent."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from collectors.fleet.pushed_agent import pushed_agent


def run(command: str, data: bytes, folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(
        ["/bin/sh", "-c", command], input=data, capture_output=True, env=environment, timeout=60, check=False
    )


@pytest.mark.slow
def test_it_has_the_packages_and_no_sources_of_the_core() -> None:
    names = zipfile.ZipFile(io.BytesIO(pushed_agent().payload)).namelist()
    assert {"engine/version.py", "collectors/fleet/agent.py", "tui/__main__.py"} <= set(names)
    assert any(name.endswith(".so") for name in names)
    assert not [name for name in names if name.startswith("engine/native/") or "__pycache__" in name]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["changed", "cut off"])
def test_a_copy_that_arrives_damaged_is_not_run(damage: str, tmp_path: Path) -> None:
    made = pushed_agent(sys.executable)
    data = bytearray(made.payload)
    data[len(data) // 2] ^= 1
    done = run(made.command, bytes(data) if damage == "changed" else made.payload[:-1], tmp_path)
    assert done.returncode == 1
    assert (b"arrived damaged" if damage == "changed" else b"the connection was closed") in done.stderr
    assert done.stdout == b""
    assert not list(tmp_path.iterdir())
