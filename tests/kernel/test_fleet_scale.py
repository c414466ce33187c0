"""Many connections over one real sshd that drops most of those begun at once: none is lost, and figures arrive."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import needs
from tests.kernel.simulated_fleet import simulated_command
from tests.kernel.ssh_hosts import PATIENCE_S, SshHosts, fleet_command

HOSTS, DISKS = 20, 50

pytestmark = [pytest.mark.slow, needs.fleet]


def test_connections_that_sshd_drops_are_made_again(tmp_path: Path) -> None:
    agent = simulated_command(tmp_path, disks=DISKS, seconds=300)
    hosts = SshHosts(tmp_path / "ssh", options="MaxStartups 4:100:5")
    command = fleet_command("watch", hosts, f"h[1-{HOSTS}]", "--json", "--count", "3", agent=agent)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=6 * PATIENCE_S, check=False)
    finally:
        hosts.close()
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [host["state"] for host in lines[-1]["hosts"]] == ["live"] * HOSTS
    assert "beginning MaxStartups throttling" in (hosts.folder / "log").read_text(), "nothing was dropped"
    # A busy machine may be late with some samples, not with most of them.
    assert max(line["total"]["disks"] or 0 for line in lines) > HOSTS * DISKS // 2
