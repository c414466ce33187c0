"""Serves the exposition over HTTP at a port of 127.0.0.1, another address that is named, or a unix socket.

Plain text is answered here, all else by prometheus_client.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import re
import socket
import socketserver
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from msgspec import Struct

from collectors.metrics.exposition import CONTENT_TYPE
from collectors.metrics.registry import ALWAYS, LEVELS
from engine.errors import RefusedError, UsageError, missing_extra, unusable, words_of
from engine.text import safe_text, short_text, whole_number

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric


LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 29100
"""node_exporter's port and 20,000."""
_UNIX = "unix:"
_PORT = re.compile(r":[0-9]*$")
MOST_CONNECTIONS = 32
"""Most connections at a time; another one closes the oldest."""
MOST_ANSWERS = 8
"""Made at a time: each takes a sample."""
SOCKET_MODE = 0o660

Text = Callable[[], bytes]
App = Callable[[dict[str, Any], Callable[..., Any]], list[bytes]]


class ListenAddress(Struct, frozen=True):
    """A socket to listen on; either `path` is set, or `host` and `port` are."""

    host: str = LOOPBACK
    port: int = DEFAULT_PORT
    path: Path | None = None

    @property
    def local(self) -> bool:
        """Whether only this host reaches it."""
        return self.path is not None or ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        if self.path is not None:
            return f"{_UNIX}{safe_text(str(self.path))}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"


def parse_address(text: str) -> ListenAddress:
    """Read PORT, ADDRESS:PORT, unix:PATH or /PATH; addresses are numbers, so that no name decides who may connect.

    Raises:
        UsageError: it is none of these.
    """
    if text.startswith(("/", _UNIX)) and text != _UNIX:
        return ListenAddress(path=Path(text.removeprefix(_UNIX)))
    host, colon, digits = text.rpartition(":")
    port = whole_number(digits)
    try:
        if port is None or not 0 <= port <= 65_535:
            raise ValueError
        plain = host.removeprefix("[").removesuffix("]") if colon else LOOPBACK
        return ListenAddress(str(ipaddress.ip_address(plain)), port)
    except ValueError:
        shown = safe_text(short_text(text))
        raise UsageError(f"--listen {shown}: give PORT, ADDRESS:PORT with an IP address, or unix:PATH") from None


class _Handler(WSGIRequestHandler):
    server: _Server

    def parse_request(self) -> bool:
        """Note that the request has come, and refuse one that is meant for another host."""
        if not super().parse_request():
            return False
        self.server.open_requests.has_come(self.connection)
        if self.server.is_for_us(self.headers.get("Host", "")):
            return True
        self.send_error(403, "Forbidden", "the Host header names another host: ask for 127.0.0.1 or localhost")
        return False

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (name of the base class)
        """Write nothing: stderr is for words to the operator."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, address: ListenAddress) -> None:
        self.open_requests = OpenRequests(MOST_CONNECTIONS)
        self._answers = threading.BoundedSemaphore(MOST_ANSWERS)
        self._checks_host = address.path is None and address.local
        self._is_unix = address.path is not None
        if address.path is not None:
            self.address_family = socket.AF_UNIX
            super().__init__(str(address.path), _Handler)  # type: ignore[arg-type] # of AF_INET in typeshed
        else:
            self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            super().__init__((address.host, address.port), _Handler)

    def server_bind(self) -> None:
        # That of HTTPServer resolves the name of the host, which may take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name = "localhost"
        self.server_port = 0 if self._is_unix else self.server_address[1]
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        request, client = super().get_request()
        return request, ("unix", 0) if self._is_unix else client

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (as the base class)
        if not self.open_requests.add(request):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 (as the base class)
        self.open_requests.remove(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that take too long; the base class calls this ten times a second."""
        self.open_requests.end_overdue()

    def is_for_us(self, host: str) -> bool:
        """Whether the Host header of a request is ours, so that no page in a browser reads it by a name of its own.

        Such a page asks for addresses of this host alone only (DNS rebinding); the operator gave others names that are
        not known here.
        """
        if not self._checks_host or not host:
            return True
        name = _PORT.sub("", host).removeprefix("[").removesuffix("]").lower()
        try:
            return name == "localhost" or ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False

    def get_app(self) -> Any:  # noqa: ANN401 (as the base class)
        """Return the application, which makes a number of answers at a time."""
        app = super().get_app()
        assert app is not None

        def limited(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:  # noqa: ANN401 (as above)
            with self._answers:
                return app(environ, start_response)

        return limited

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (as the base class)
        """Ignore a client that went away."""


def make_app(text: Text) -> App:
    """Make the WSGI application.

    Raises:
        LunscopeError: prometheus_client is not installed.
    """
    registry = make_registry(text)
    from prometheus_client import make_wsgi_app  # noqa: PLC0415 (an extra)

    library: App = make_wsgi_app(registry)

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        accepted = environ.get("HTTP_ACCEPT", "")
        plain = not accepted or "text/plain" in accepted or "*/*" in accepted
        if environ["REQUEST_METHOD"] != "GET" or environ.get("QUERY_STRING") or not plain:
            return library(environ, start_response)
        body = text()
        start_response("200 OK", [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body)))])
        return [body]

    return app


