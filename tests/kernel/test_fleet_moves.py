"""Hosts behind gateways that refuse, and behind one whose link is cut: connected again through another one."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.kernel.ssh_hosts import AGENT, PATIENCE_S, Namespace, SshHosts, end, fleet_command

pytestmark = [pytest.mark.slow, needs.fleet, needs.network_namespaces]

Document = dict[str, Any]


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace(os.getpid() % 200 + 2)
    yield made
    made.remove()


@pytest.fixture
def hosts(tmp_path: Path, namespace: Namespace) -> Iterator[SshHosts]:
    """An sshd that both loopback and the namespace reach."""
    made = SshHosts(tmp_path / "ssh", options=f"ListenAddress {namespace.outside}")
    yield made
    made.close()


@pytest.fixture
def ssh(tmp_path: Path, hosts: SshHosts, namespace: Namespace) -> Iterator[str]:
    """A command for --ssh: g1 is the sshd of the hosts itself, g2 one in the namespace, g3 refuses."""
    gateway = SshHosts(tmp_path / "gateway", namespace)
    own = f" User root\n IdentitiesOnly yes\n UserKnownHostsFile {tmp_path}/known\n StrictHostKeyChecking accept-new\n"
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host g1 h*\n HostName {namespace.outside}\n Port {hosts.port}\n HostKeyAlias hosts\n"
        f" IdentityFile {hosts.folder}/user\n{own}"
        f"Host g2\n HostName {gateway.address}\n Port {gateway.port}\n IdentityFile {gateway.folder}/user\n{own}"
        "Host g3\n HostName 127.0.0.1\n Port 1\n"
    )
    yield f"ssh -F {config}"
    gateway.close()


@pytest.fixture
def watch(hosts: SshHosts, ssh: str) -> Iterator[Callable[[str, str], subprocess.Popen[str]]]:
    begun: list[subprocess.Popen[str]] = []

    def begin(nodes: str, gateways: str) -> subprocess.Popen[str]:
        others = ("--gateway", gateways, "--ssh", ssh, "--json", "--count", "10000")
        command = fleet_command("watch", hosts, nodes, *others, agent=AGENT)
        begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return begun[-1]

    yield begin
    for process in begun:
        end(process)


def await_document(process: subprocess.Popen[str], wanted: Callable[[Document], bool]) -> Document:
    """Read lines until one is as wanted."""
    assert process.stdout is not None
    end_s = time.monotonic() + 3 * PATIENCE_S
    for line in process.stdout:
        document: Document = json.loads(line)
        if wanted(document):
            return document
        assert time.monotonic() < end_s, document["hosts"]
    raise AssertionError(process.communicate())


def ways(document: Document) -> dict[str, tuple[str, str, bool]]:
    """Return for each host its gateway, the gateway in its notes, and whether it sends figures."""
    return {
        each["name"]: (each["gateway"], each["reason"].partition(":")[0], each["iops"] is not None)
        for each in document["hosts"]
    }


@pytest.mark.waits
def test_hosts_of_a_gateway_that_refuses_or_is_cut_off_move(
    watch: Callable[[str, str], subprocess.Popen[str]], namespace: Namespace
) -> None:
    process = watch("h[1-6]", "g[1-3]")
    own = {"h1": "g1", "h2": "g2", "h4": "g1", "h5": "g2"}
    as_begun = await_document(process, lambda one: all(live for _, _, live in ways(one).values()))
    found = ways(as_begun)
    assert {name: found[name][:2] for name in own} == {name: (gateway, "") for name, gateway in own.items()}
    moved = {name: found[name][:2] for name in ("h3", "h6")}
    assert all(way[0] in {"g1", "g2"} and way[1] == f"through {way[0]}, not g3" for way in moved.values())
    assert "Connection refused" in next(each["reason"] for each in as_begun["hosts"] if each["name"] == "h3")
    events: list[str] = []

    def is_moved(document: Document) -> bool:
        events.extend(document["events"])
        return all(way[0] == "g1" and way[2] for way in ways(document).values())

    namespace.cut()
    after = ways(await_document(process, is_moved))
    assert after["h2"][1] == after["h5"][1] == "through g1, not g2"
    assert after["h1"][1] == ""
    assert any("h2" in text and "through g1, not g2" in text for text in events)
