"""A fleet over a real sshd on loopback: time to connect, CPU of the controller, and connections that sshd drops.

The agents are simulated, each a process behind an ssh connection of its own, on the cores of the controller.
`python -m bench.fleet --agents 200 --gateways 4` measures so many, behind gateways, which are another sshd. With
`--local` the agents have no ssh, both ends of which take most of the time of one machine: that is the controller alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from collectors.fleet.controller import FleetController, FleetSettings
from collectors.fleet.fleet_source import FleetSource
from collectors.fleet.links import ClusterShellLinks
from collectors.rates import derive
from tests.kernel.simulated_fleet import simulated_command
from tests.kernel.ssh_hosts import SshHosts
from tui.options.fleet import gateways_of, raise_descriptor_limit, shared_out

AGENTS, QUICK_AGENTS = 100, 20
DISKS = 50
STEADY_S, QUICK_STEADY_S = 30.0, 10.0
GOAL_CPU_PCT, GOAL_CPU_OF_MORE_PCT = 10.0, 60.0
"""The second is that of more than 100 hosts, up to 1,000."""
GOAL_CONNECTED_S = 60.0
_FRAMES = {"disks": DISKS, "seconds": 600}
MAX_STARTUPS = {"the default": "10:30:100", "strict": "4:100:5"}
_PATIENCE_S = 900.0


def main(*, quick: bool = False, agents: int = AGENTS, gateways: int = 0, local: bool = False) -> None:
    agents, steady_s = (QUICK_AGENTS, QUICK_STEADY_S) if quick else (agents, STEADY_S)
    if local:
        with tempfile.TemporaryDirectory(prefix="lunscope-bench-fleet-") as folder:
            print(f"without ssh, {agents} agents of {DISKS} busy disks:", flush=True)
            _watch(ClusterShellLinks(local=True), {}, agents, simulated_command(Path(folder), **_FRAMES), steady_s)
        return
    if not (os.geteuid() == 0 and shutil.which("ssh") and Path("/usr/sbin/sshd").exists()):
        print("left out: needs root, ssh and sshd")
        return
    for name, startups in MAX_STARTUPS.items():
        with tempfile.TemporaryDirectory(prefix="lunscope-bench-fleet-") as folder:
            through = f" through {gateways} gateways" if gateways else ""
            print(f"MaxStartups {startups} ({name}), {agents} agents of {DISKS} busy disks{through}:", flush=True)
            _measure(Path(folder), startups, agents, gateways, steady_s)


def _measure(folder: Path, startups: str, agents: int, gateways: int, steady_s: float) -> None:
    options = f"MaxStartups {startups}\nMaxSessions 10"
    hosts = SshHosts(folder / "ssh", options=options)
    gateway = SshHosts(folder / "gateways", options=options) if gateways else None
    try:
        links, gateway_of = _links(_names(agents), hosts, gateway, gateways)
        _watch(links, gateway_of, agents, simulated_command(folder, **_FRAMES), steady_s)
    finally:
        for sshd in (hosts, gateway):
            if sshd is not None:
                sshd.close()


def _names(agents: int) -> tuple[str, ...]:
    return tuple(f"h{number}" for number in range(agents))


def _watch(links: ClusterShellLinks, gateways: Mapping[str, str], agents: int, command: str, steady_s: float) -> None:
    """Connect to all agents, and watch them for a time."""
    with _running(_names(agents), links, gateways, command) as (controller, sampled):
        begun_s, begun_cpu_s = time.monotonic(), time.process_time()
        _wait(lambda: all(host.is_connected for host in controller.hosts.values()), controller)
        connected_s, cpu_s = time.monotonic() - begun_s, time.process_time() - begun_cpu_s
        attempts = sum(host.attempts for host in controller.hosts.values())
        print(f"  connected in {connected_s:.1f} s, goal {GOAL_CONNECTED_S:.0f} s")
        print(f"  {attempts - agents} connections dropped and tried again, 0 lost")
        print(f"  CPU of the controller while connecting: {cpu_s:.1f} s", flush=True)
        _wait(lambda: all(host.sample is not None for host in controller.hosts.values()), controller)
        _report_steady(controller, sampled, steady_s)


def _links(
    names: tuple[str, ...], hosts: SshHosts, gateway: SshHosts | None, count: int
) -> tuple[ClusterShellLinks, Mapping[str, str]]:
    """Reach the hosts as `fleet` does: as ssh says, or through gateways."""
    if gateway is not None:
        # One server key for all names of the one gateway sshd; the first section that fits a name counts.
        config = gateway.folder / "with_hosts"
        config.write_text(gateway.ssh_config.read_text().replace("Host h*", "Host g*") + hosts.ssh_config.read_text())
        through = shared_out(names, tuple(f"g{number}" for number in range(count)))
        return ClusterShellLinks(f"ssh -F {config}", gateways=through), through
    begun_s = time.monotonic()
    paced = gateways_of(names, hosts.ssh)
    print(f"  which way each is reached (ssh -G): {time.monotonic() - begun_s:.1f} s", flush=True)
    return ClusterShellLinks(hosts.ssh), paced


@contextmanager
def _running(
    names: tuple[str, ...], links: ClusterShellLinks, gateways: Mapping[str, str], command: str
) -> Iterator[tuple[FleetController, list[int]]]:
    """Watch a fleet as `fleet watch` does: merged and derived each second; the list has the rows that were known."""
    raise_descriptor_limit()
    controller = FleetController(names, links, FleetSettings(command), lambda name: gateways.get(name, ""))
    source, stop = FleetSource(controller), threading.Event()
    known: list[int] = []

    def watch() -> None:
        for step in source.steps(stop):
            table = derive(step.previous, step.current).tables["fleet"]
            known.append(int((table.columns["iops"] > 0).sum()))

    source.start()
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield controller, known
    finally:
        stop.set()
        thread.join()
        source.close()


def _wait(condition: Callable[[], bool], controller: FleetController) -> None:
    end_s = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end_s:
            odd = {name: host.reason or host.state.value for name, host in controller.hosts.items() if host.reason}
            raise TimeoutError(f"not within {_PATIENCE_S:.0f} s: {odd}")
        time.sleep(0.02)


def _report_steady(controller: FleetController, known: list[int], steady_s: float) -> None:
    hosts = controller.hosts.values()
    begun_s, cpu_s, before = time.monotonic(), time.process_time(), len(known)
    received = sum(host.received_bytes for host in hosts)
    time.sleep(steady_s)
    elapsed_s = time.monotonic() - begun_s
    cpu_pct = 100 * (time.process_time() - cpu_s) / elapsed_s
    per_host = (sum(host.received_bytes for host in hosts) - received) / elapsed_s / len(hosts)
    seen = known[before:]
    share = 100 * sum(seen) / (len(hosts) * max(len(seen), 1))
    bounds = sorted(best.bound_ns for host in hosts if (best := host.estimate.best) is not None)
    median_ms = bounds[len(bounds) // 2] / 1e6
    goal_pct = GOAL_CPU_PCT if len(hosts) <= AGENTS else GOAL_CPU_OF_MORE_PCT
    print(f"  then: {cpu_pct:.1f} % of a core, goal {goal_pct:.0f} %; {per_host / 1000:.1f} KB/s from each")
    print(f"  {share:.1f} % of the samples in their interval; clocks +-{median_ms:.2f} ms (median)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--gateways", type=int, default=0)
    parser.add_argument("--local", action="store_true", help="agents without ssh")
    chosen = parser.parse_args()
    main(agents=chosen.agents, gateways=chosen.gateways, local=chosen.local)
