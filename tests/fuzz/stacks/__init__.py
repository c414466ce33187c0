"""Random stacks over one file: who uses its bytes by one way is not harmed by a load that is given another way.

What the guard allows is really written. A plan fails if the bytes of its user changed, if data was destroyed without
--destroy-data, or if it was refused although nobody uses the bytes. `python -m tests.fuzz.stacks PLAN...` tries plans,
given as text or as files that hold it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.campaign import KEPT, save
from tests.fuzz.stacks.drawing import draw_plan
from tests.fuzz.stacks.judging import Outcome
from tests.fuzz.stacks.plan import Plan, in_words, parse_plan, plan_text
from tests.fuzz.stacks.workplace import workplace

LEAST, LEAST_IN_TEST = 500, 40
_MOST_FAILURES = 8


def refusal() -> str:
    """Why there can be no stacks here; empty if there can."""
    if os.geteuid():
        return "not root"
    if not Path("/dev/loop-control").exists():
        return "no loop devices"
    return "" if shutil.which("mkfs.ext4") else "mkfs.ext4 is not installed"


def run(seed: int, count: int, seconds: float, least: int = 0) -> int:
    """Try the plans that once failed, then drawn ones.

    Raises:
        AssertionError: names the plans that failed, and how to try them again.
    """
    end_s = time.monotonic() + seconds
    failures: list[str] = []
    tried = 0
    with workplace() as place:
        for plan in _plans(seed, count):
            if (tried >= least and time.monotonic() >= end_s) or len(failures) >= _MOST_FAILURES:
                break
            outcome = place.try_plan(plan)
            tried += 1
            if outcome.wrong:
                failures.append(_report(plan, outcome))
    assert not failures, "\n".join(failures)
    return tried


def has_maps() -> bool:
    """Whether there are layers of the device mapper here."""
    return Path("/dev/mapper/control").exists() and shutil.which("dmsetup") is not None


def _plans(seed: int, count: int) -> Iterator[Plan]:
    yield from (parse_plan(path.read_bytes()) for path in sorted((KEPT / "stacks").glob("*.plan")))
    yield from (draw_plan(seed, index, mapped=has_maps()) for index in range(count))


def _report(plan: Plan, outcome: Outcome) -> str:
    path = save("stacks", plan_text(plan).encode(), "plan")
    again = shlex.join([sys.executable, "-m", "tests.fuzz.stacks", str(path)])
    return f"{in_words(plan)}: {outcome.wrong}\n    again: {again}"
