"""The helper's side of the socket: lets readers in, answers them in turn, and outlives every one of them."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable
from pathlib import Path
from threading import Event as StopFlag

from collectors.probe.admission import Admission
from collectors.probe.hub import Hub, Reader
from collectors.probe.message import VERSION, Message, MessageError, receive, send
from engine.errors import LunscopeError, words_of

MOST_READERS = 8
PATIENCE_S = 1.0
"""How long a reader may take over one message; whoever stops in the middle is let go."""
_LOOK_S = 0.2


class ProbeServer:
    """Serves one socket; `tell` gets a line for whoever comes and goes."""

    def __init__(self, path: Path, admission: Admission, hub: Hub, tell: Callable[[str], None]) -> None:
        """Listen.

        Raises:
            LunscopeError: the socket cannot be made, or another helper serves it.
        """
        self._path = path
        self._admission = admission
        self._hub = hub
        self._tell = tell
        self._readers: dict[socket.socket, Reader] = {}
        self._listener = _listen(path)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self, stop: StopFlag) -> None:
        """Answer until `stop` is set."""
        while not stop.is_set():
            for key, _ in self._selector.select(_LOOK_S):
                if key.fileobj is self._listener:
                    self._let_in()
                elif isinstance(key.fileobj, socket.socket):
                    self._answer(key.fileobj)

    def close(self) -> None:
        """Let everyone go, detach, and take the socket away."""
        for connection in list(self._readers):
            self._let_go(connection)
        self._selector.close()
        self._listener.close()
        self._path.unlink(missing_ok=True)
        self._hub.close()

    def _let_in(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(PATIENCE_S)
        refusal = self._refusal(connection)
        if refusal:
            self._turn_away(connection, refusal)
            return
        try:
            reader = self._hub.enter()
        except OSError as error:
            self._turn_away(connection, words_of(error))
            return
        self._readers[connection] = reader
        self._selector.register(connection, selectors.EVENT_READ)
        try:
            send(connection, Message({"version": VERSION, "error": ""}))
        except OSError:
            self._let_go(connection)

    def _refusal(self, connection: socket.socket) -> str:
        if not self._admission.lets_in(connection):
            return "this user may not read what the probe helper traces: name it with --user or --group there"
        if len(self._readers) >= MOST_READERS:
            return f"the probe helper serves {MOST_READERS} readers already"
        return ""

    def _turn_away(self, connection: socket.socket, reason: str) -> None:
        self._tell(f"turned away: {reason}")
        with connection:
            try:
                send(connection, Message({"version": VERSION, "error": reason}))
            except OSError:
                return

    def _answer(self, connection: socket.socket) -> None:
        try:
            send(connection, self._done(connection, receive(connection)))
        except OSError as error:
            # Leaving is the only way to end; all else is worth a line.
            if not isinstance(error, MessageError) or str(error) != "the connection ended":
                self._tell(f"let go: {error}")
            self._let_go(connection)

    def _done(self, connection: socket.socket, request: Message) -> Message:
        try:
            return self._hub.answer(self._readers[connection], request)
        except (OSError, ValueError) as error:
            return Message({"error": str(error)})

    def _let_go(self, connection: socket.socket) -> None:
        reader = self._readers.pop(connection, None)
        if reader is not None:
            self._selector.unregister(connection)
            self._hub.leave(reader)
        connection.close()


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _clear(path)
        listener.bind(str(path))
        os.chmod(path, 0o666)  # noqa: PTH101, S103 - whoever connects is judged by what the kernel says of it
        listener.listen(MOST_READERS)
    except OSError as error:
        listener.close()
        raise LunscopeError(f"{path}: {words_of(error)}: run as root, or name another --socket") from error
    return listener


def _clear(path: Path) -> None:
    """Take away what a dead helper left; a living one keeps its socket.

    Raises:
        OSError: somebody listens there, or something else has the name.
    """
    if not path.exists():
        return
    if not path.is_socket():
        raise OSError("there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError("a probe helper serves it already")
