"""Hosts of a fleet that send nothing: the others are shown and driven, and what is missing is said within seconds."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from collectors.fleet.frames import PROTOCOL, encode
from tests import needs
from tests.kernel.forked_command import lunscope
from tests.kernel.simulated_fleet import simulated_command
from tests.kernel.ssh_hosts import REPOSITORY

pytestmark = [needs.cluster_shell]

_MUTE = shlex.quote(encode("hello", protocol=PROTOCOL, version="1", host="mute", time_ns=0).decode().strip())


@pytest.mark.waits
def test_one_host_that_sends_nothing_does_not_silence_the_others(tmp_path: Path) -> None:
    good = simulated_command(tmp_path, disks=2, seconds=30)
    agent = f"case %h in mute) echo {_MUTE}; exec cat >/dev/null;; *) {good};; esac"
    command = (sys.executable, "-m", "tui", "fleet", "watch", "--local", "--hosts", "a[1-2],mute", "--json")
    with subprocess.Popen(
        [*command, "--agent", agent], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watch:
        assert watch.stdout is not None
        documents = (json.loads(line) for line in islice(watch.stdout, 60))
        document = next(each for each in documents if all(host["iops"] is not None for host in each["hosts"][:2]))
        watch.terminate()
        _, said = watch.communicate()
    assert [each["host"] for each in document["missing"]] == ["mute"]
    assert document["hosts"][2]["iops"] is None
    assert re.search(r"^lunscope: mute greeted but sends no sample for \d+ s.* shown$", said, re.MULTILINE), said


def test_a_host_that_cannot_record_says_so_and_drives_the_load(tmp_path: Path) -> None:
    agent = (
        f"cd {shlex.quote(str(REPOSITORY))} && exec env XDG_STATE_HOME=/dev/null/x LUNSCOPE_SCRATCH_DIR={tmp_path} "
        f"{shlex.quote(sys.executable)} -m tui agent --stdio --tier kernel"
    )
    job = ("--size", "1m", "--rate", "50", "--runtime", "1s", "--json", "--window", "1s")
    done = lunscope("fleet", "run", "--local", "--hosts", "a1", "--agent", agent, *job)
    assert "lunscope: a1: records nothing: /dev/null/x/lunscope/fleet: Not a directory" in done.stderr
    assert json.loads(done.stdout)["total"]["ios"] > 0
    assert done.returncode == 0
