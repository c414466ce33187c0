"""Hosts for tests of fleets: an sshd on loopback or in a network namespace, with keys and configuration of its own."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 60.0
REPOSITORY = Path(__file__).parents[2]
AGENT = f"cd {shlex.quote(str(REPOSITORY))} && exec {shlex.quote(sys.executable)} -m tui agent --stdio"


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
    return done.stdout.strip()


class Namespace:
    """A network namespace behind a link that can be cut."""

    def __init__(self, number: int) -> None:
        self.name = f"lunscope-{os.getpid()}-{number}"
        self._link = f"lun{os.getpid() % 100000}n{number}"
        self.address = f"198.18.{number}.2"
        self.outside = f"198.18.{number}.1"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "address", "add", f"{self.outside}/24", "dev", self._link)
        run("ip", "link", "set", self._link, "up")
        for words in (("address", "add", f"{self.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
            run("ip", "-n", self.name, *words)

    def cut(self) -> None:
        """Drop the link: nothing arrives any more, and nobody hears of it."""
        run("ip", "-n", self.name, "link", "set", "eth0", "down")

    def remove(self) -> None:
        subprocess.run(["ip", "link", "delete", self._link], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)


class SshHosts:
    """One sshd; names `hN` of its ssh_config all lead to it."""

    def __init__(self, folder: Path, namespace: Namespace | None = None, *, options: str = "") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        for name in ("user", "host", "stranger"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        (folder / "authorized").write_text((folder / "user.pub").read_text())
        self.address = "127.0.0.1" if namespace is None else namespace.address
        self.port = _free_port() if namespace is None else 22
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress {self.address}\nHostKey {folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"UsePAM no\nStrictModes no\nPrintMotd no\nLogLevel VERBOSE\n"
            f"SetEnv XDG_STATE_HOME={folder}/state LUNSCOPE_SCRATCH_DIR={folder}\n{options}\n"
        )
        self.ssh_config = folder / "ssh_config"
        self.ssh_config.write_text(
            f"Host h*\n HostName {self.address}\n Port {self.port}\n User root\n IdentityFile {folder}/user\n"
            f" IdentitiesOnly yes\n UserKnownHostsFile {folder}/known\n StrictHostKeyChecking accept-new\n"
            f"Host wrongkey\n HostName {self.address}\n Port {self.port}\n User root\n IdentitiesOnly yes\n"
            f" IdentityFile {folder}/stranger\n UserKnownHostsFile {folder}/known\n StrictHostKeyChecking accept-new\n"
            f"Host nobody\n HostName {self.address}\n Port 1\n"
        )
        inside = [] if namespace is None else ["ip", "netns", "exec", namespace.name]
        # sshd wants /run/sshd, which only a boot makes; nothing of the machine's own is touched.
        script = (
            f"mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec /usr/sbin/sshd -D -e -f {folder}/sshd_config"
        )
        with (folder / "log").open("wb") as log:
            # A slave of the mounts outside: what other tests unmount must not stay mounted in here.
            own = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script]
            self._process = subprocess.Popen([*inside, *own], stderr=log)
        self._await()

    @property
    def ssh(self) -> str:
        """The command for --ssh."""
        return f"ssh -F {self.ssh_config}"

    @property
    def recordings(self) -> list[Path]:
        """Recordings that agents kept."""
        return sorted((self.folder / "state" / "lunscope" / "fleet").glob("*.luns"))

    def close(self) -> None:
        """End it and its connections: one whose link was cut would wait for ever."""
        connections = _descendants(self._process.pid)
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        for pid in connections:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _await(self) -> None:
        """Wait without a connection, which tests would find in the log among those they count."""
        deadline_s, log = time.monotonic() + PATIENCE_S, self.folder / "log"
        while "Server listening on" not in log.read_text():
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline_s, "sshd does not listen"
            time.sleep(0.05)


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *_descendants(child))]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fleet_command(verb: str, hosts: SshHosts, nodes: str, *others: str, agent: str | None = AGENT) -> list[str]:
    """The command line of a fleet; without `agent` for what --push copies."""
    own = [sys.executable, "-m", "tui", "fleet", verb, "--hosts", nodes, "--ssh", hosts.ssh]
    return [*own, *(() if agent is None else ("--agent", agent)), *others]


def end(process: subprocess.Popen[str]) -> None:
    """End a process of a test, stopped or not."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        process.kill()
    process.wait(PATIENCE_S)
