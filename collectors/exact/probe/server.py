"""Server of the probe helper: accepts readers and answers each in turn, without blocking on any."""

from __future__ import annotations

import errno
import math
import os
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event as StopFlag

from msgspec import Struct

from collectors.exact.probe.connection import Admission, Connection, Peer
from collectors.exact.probe.hub import Hub, Reader
from collectors.exact.probe.message import VERSION, ConnectionEnded, Message
from engine.errors import unusable, words_of

_STOP_CHECK_S = 0.2
_ACCEPT_PAUSE_S = 0.5
"""Pause in accepting readers after accept() failed, for lack of descriptors."""
_LISTEN_BACKLOG = 128


class Limits(Struct, frozen=True):
    """Limits of all readers together."""

    readers: int = 128
    readers_of_user: int = 32
    """Readers of one user other than root, so that no user can block the others."""
    held_bytes: int = 64 << 20
    """Memory of all unfinished requests and answers."""


class ProbeServer:
    """Serves one socket; `log` gets a line for each reader that is rejected or disconnected."""

    def __init__(
        self, path: Path, admission: Admission, hub: Hub, log: Callable[[str], None], limits: Limits | None = None
    ) -> None:
        """Listen.

        Raises:
            LunscopeError: the socket cannot be made, or another helper serves it.
        """
        self._path = path
        self._admission = admission
        self._hub = hub
        self._log = log
        self._limits = limits or Limits()
        self._readers: dict[Connection, Reader] = {}
        self._listener = _listen(path)
        self._accept_from_s: float | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self, stop: StopFlag) -> None:
        """Answer until `stop` is set."""
        while not stop.is_set():
            for key, _ in self._selector.select(self._pause_s()):
                if stop.is_set():
                    return
                if isinstance(key.data, Connection):
                    self._serve(key.data)
                else:
                    self._accept()
            self._end_overdue()
            self._end_largest()
            self._resume_accepting()

    def close(self) -> None:
        """Detach, disconnect all readers, and remove the socket."""
        self._listener.close()
        self._path.unlink(missing_ok=True)
        for connection in self._readers:
            connection.close()
        self._readers.clear()
        self._selector.close()
        self._hub.close()

    def _pause_s(self) -> float:
        due_s = min((connection.due_s for connection in self._readers), default=math.inf)
        return max(0.0, min(_STOP_CHECK_S, due_s - time.monotonic()))

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                self._pause_accepting(error)
            return
        try:
            peer = Peer.of(connection)
        except OSError:
            connection.close()
            return
        self._admit(Connection(connection, peer.user), self._refusal(peer))

    def _admit(self, connection: Connection, refusal: str) -> None:
        reader = None
        if not refusal:
            try:
                reader = self._hub.enter()
            except Exception as error:  # a failure with one reader must not end the service of the others
                refusal = words_of(error)
        if reader is None:
            self._log(f"turned away: {refusal}")
        else:
            self._readers[connection] = reader
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        try:
            connection.send(Message({"version": VERSION, "error": refusal}))
        except OSError:
            self._disconnect(connection)
        if reader is None:
            connection.close()

    def _refusal(self, peer: Peer) -> str:
        if not self._admission.lets_in(peer):
            return "this user may not read what the probe helper traces: name it with --user or --group there"
        if len(self._readers) >= self._limits.readers:
            return f"the probe helper serves {self._limits.readers} readers already"
        of_user = sum(connection.user == peer.user for connection in self._readers)
        if peer.user != 0 and of_user >= self._limits.readers_of_user:
            return f"the probe helper serves {of_user} readers of this user already"
        return ""

    def _serve(self, connection: Connection) -> None:
        """Continue a reader's answer, or read its next request."""
        if connection not in self._readers:
            return
        try:
            if connection.has_unsent:
                connection.flush()
            elif (request := connection.receive()) is not None:
                connection.send(self._answer(self._readers[connection], request))
        except ConnectionEnded:
            self._disconnect(connection)
        except OSError as error:
            self._disconnect(connection, words_of(error))
        else:
            self._await(connection)

    def _answer(self, reader: Reader, request: Message) -> Message:
        try:
            return self._hub.answer(reader, request)
        except (OSError, ValueError) as error:
            return Message({"error": str(error)})
        except Exception as error:  # an unexpected request must not end the service of the others
            self._log(f"a request failed: {type(error).__name__}: {error}")
            return Message({"error": f"the request failed: {type(error).__name__}"})

    def _await(self, connection: Connection) -> None:
        """Wait until this reader can receive the rest of its answer, or sends a request."""
        wanted = selectors.EVENT_WRITE if connection.has_unsent else selectors.EVENT_READ
        if self._selector.get_key(connection.socket).events != wanted:
            self._selector.modify(connection.socket, wanted, connection)

    def _end_overdue(self) -> None:
        now_s = time.monotonic()
        for connection in [one for one in self._readers if one.due_s <= now_s]:
            self._disconnect(connection, f"{connection.delay} in time")

    def _end_largest(self) -> None:
        """Free memory by disconnecting readers that are behind; readers that keep up hold none."""
        while sum(connection.held_bytes for connection in self._readers) > self._limits.held_bytes:
            oldest = min(self._readers, key=lambda connection: connection.due_s)
            self._disconnect(oldest, f"{oldest.delay} and memory is short")
        behind = self._hub.behind()
        for connection in [one for one, reader in self._readers.items() if reader in behind]:
            self._disconnect(connection, "it did not ask for so long that what it missed is too much to keep")

    def _disconnect(self, connection: Connection, reason: str = "") -> None:
        if reason:
            self._log(f"let go: {reason}")
        reader = self._readers.pop(connection, None)
        if reader is not None:
            self._selector.unregister(connection.socket)
            try:
                self._hub.leave(reader)
            except Exception as error:  # cleanup after one reader must not end the service of the others
                self._log(f"after a reader left: {type(error).__name__}: {error}")
        connection.close()

    def _pause_accepting(self, error: OSError) -> None:
        """Stop accepting for a short time: a connection that cannot be accepted would make the loop spin."""
        self._log(f"no new readers: {words_of(error)}")
        self._selector.unregister(self._listener)
        self._accept_from_s = time.monotonic() + _ACCEPT_PAUSE_S

    def _resume_accepting(self) -> None:
        if self._accept_from_s is not None and time.monotonic() >= self._accept_from_s:
            self._accept_from_s = None
            self._selector.register(self._listener, selectors.EVENT_READ)


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _clear(path)
        listener.bind(str(path))
        os.chmod(path, 0o666)  # noqa: PTH101, S103 - access is controlled by peer credentials
        listener.listen(_LISTEN_BACKLOG)
        # A client that connects and disconnects at once must not make accept() wait for the next one.
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise unusable(f"{path}: {words_of(error)}: run as root, or name another --socket", error) from error
    return listener


def _clear(path: Path) -> None:
    """Remove the socket of a helper that has ended; a running one keeps its socket.

    Raises:
        OSError: a helper listens there, or the path is no socket.
    """
    if not path.exists():
        return
    if not path.is_socket():
        raise OSError("there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # A helper whose backlog is full would make a blocking connect wait.
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:
            pass
    raise OSError("a probe helper serves it already")


EVERY_S = 60.0


class QuietLog:
    """Passes the first line of each kind on, then one per minute; the kind is what is before the first colon."""

    def __init__(self, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._from_s: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def __call__(self, text: str) -> None:
        """Log a line, or count it."""
        kind, now_s = text.partition(":")[0], self._clock()
        if now_s < self._from_s.get(kind, 0.0):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        left_out = self._left_out.pop(kind, 0)
        self._from_s[kind] = now_s + EVERY_S
        self._log(f"{text} ({left_out:,} more of this kind before it)" if left_out else text)
