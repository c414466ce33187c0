"""Starts and turns of one load over real agents behind a real sshd on loopback: how far apart the hosts were.

All hosts are this one, so that their clock is the same: what the agents report is right, and the bound of a clock is
what the controller could know of it. All agents share the cores with the controller.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from tests.kernel.ssh_hosts import SshHosts, fleet_command

HOSTS, QUICK_HOSTS = (3, 10), (3,)
TURNS, QUICK_TURNS = 20, 6
EVERY_S, FIRST_S = 1.0, 2.0
RATE = 200
GOAL_MS, GOAL_BOUND_MS = 10.0, 1.0


def main(*, quick: bool = False) -> None:
    if not (os.geteuid() == 0 and shutil.which("ssh") and Path("/usr/sbin/sshd").exists()):
        print("left out: needs root, ssh and sshd")
        return
    with tempfile.TemporaryDirectory(prefix="lunscope-bench-turns-") as folder:
        hosts = SshHosts(Path(folder) / "ssh")
        try:
            for count in QUICK_HOSTS if quick else HOSTS:
                _measure(hosts, Path(folder), count, QUICK_TURNS if quick else TURNS)
        finally:
            hosts.close()


def _measure(hosts: SshHosts, folder: Path, count: int, turns: int) -> None:
    scenario = folder / "scenario.toml"
    scenario.write_text(_scenario(turns))
    command = fleet_command("run", hosts, f"h[1-{count}]", str(scenario), "--window", "1s", "--json")
    load_before = os.getloadavg()[0]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    result = json.loads(done.stdout)
    spreads = sorted(result["turn_spread_ms"])
    within = sum(each <= GOAL_MS for each in spreads)
    print(
        f"{count} hosts, {RATE} IOPS each, load average {load_before:.1f} before:\n"
        f"  clocks +-{result['clock_bound_ms']:.2f} ms (goal {GOAL_BOUND_MS:g}); "
        f"start within {result['start_spread_ms']:.1f} ms of each other\n"
        f"  {len(spreads)} turns: median {statistics.median(spreads):.1f} ms, longest {spreads[-1]:.1f} ms; "
        f"{within} within {GOAL_MS:g} ms (goal: all)"
    )


def _scenario(turns: int) -> str:
    runtime_s = FIRST_S + turns * EVERY_S + 1.0
    job = f'schema = "lunscope.scenario/1"\n[job]\nsize = "8m"\nrate = {RATE}\nqd = 4\nruntime = "{runtime_s:g}s"\n'
    times = (FIRST_S + number * EVERY_S for number in range(turns))
    return job + "".join(f'[[turn]]\nat = "{at_s:g}s"\nqd = {8 - 4 * (n % 2)}\n' for n, at_s in enumerate(times))
