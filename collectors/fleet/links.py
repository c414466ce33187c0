"""Connections to the agents of many hosts: an interface of ours, and its implementation by ClusterShell over ssh.

ClusterShell is an extra (`lunscope[fleet]`), imported only here and for node sets, and only where it is used.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from collectors.fleet.frames import MAX_LINE_BYTES
from engine.errors import missing_extra

SSH_OPTIONS = (
    "-T -oBatchMode=yes -oServerAliveInterval=1 -oServerAliveCountMax=3 -oControlMaster=no -oControlPath=none "
    "-oClearAllForwardings=yes -oLogLevel=ERROR"
)
"""BatchMode: a question for a password is a failure, never a wait. A connection that does not answer for 3 s ends."""
_NO_QUESTIONS = "env SSH_ASKPASS_REQUIRE=never"
"""The ssh to a gateway knows nothing of BatchMode: without a terminal it would ask in a window (ssh(1))."""
CONNECT_S = 20
_TIMER_S = 0.05
_FANOUT = 100_000
_LENGTH_EVERY = 5
"""Ticks between two checks of the length of unfinished lines."""


class LinkEvents(Protocol):
    """What is called in the thread of the links."""

    def line(self, host: str, line: bytes) -> None:
        """Take a line of an agent's standard output."""

    def words(self, host: str, line: bytes) -> None:
        """Take a line of its standard error, or of ssh."""

    def ended(self, host: str, code: int | None) -> None:
        """Note that the agent or ssh ended with this exit code; None if it was aborted."""

    def tick(self) -> None:
        """Do what is due; every 50 ms."""

    def broken(self, reason: str) -> None:
        """Note that the thread of the links has ended by an error, and all connections with it."""


class Links(Protocol):
    """Connections by name of the host; `connect`, `send` and `cut` only from the thread of the links."""

    def start(self, events: LinkEvents) -> None:
        """Start the thread of the links."""

    def connect(self, host: str, command: str) -> None:
        """Start a command on a host."""

    def send(self, host: str, data: bytes) -> None:
        """Send to its standard input; nothing where there is no connection."""

    def cut(self, host: str) -> None:
        """End a connection at once."""

    def call(self, act: Callable[[], None]) -> None:
        """Call something in the thread of the links; from any thread, does not wait."""

    def close(self) -> None:
        """End all connections and the thread."""


