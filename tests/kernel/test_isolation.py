"""The preset isolation on a real loop device with groups of cgroup v1; nothing of it is left, after kill -9 either."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.errors import LunscopeError
from engine.isolation.aggressor_group import AggressorGroup, LimitHierarchy
from tests import needs
from tests.ended import has_ended
from tests.kernel.conftest import Storage
from tests.kernel.forked_command import Forked, lunscope
from tests.kernel.throttle import throttle

pytestmark = [needs.root, needs.loop, throttle]

BLKIO = Path("/sys/fs/cgroup/blkio")
_CAP = 50
_PATIENCE_S = 60.0


@pytest.fixture
def command(storage: Storage, tmp_path: Path) -> list[str]:
    words = ("--preset", "isolation", "--target", storage.loop(), "--rate", "200", "--json")
    limits = ("--vary", "qd=4", "--cap", f"riops={_CAP}", "--within", "3", "--runtime", "3s")
    return ["sweep", "--tier", "kernel", *words, *limits, "--trials", str(tmp_path / "points")]


@pytest.fixture
def begun(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Lunscope with an aggressor that soon is limited."""
    with Forked(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        yield running
        if running.poll() is None:
            running.kill()


def _group(running: subprocess.Popen[str]) -> Path:
    """Find the group of the process that does the I/O, or of the one that waits for it."""

    def own() -> list[Path]:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        names = (f"lunscope-isolation-{number}" for number in (running.pid, *children))
        return [folder for name in names if (folder := BLKIO / name).exists()]

    _wait_for(lambda: bool(own()))
    return own()[0]


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.02)


def _is_capped(group: Path) -> bool:
    limit = (group / "blkio.throttle.read_iops_device").read_text()
    return limit.endswith(f" {_CAP}\n") and bool(_members(group))


def _members(group: Path) -> list[int]:
    return [int(line) for line in (group / "cgroup.procs").read_text().split()]


@pytest.mark.waits
def test_each_point_has_its_seconds_and_the_cap_holds_and_it_goes_on_from_the_points_kept(
    begun: subprocess.Popen[str], command: list[str], tmp_path: Path
) -> None:
    group = _group(begun)
    out, errors = begun.communicate(timeout=300)
    assert begun.returncode == 0, errors
    assert re.search(r"isolation: 4 points of 3 s", errors)
    assert not group.exists()
    document = json.loads(out)
    assert document["complete"]
    alone, free, capped, end = document["isolation"]["points"]
    assert (alone["aggressor"], end["aggressor"]) == (None, None)
    assert free["aggressor_iops"] > capped["aggressor_iops"] > 0
    # A burst at its start, and the I/Os outstanding at its end.
    assert capped["aggressor_iops"] < 2 * _CAP
    for point in (alone, free, capped, end):
        seconds = [second["duration_s"] for second in point["seconds"]]
        # On a busy machine two that were read late are one, and one that was read more than a second late is none.
        assert 1 <= len(seconds) <= 3
        assert all(0 < duration_s < 2 for duration_s in seconds)
        assert len(seconds) < 3 or sum(seconds) > 2.5
        assert sum(second["ios"] for second in point["seconds"]) > 0
    assert document["isolation"]["answer"]
    file = tmp_path / "points"
    file.write_bytes(file.read_bytes()[:-1])
    again = lunscope(*command, timeout_s=300)
    assert "goes on after 3 points in" in again.stderr
    assert json.loads(again.stdout)["isolation"]["points"][:3] == [alone, free, capped]
    assert json.loads(again.stdout)["complete"], again.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_after_a_signal(begun: subprocess.Popen[str], number: signal.Signals) -> None:
    group = _group(begun)
    _wait_for(lambda: _is_capped(group))
    members = _members(group)
    os.kill(begun.pid, number)
    out, errors = begun.communicate(timeout=300)
    _wait_for(lambda: not group.exists())
    _wait_for(lambda: all(map(has_ended, members)))
    if number is signal.SIGINT:
        assert begun.returncode == 130, errors
        document = json.loads(out)
        assert (document["complete"], document["isolation"]["ended"]) == (False, "stopped")
        assert len(document["isolation"]["points"]) == 2


def test_a_group_whose_keeper_was_killed_is_removed_and_that_is_said() -> None:
    group = AggressorGroup(LimitHierarchy(BLKIO, unified=False))
    killed = r"process \d+ was killed by SIGKILL; it is removed"
    with subprocess.Popen(["sleep", "600"]) as member:
        with pytest.raises(LunscopeError, match=killed):
            _lose_keeper(group, member)
        assert member.wait(_PATIENCE_S) == -signal.SIGKILL
    assert not group.folder.exists()


def _lose_keeper(group: AggressorGroup, member: subprocess.Popen[bytes]) -> None:
    with group:
        (group.folder / "cgroup.procs").write_text(str(member.pid))
        os.kill(group._keeper.pid, signal.SIGKILL)
