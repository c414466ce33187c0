"""Runs a command of this tree in a guest of the lab, which boots a real kernel with real multipath storage."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 600
BOOTS = 2
KERNELS = tuple(os.environ.get("LUNSCOPE_LAB_KERNELS", "stable,backports").split(","))
"""Kernels of the lab that tests of exact time run on; one made of older and newer ones, too, is asked for by name."""
NOT_RUN = 125
"""Status of `lab run` when the guest's topology could not be set up or its kernel ended."""
_BEGAN = "the script begins"
_ENDED = "the script has ended: "
_PROJECT = Path(__file__).parents[2]


def run_in_guest(topology: str, script: str, *options: str) -> str:
    """Boot a guest of that topology, run the script as root in the project's folder and return what it printed.

    A kernel that panics over its timers or a udev that does not settle before the script has begun says that this
    host is loaded, and nothing of the script: the guest is booted once more. What happens afterwards counts.
    """
    done = _run(topology, script, *options, limit_s=TIMEOUT_S - 60)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def run_one_by_one(topology: str, scripts: Sequence[str], *options: str) -> dict[str, Ended]:
    """Run scripts one after the other in one guest, as to boot takes longer than most of them."""
    each = [f"(\n{script}\n)\necho '{_ENDED}'$?" for script in scripts]
    done = _run(topology, "\n".join(each), *options, limit_s=TIMEOUT_S * len(scripts))
    *parts, rest = re.split(f"{_ENDED}([0-9]+)\n", done.stdout)
    ended = [Ended(int(status), printed, done.stderr) for printed, status in zip(parts[::2], parts[1::2], strict=True)]
    # The guest's kernel or its time ended in the midst of a script.
    unfinished = Ended(done.returncode or NOT_RUN, rest, done.stderr)
    return dict(zip(scripts, [*ended, *[unfinished] * len(scripts)], strict=False))


@dataclass(frozen=True)
class Ended:
    """A script that ended, or would have run."""

    status: int
    printed: str
    errors: str
    """Errors of all scripts of the guest."""


def _run(topology: str, script: str, *options: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    deadline_s = time.monotonic() + limit_s
    for _ in range(BOOTS):
        done = _boot(topology, script, *options, limit_s=deadline_s - time.monotonic())
        if done.returncode != NOT_RUN or _BEGAN in done.stderr:
            break
        warnings.warn(f"guest {topology} did not boot: {done.stderr.strip()[-300:]}", stacklevel=3)
    return done


def _boot(topology: str, script: str, *options: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    lab = Path(os.environ["LUNSCOPE_LAB"], "lab")
    folders = ["--src", str(_PROJECT), "--ro", f"/venv={sysconfig.get_path('purelib')}"]
    prepare = f"echo '{_BEGAN}' >&2; cd /src; export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/src:/venv; "
    command = [str(lab), "run", "-t", topology, "--timeout", f"{limit_s:.0f}", *options, *folders]
    return subprocess.run(
        [*command, "--", prepare + script], capture_output=True, text=True, timeout=limit_s + 60, check=False
    )