class ClusterShellLinks:
    """ssh processes of ClusterShell, or with `local` commands on this host in their place.

    `gateways` has the gateway by host; the others are reached as ssh itself does.
    """

    def __init__(self, ssh: str = "ssh", *, local: bool = False, gateways: Mapping[str, str] | None = None) -> None:
        try:
            import ClusterShell.Task  # noqa: F401, PLC0415 (an extra)
        except ImportError:
            raise missing_extra("fleet", "ClusterShell", "fleet") from None
        self._ssh = ssh
        self._local = local
        self._gateways = gateways or {}
        self._workers: dict[str, Any] = {}
        self._task: Any = None
        self._port: Any = None
        self._events: LinkEvents | None = None
        self._ready = threading.Event()
        self._closing = False
        self._ticks = 0
        self._thread = threading.Thread(target=self._run, name="lunscope-links", daemon=True)

    def start(self, events: LinkEvents) -> None:
        """Start the thread."""
        self._events = events
        self._thread.start()
        self._ready.wait()

    def connect(self, host: str, command: str) -> None:
        """Start a command on a host."""
        worker = self._task.shell(
            command, nodes=host, handler=self._handler, stdin=True, stderr=True, autoclose=False, tree=False
        )
        self._workers[host] = worker

    def send(self, host: str, data: bytes) -> None:
        """Send to its standard input."""
        worker = self._workers.get(host)
        if worker is not None:
            worker.write(data)

    def cut(self, host: str) -> None:
        """End a connection at once."""
        worker = self._workers.pop(host, None)
        if worker is not None:
            worker.abort()

    def call(self, act: Callable[[], None]) -> None:
        """Call something in the thread."""
        self._port.msg_send(act)

    def close(self) -> None:
        """End all connections; may be called twice."""
        if not self._thread.is_alive():
            return
        self.call(self._end)
        self._thread.join()

    def _end(self) -> None:
        self._closing = True
        for host in tuple(self._workers):
            self.cut(host)
        self._task.abort()

    def _run(self) -> None:
        from ClusterShell.Task import Task, task_self  # noqa: PLC0415 (an extra)

        logging.getLogger("ClusterShell").addHandler(logging.NullHandler())
        task = self._task = task_self()
        assert isinstance(task, Task)
        task.set_default("stdout_msgtree", False)
        task.set_default("stderr_msgtree", False)
        task.set_default("auto_tree", False)
        task.set_default("local_workername" if self._local else "distant_workername", "exec" if self._local else "ssh")
        if self._local:
            task.set_default("distant_workername", "exec")
        elif self._gateways:
            task.set_default("distant_worker", _worker_through(self._gateways))
        task.set_info("fanout", _FANOUT)
        task.set_info("connect_timeout", CONNECT_S)
        own = "setsid " if shutil.which("setsid") else ""
        task.set_info("ssh_path", f"{_NO_QUESTIONS} {own}{self._ssh}")
        task.set_info("ssh_options", SSH_OPTIONS)
        self._handler = _handler(self)
        self._port = task.port(handler=self._handler, autoclose=False)
        task.timer(fire=_TIMER_S, handler=self._handler, interval=_TIMER_S, autoclose=True)
        self._ready.set()
        try:
            task.resume()
        except Exception as error:
            assert self._events is not None
            self._events.broken(f"{type(error).__name__}: {error}")
            raise

    def _read(self, host: str, stream: str, line: bytes) -> None:
        assert self._events is not None
        if stream == "stderr":
            self._events.words(host, line)
        else:
            self._events.line(host, line)

    def _hung_up(self, host: str, code: int | None) -> None:
        if self._workers.pop(host, None) is not None and not self._closing:
            assert self._events is not None
            self._events.ended(host, code)

    def _tick(self) -> None:
        assert self._events is not None
        self._ticks += 1
        for host in self._too_long() if self._ticks % _LENGTH_EVERY == 0 else ():
            self.cut(host)
            self._events.words(host, b"cut off: a line of more than %d bytes" % MAX_LINE_BYTES)
            self._events.ended(host, None)
        self._events.tick()

    def _too_long(self) -> Iterable[str]:
        """Hosts with a line that is longer than allowed and has not ended: ClusterShell itself has no limit."""
        return [
            host
            for host, worker in self._workers.items()
            for client in getattr(worker, "_clients", ())
            if any(len(stream.rbuf) > MAX_LINE_BYTES for stream in client.streams.values())
        ]


def _worker_through(gateways: Mapping[str, str]) -> Any:  # noqa: ANN401 (of an optional package)
    from ClusterShell.Worker.Ssh import SshClient, WorkerSsh  # noqa: PLC0415 (an extra)

    class Client(SshClient):  # type: ignore[misc] # an optional package
        def _build_cmd(self) -> tuple[list[str], Any]:
            words, environment = super()._build_cmd()
            gateway = gateways.get(str(self.key))
            return (words if gateway is None else [*words[:-2], "-J", gateway, *words[-2:]]), environment

    class Worker(WorkerSsh):  # type: ignore[misc] # an optional package
        SHELL_CLASS = Client

    return Worker


def _handler(links: ClusterShellLinks) -> Any:  # noqa: ANN401 (of an optional package)
    from ClusterShell.Event import EventHandler  # noqa: PLC0415 (an extra)

    class Handler(EventHandler):  # type: ignore[misc] # an optional package
        def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:  # noqa: ANN401, ARG002
            links._read(str(node), sname, msg)

        def ev_hup(self, worker: Any, node: str, rc: int) -> None:  # noqa: ANN401, ARG002
            links._hung_up(str(node), rc)

        def ev_msg(self, port: Any, msg: Callable[[], None]) -> None:  # noqa: ANN401, ARG002
            msg()

        def ev_timer(self, timer: Any) -> None:  # noqa: ANN401, ARG002
            links._tick()

    return Handler()
