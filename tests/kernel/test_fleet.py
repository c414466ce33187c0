"""Fleets over a real sshd on loopback: one picture, one load, and hosts that are not as they should be."""

from __future__ import annotations

import itertools
import json
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.fleet.frames import MAX_LINE_BYTES, PROTOCOL, encode
from tests import needs
from tests.kernel.ssh_hosts import AGENT, PATIENCE_S, SshHosts, fleet_command

pytestmark = [needs.fleet]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    made = SshHosts(tmp_path_factory.mktemp("ssh"))
    yield made
    made.close()


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)


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


def test_what_a_login_shell_prints_is_skipped(hosts: SshHosts) -> None:
    document = watched(hosts, "h1", agent=f"echo Welcome to this host; echo; {AGENT}")
    assert reason(document, "h1") == "live: "


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("yes this is no frame", "no frame"),
        ("no-such-lunscope agent --stdio", "install lunscope"),
        (f"head -c {2 * MAX_LINE_BYTES} /dev/zero | tr '\\0' x; sleep 60", "cut off"),
        (f"echo {shlex.quote(encode('hello', protocol=PROTOCOL + 1, version='99', host='x').decode())}", "99"),
        ("echo '@lunscope {\"type\":'; sleep 60", "damaged frame"),
        ("echo it went wrong >&2; exit 9", "it went wrong"),
    ],
    ids=["garbage", "not installed", "long line", "version", "damaged frame", "failing"],
)
def test_an_odd_host_is_named_with_the_reason(hosts: SshHosts, agent: str, says: str) -> None:
    document = watched(hosts, "h1", agent=agent)
    assert reason(document, "h1").startswith("failed: ")
    assert says in reason(document, "h1")


def test_a_password_prompt_never_hangs(hosts: SshHosts) -> None:
    document = watched(hosts, "wrongkey")
    assert "Permission denied" in reason(document, "wrongkey")


@pytest.mark.parametrize("nodes", ["n[1-", "n[2-1]", "@nosuchgroup", "-oProxyCommand=x"])
def test_a_wrong_node_set_is_a_usage_error(hosts: SshHosts, nodes: str) -> None:
    done = run(fleet_command("watch", hosts, nodes, "--json"))
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1


def test_one_load_runs_on_all_hosts(hosts: SshHosts, tmp_path: Path) -> None:
    session = str(tmp_path / "fleet.lun")
    job = ["--size", "8m", "--qd", "2", "--runtime", "3s", "--window", "1s", "--json", "--record", session]
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


@needs.loop
def test_the_guard_there_decides_and_nothing_starts(hosts: SshHosts, make_loop: Callable[..., str]) -> None:
    device = make_loop()
    job = ["--target", device, "--rw", "randwrite", "--runtime", "2s"]
    done = run(fleet_command("run", hosts, "h[1-2]", *job, "--allow-write", f"h1:{device}"))
    assert done.returncode == 1
    assert "writing is not allowed" in done.stderr
    assert done.stderr.count("\n") == 1


def test_clocks_that_are_not_known_well_enough_are_refused(hosts: SshHosts) -> None:
    job = ["--size", "8m", "--runtime", "1s", "--window", "0.000001ms"]
    done = run(fleet_command("run", hosts, "h[1-2]", *job))
    assert done.returncode == 1
    assert "not synchronous" in done.stderr


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


@pytest.mark.parametrize("vary", ["hosts=3", "tune.nr_requests=32", "nosuchknob=1"])
def test_a_sweep_over_what_is_not_there_is_a_usage_error(hosts: SshHosts, vary: str) -> None:
    done = run(fleet_command("sweep", hosts, "h[1-2]", "--size", "8m", "--vary", vary))
    assert done.returncode == 2, done.stderr
    assert vary.partition("=")[0].partition(".")[0] in done.stderr
