"""The lease: nothing is outstanding 3 s after a controller was killed, frozen or cut off, whatever stays open."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.fleet.lease import LEASE_S
from collectors.session.reader import SessionReader
from tests import needs
from tests.kernel.ssh_hosts import PATIENCE_S, Namespace, SshHosts, end, fleet_command

pytestmark = [pytest.mark.alone, needs.fleet, needs.loop, needs.io_uring, needs.network_namespaces]


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace(os.getpid() % 200 + 1)
    yield made
    made.remove()


@pytest.fixture
def hosts(tmp_path: Path, namespace: Namespace) -> Iterator[SshHosts]:
    made = SshHosts(tmp_path / "ssh", namespace)
    yield made
    made.close()


def written(device: str) -> tuple[int, int]:
    """Writes completed and I/Os in flight of a device (Documentation/block/stat.rst)."""
    fields = Path("/sys/block", Path(device).name, "stat").read_text().split()
    return int(fields[4]), int(fields[8])


def await_writes(device: str, process: subprocess.Popen[str]) -> None:
    deadline_s, before = time.monotonic() + PATIENCE_S, written(device)[0]
    while written(device)[0] < before + 1000:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, "the load did not begin"
        time.sleep(0.05)


@pytest.mark.parametrize("way", ["killed", "frozen", "cut off"])
def test_nothing_is_written_after_the_controller_is_gone(
    way: str, hosts: SshHosts, namespace: Namespace, make_loop: Callable[..., str]
) -> None:
    device = make_loop()
    work = ["--target", device, "--allow-write", f"h1:{device}", "--rw", "randwrite", "--qd", "8", "--runtime", "10m"]
    process = subprocess.Popen(
        fleet_command("run", hosts, "h1", *work, "--window", "1s"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        await_writes(device, process)
        match way:
            case "killed":
                process.kill()
            case "frozen":
                process.send_signal(signal.SIGSTOP)
            case "cut off":
                namespace.cut()
        time.sleep(LEASE_S)
        before, in_flight = written(device)
        assert in_flight == 0
        time.sleep(1.0)
        assert written(device) == (before, 0)
    finally:
        end(process)
    assert_closed(device)
    assert_recording_says_why(hosts)


def assert_recording_says_why(hosts: SshHosts) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        (recording,) = hosts.recordings
        reader = SessionReader(recording)
        texts = [event.text for event in reader.events()]
        reader.close()
        if any(text.startswith("lease ended, load stopped") for text in texts):
            return
        assert time.monotonic() < deadline_s, texts
        time.sleep(0.1)


def assert_closed(device: str) -> None:
    """The device can be had for oneself again."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            os.close(os.open(device, os.O_RDWR | os.O_EXCL))
        except OSError:
            assert time.monotonic() < deadline_s, "still claimed"
            time.sleep(0.1)
        else:
            return
