"""Runs a command of this tree in a guest of the lab, which boots a real kernel with real multipath storage."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

TIMEOUT_S = 600
_PROJECT = Path(__file__).parents[2]


def run_in_guest(topology: str, script: str, *options: str) -> str:
    """Boot a guest of that topology, run the script as root in the project's folder and return what it printed."""
    packages = sysconfig.get_path("purelib")
    lab = Path(os.environ["LUNSCOPE_LAB"], "lab")
    prepare = "cd /src; export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/src:/venv; "
    limit = str(TIMEOUT_S - 60)
    command = [
        str(lab),
        "run",
        "-t",
        topology,
        "--timeout",
        limit,
        *options,
        "--src",
        str(_PROJECT),
        "--ro",
        f"/venv={packages}",
    ]
    done = subprocess.run(
        [*command, "--", prepare + script], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout
