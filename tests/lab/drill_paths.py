"""Runs in a guest with several paths to each LUN: last paths that are refused, and drills that are killed.

`refuse` asks 100 times for the last usable path of a LUN, the others having been taken offline behind lunscope's back;
`kill SECONDS` kills as many drills as that time allows, at any moment of them, and looks whether their paths come back.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.drill.paths import HostPaths
from engine.drill.run import DrillRun
from engine.errors import RefusedError
from engine.hostfs.kernel_files import Roots
from engine.tune.journal import Journal
from engine.tune.scope import Host
from engine.tune.tree import KernelTree

TIMES = 100
PATIENCE_S = 60.0


def luns() -> dict[str, list[str]]:
    """Names of the SCSI paths of each LUN."""
    found: dict[str, list[str]] = {}
    for disk in sorted(Path("/sys/block").glob("sd*")):
        found.setdefault((disk / "device/wwid").read_text().strip(), []).append(disk.name)
    return {wwid: names for wwid, names in found.items() if len(names) > 1}


def state(name: str) -> Path:
    return Path("/sys/block", name, "device/state")


def used_by_maps(name: str) -> bool:
    """Whether every multipath map over a path uses it."""
    number = Path("/sys/block", name, "dev").read_text().strip()
    with KernelTree() as tree:
        for holder in Path("/sys/block", name, "holders").iterdir():
            major, minor = map(int, (holder / "dev").read_text().split(":"))
            answer = tree.maps.query((major, minor), table=False)
            if answer is None or f"{number} A" not in answer.parameters:
                return False
    return True


def is_back(name: str) -> bool:
    return state(name).read_text().strip() == "running" and used_by_maps(name)


def is_offline(name: str) -> bool:
    return state(name).read_text().strip() == "offline" or not used_by_maps(name)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.005)


def refuse() -> None:
    chooser, refused, known = random.Random(1), 0, list(luns().values())
    with KernelTree() as tree:
        for _ in range(TIMES):
            names = list(chooser.choice(known))
            last = names.pop(chooser.randrange(len(names)))
            for name in names:
                state(name).write_text("offline\n")
            try:
                HostPaths(Host(tree), Roots()).plan(chooser.choice(([last], [last, *names], [f"lun:{last}"])))
            except RefusedError as error:
                refused += 1
                if refused == 1:
                    print("first:", error)  # noqa: T201 (the test reads it)
            for name in names:
                state(name).write_text("running\n")
    print("refused:", refused, "of", TIMES)  # noqa: T201 (the test reads it)


def drill(scope: str, journal: Journal) -> None:
    with KernelTree() as tree:
        look = partial(HostPaths, Host(tree), Roots())
        DrillRun(tree, look, journal, _slept, lambda _text: None).run([scope], 600.0, 0.0)


def _slept(timeout_s: float) -> str:
    time.sleep(timeout_s)
    return ""


def kill(length_s: float) -> None:
    chooser, killed, back, offline = random.Random(2), 0, 0, 0
    journal, until_s = Journal(), time.monotonic() + length_s
    known = [name for names in luns().values() for name in names]
    while killed < TIMES and time.monotonic() < until_s:
        name = chooser.choice(known)
        wait_for(partial(is_back, name), "never usable")
        child = os.fork()
        if not child:
            drill(name, journal)
            os._exit(0)
        if chooser.random() < 0.3:
            time.sleep(chooser.random() * 2)
        else:
            wait_for(partial(is_offline, name), "no drill")
            time.sleep(chooser.random() * 0.2)
        offline += is_offline(name)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed += 1
        try:
            wait_for(lambda: not any(journal.is_held(one.number) for one in journal.records()), "held")
            wait_for(partial(is_back, name), "not running, or not used")
        except AssertionError as error:
            print("not back:", name, error)  # noqa: T201 (the test reads it)
            continue
        back += 1
    print("killed:", killed, "offline:", offline, "back:", back)  # noqa: T201 (the test reads it)


if __name__ == "__main__":
    if sys.argv[1] == "refuse":
        refuse()
    else:
        kill(float(sys.argv[2]))
