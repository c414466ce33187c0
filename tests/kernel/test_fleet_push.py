"""`fleet --push`: hosts without lunscope get a copy, which is checked, run and removed."""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.kernel.ssh_hosts import PATIENCE_S, SshHosts, end, fleet_command

pytestmark = [needs.fleet]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    made = SshHosts(tmp_path_factory.mktemp("ssh"))
    yield made
    made.close()


def pushed(hosts: SshHosts, folder: Path, *others: str) -> list[str]:
    """A watch with copies below a folder, run in it so that nothing of this checkout is found there."""
    python = f"env -C {shlex.quote(str(folder))} TMPDIR={shlex.quote(str(folder))} {shlex.quote(sys.executable)}"
    return fleet_command("watch", hosts, "h1", "--json", "--push", "--python", python, *others, agent=None)


def await_gone(folder: Path) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while list(folder.iterdir()):
        assert time.monotonic() < deadline_s, list(folder.iterdir())
        time.sleep(0.05)


def test_a_copy_runs_in_a_private_folder_and_goes(hosts: SshHosts, tmp_path: Path) -> None:
    with subprocess.Popen(pushed(hosts, tmp_path, "--count", "2"), stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        document = json.loads(watch.stdout.readline())
        assert [each["state"] for each in document["hosts"]] == ["live"]
        (folder,) = tmp_path.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (folder / "tui").is_dir()
        watch.communicate(timeout=PATIENCE_S)
    await_gone(tmp_path)


def test_the_copy_goes_when_the_controller_is_killed(hosts: SshHosts, tmp_path: Path) -> None:
    watch = subprocess.Popen(pushed(hosts, tmp_path), stdout=subprocess.PIPE, text=True)
    try:
        assert watch.stdout is not None
        assert json.loads(watch.stdout.readline())["hosts"][0]["state"] == "live"
        assert list(tmp_path.iterdir())
    finally:
        end(watch)
    await_gone(tmp_path)


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("no-such-python3", "install lunscope there"),
        (f"{sys.executable} -S -I", "no Python package numpy, psutil, pyudev, click, msgspec there"),
    ],
    ids=["no Python", "no packages"],
)
def test_a_host_that_cannot_run_it_is_named_with_the_fix(hosts: SshHosts, python: str, says: str) -> None:
    command = fleet_command("watch", hosts, "h1", "--json", "--count", "1", "--push", "--python", python, agent=None)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    (host,) = json.loads(done.stdout.splitlines()[-1])["hosts"]
    assert host["state"] == "failed"
    assert says in host["reason"]
    assert done.returncode == 1
