"""Fleets over a real sshd on loopback: one picture, one load, and hosts that are not as they should be."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.fleet.frames import MAX_LINE_BYTES
from tests import needs
from tests.kernel.forked_command import lunscope
from tests.kernel.ssh_hosts import AGENT, PATIENCE_S, SshHosts, fleet_command

pytestmark = [needs.fleet]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    made = SshHosts(tmp_path_factory.mktemp("ssh"))
    yield made
    made.close()


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    assert command[:3] == [sys.executable, "-m", "tui"]
    return lunscope(*command[3:], timeout_s=4 * PATIENCE_S)


def watched(hosts: SshHosts, nodes: str, *others: str, agent: str = AGENT) -> dict[str, Any]:
    """The last line of a watch."""
    done = run(fleet_command("watch", hosts, nodes, "--json", "--count", "2", *others, agent=agent))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return dict(lines[-1])


def reason(document: dict[str, Any], host: str) -> str:
    (found,) = (each for each in document["hosts"] if each["name"] == host)
    return f"{found['state']}: {found['reason']}"


def test_hosts_are_one_picture_and_one_recording(hosts: SshHosts, tmp_path: Path) -> None:
    session = tmp_path / "fleet.lun"
    document = watched(hosts, "h[1-3],nobody,wrongkey", "--record", str(session))
    assert document["schema"] == "lunscope.fleet/1"
    assert {each["name"] for each in document["hosts"] if each["state"] == "live"} == {"h1", "h2", "h3"}
    assert document["partial"]
    assert {"nobody", "wrongkey"} <= {each["host"] for each in document["missing"]}
    assert "Connection refused" in reason(document, "nobody")
    assert "Permission denied" in reason(document, "wrongkey")
    report = run([sys.executable, "-m", "tui", "report", "--from", str(session), "-F"])
    assert "h2" in report.stdout, report.stderr


@pytest.fixture(scope="module")
def through(hosts: SshHosts) -> str:
    """A command for --ssh that knows gateways: the same sshd, which has a host key of its own name for each of them."""
    config = hosts.folder / "with_gateways"
    names = "".join(f"Host g{number}\n HostKeyAlias g{number}\n" for number in (1, 2))
    own = f" HostName {hosts.address}\n Port {hosts.port}\n User root\n IdentityFile {hosts.folder}/user\n"
    known = f" UserKnownHostsFile {hosts.folder}/known_gateways\n StrictHostKeyChecking accept-new\n"
    config.write_text(f"{names}Host g*\n{own} IdentitiesOnly yes\n{known}{hosts.ssh_config.read_text()}")
    return f"ssh -F {config}"


def test_hosts_behind_gateways(hosts: SshHosts, through: str) -> None:
    document = watched(hosts, "h[1-3],g1,nobody", "--gateway", "g[1-2]", "--ssh", through)
    assert {each["name"] for each in document["hosts"] if each["state"] == "live"} == {"g1", "h1", "h2", "h3"}
    assert "open failed: connect failed: Connection refused" in reason(document, "nobody")
    known = {line.partition(" ")[0] for line in (hosts.folder / "known_gateways").read_text().splitlines()}
    assert known == {"g1", "g2"}


def test_gateways_that_fail_are_named_in_their_own_words_and_asked_once_for_a_host(
    hosts: SshHosts, through: str
) -> None:
    log = hosts.folder / "log"
    before = log.read_text().count("Connection from ")
    document = watched(hosts, "h1,h2", "--gateway", "nobody,wrongkey", "--ssh", through)
    assert "Permission denied" in reason(document, "h1")
    assert "through wrongkey, not nobody: ssh: connect to host " in reason(document, "h1")
    assert "Permission denied" in reason(document, "h2")
    assert log.read_text().count("Connection from ") == before + 2


def test_the_key_of_a_gateway_is_never_asked_for(
    hosts: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, asks, config = tmp_path / "locked", tmp_path / "asks", tmp_path / "ssh_config"
    ssh_keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(key)]
    subprocess.run(ssh_keygen, check=True)
    with (hosts.folder / "authorized").open("a") as file:
        file.write(key.with_suffix(".pub").read_text())
    asks.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    asks.chmod(0o755)
    config.write_text(f"Host wrongkey\n IdentityFile {key}\n{hosts.ssh_config.read_text()}")
    monkeypatch.setenv("SSH_ASKPASS", str(asks))
    monkeypatch.setenv("DISPLAY", ":0")
    document = watched(hosts, "h1", "--gateway", "wrongkey", "--ssh", f"ssh -F {config}")
    assert "Permission denied" in reason(document, "h1")
    assert not (tmp_path / "asked").exists()


def test_what_a_login_shell_prints_is_skipped(hosts: SshHosts) -> None:
    document = watched(hosts, "h1", agent=f"echo Welcome to this host; echo; {AGENT}")
    assert reason(document, "h1") == "live: "


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("yes this is no frame", "no frame"),
        ("no-such-lunscope agent --stdio", "install lunscope"),
        (f"head -c {2 * MAX_LINE_BYTES} /dev/zero | tr '\\0' x; sleep 60", "cut off"),
        ("echo '@lunscope {\"type\":'; sleep 60", "damaged frame"),
        ("echo it went wrong >&2; exit 9", "it went wrong"),
    ],
    ids=["garbage", "not installed", "long line", "damaged frame", "failing"],
)
def test_an_odd_host_is_named_with_the_reason(hosts: SshHosts, agent: str, says: str) -> None:
    document = watched(hosts, "h1", agent=agent)
    assert reason(document, "h1").startswith("failed: ")
    assert says in reason(document, "h1")


def test_a_password_prompt_never_hangs(hosts: SshHosts) -> None:
    document = watched(hosts, "wrongkey")
    assert "Permission denied" in reason(document, "wrongkey")


def test_one_load_runs_on_all_hosts(hosts: SshHosts, tmp_path: Path) -> None:
    session = str(tmp_path / "fleet.lun")
    job = ["--size", "8m", "--qd", "2", "--runtime", "6s", "--window", "1s", "--json", "--record", session]
    done = run(fleet_command("run", hosts, "h[1-2]", *job))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "lunscope.fleet-run/1"
    parts = [each["result"]["total"]["ios"] for each in document["hosts"]]
    assert document["total"]["ios"] == sum(parts) > 0
    assert document["total"]["latency_us"]["p99"] is not None
    assert document["start_spread_ms"] is not None
    assert not hosts.recordings
    copy = shutil.copy(session, tmp_path / "copy.lun")
    of_itself = run([sys.executable, "-m", "tui", "compare", session, str(copy), "--json"])
    names = {row["name"].partition(":")[0] for row in json.loads(of_itself.stdout)["rows"] if row["table"] == "load"}
    assert names == {"h1", "h2"}, of_itself.stderr
    rows = run([sys.executable, "-m", "tui", "export", session, "--format", "jsonl", "--table", "fleet"])
    loads = [json.loads(line) for line in rows.stdout.splitlines()]
    assert {row["name"] for row in loads if row["load_iops"]} == {"h1", "h2"}, rows.stderr


def test_steps_of_a_scenario_are_as_long_as_it_says_on_every_host(hosts: SshHosts, tmp_path: Path) -> None:
    scenario = tmp_path / "steps.toml"
    scenario.write_text(
        'schema = "lunscope.scenario/1"\n[job]\nsize = "8m"\nruntime = "0.9s"\n[[turn]]\nat = "0.3s"\nqd = 2\n'
        '[[turn]]\nat = "0.6s"\nqd = 3\n'
    )
    done = run(fleet_command("run", hosts, "h[1-2]", str(scenario), "--window", "1s", "--json"))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert len(document["turn_spread_ms"]) == 2
    for each in document["hosts"]:
        lengths_s = [epoch["duration_s"] for epoch in each["result"]["epochs"]]
        assert len(lengths_s) == 3
        # The first 0.1 s of each are not measured.
        assert min(lengths_s) > 0.19, lengths_s


@needs.loop
def test_the_guard_there_decides_and_nothing_starts(hosts: SshHosts, make_loop: Callable[..., str]) -> None:
    device = make_loop()
    job = ["--target", device, "--rw", "randwrite", "--runtime", "2s"]
    done = run(fleet_command("run", hosts, "h[1-2]", *job, "--allow-write", f"h1:{device}"))
    assert done.returncode == 2
    assert "writing is not allowed" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.waits
def test_a_sweep_says_how_hosts_scale_and_what_it_has_when_it_is_ended(hosts: SshHosts) -> None:
    job = ["--size", "8m", "--window", "1s", "--rate", "2000", "--vary", "hosts=1,2", "--json"]
    command = fleet_command("sweep", hosts, "h[1-2]", *job)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sweep:
        assert sweep.stderr is not None
        said = list(itertools.takewhile(lambda line: "hosts=2: " not in line, sweep.stderr))
        sweep.send_signal(signal.SIGINT)
        output, _ = sweep.communicate(timeout=PATIENCE_S)
    document = json.loads(output)
    assert document["schema"] == "lunscope.fleet-sweep/1", said
    (curve,) = document["curves"]
    assert all(trial["ios"] > 0 and trial["latency_us"]["p99"] for trial in curve["trials"])
    driving = {trial["load"]: [each["name"] for each in trial["targets"]] for trial in curve["trials"]}
    assert driving == {1.0: [], 2.0: ["h1", "h2"]}
    (scaling,) = document["scaling"]
    assert [step["hosts"] for step in scaling["steps"]] == [1, 2]
    assert document["start_spread_ms"] is not None
    assert sweep.returncode == 130
    assert not hosts.recordings