@contextmanager
def serving(address: ListenAddress, text: Text) -> Iterator[ListenAddress]:
    """Serve while entered; yields the address with the port that was chosen for 0.

    Raises:
        LunscopeError: the address cannot be used, or prometheus_client is not installed.
    """
    app = make_app(text)
    if address.path is not None:
        _remove_stale(address.path)
    try:
        server = _Server(address)
    except OSError as error:
        raise unusable(f"--listen {address}: {words_of(error)}", error) from None
    with server:
        if address.path is not None:
            address.path.chmod(SOCKET_MODE)
        server.set_app(app)
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="lunscope-metrics", daemon=True)
        thread.start()
        try:
            yield address if address.path is not None else ListenAddress(address.host, server.server_port)
        finally:
            server.shutdown()
            thread.join()
            if address.path is not None:
                address.path.unlink(missing_ok=True)


def _remove_stale(path: Path) -> None:
    """Remove a socket on which nobody listens."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise RefusedError(f"--listen unix:{path}: exists and is no socket: use another name")
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == errno.ECONNREFUSED:
                path.unlink()


HEAD_S = 5.0
"""Time until the whole request must have come, however its bytes are spread."""
WHOLE_S = 30.0
"""Time until the whole answer must have been taken."""
_LEAST_S = 1.0
"""A younger connection is not ended for another one; those without a request are ended first."""


class OpenRequests:
    """Ends connections that are overdue, and one where another would be too many.

    A timeout of the socket begins again with each byte: with one byte a second a client would keep a place for hours.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: dict[socket.socket, tuple[bool, float]] = {}
        """Whether the request of each has come, and when the connection began."""

    def add(self, connection: socket.socket) -> bool:
        """Note a new connection; False where it is one too many, and none can be ended for it."""
        now_s = time.monotonic()
        with self._lock:
            if len(self._open) >= self._most:
                oldest = min(self._open, key=self._open.__getitem__)
                if now_s - self._open[oldest][1] < _LEAST_S:
                    return False
                self._end(oldest)
            self._open[connection] = False, now_s
        return True

    def has_come(self, connection: socket.socket) -> None:
        """Note that the request is complete."""
        with self._lock:
            if connection in self._open:
                self._open[connection] = True, self._open[connection][1]

    def remove(self, connection: socket.socket) -> None:
        """Note that a connection is closed."""
        with self._lock:
            self._open.pop(connection, None)

    def end_overdue(self) -> None:
        """End what takes too long; called often."""
        now_s = time.monotonic()
        with self._lock:
            for connection, (has_come, begun_s) in tuple(self._open.items()):
                if now_s - begun_s >= (WHOLE_S if has_come else HEAD_S):
                    self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        del self._open[connection]
        with contextlib.suppress(OSError):  # the client has closed it
            connection.shutdown(socket.SHUT_RDWR)


class _Families:
    """Implements the collector protocol of prometheus_client."""

    def __init__(self, text: Callable[[], bytes]) -> None:
        self._text = text

    def describe(self) -> Iterator[Metric]:
        """All families that there can be, so that `name[]` finds them."""
        from prometheus_client.metrics_core import Metric  # noqa: PLC0415 (an extra)

        for level in (*LEVELS, ALWAYS):
            for family in level.families:
                yield Metric(family.name.removesuffix("_total"), family.help, str(family.kind))

    def collect(self) -> Iterator[Metric]:
        """All families with their values."""
        from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 (an extra)

        yield from text_string_to_metric_families(self._text().decode())


def make_registry(text: Callable[[], bytes]) -> CollectorRegistry:
    """Make a registry of prometheus_client over the exposition.

    Raises:
        LunscopeError: prometheus_client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise missing_extra("--listen", "prometheus_client", "metrics", "use --textfile") from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(text))
    return registry
