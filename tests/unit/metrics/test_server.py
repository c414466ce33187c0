"""The HTTP server of metrics beside clients that are slow, say nothing, or come from a page in a browser."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from tests import needs
from tui.headless import metrics_server
from tui.headless.metrics_server import MOST_CONNECTIONS, ListenAddress, serving

pytestmark = [needs.prometheus_client]
_PATIENCE_S = 30.0


@pytest.fixture
def port() -> Iterator[int]:
    with serving(ListenAddress(port=0), lambda: b"figure 1\n") as address:
        yield address.port


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), _PATIENCE_S)


def _asked(port: int, *lines: str) -> bytes:
    with _connected(port) as client:
        client.sendall("\r\n".join(("GET /metrics HTTP/1.1", *lines, "", "")).encode())
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LOCALHOST", "127.0.0.1", "[::1]:{}", "127.1.2.3"])
def test_who_asks_for_this_host_is_answered(port: int, host: str) -> None:
    assert _asked(port, f"Host: {host.format(port)}").endswith(b"figure 1\n")
    assert _asked(port).endswith(b"figure 1\n")


@pytest.mark.parametrize("host", ["evil.example:{}", "localhost.evil.example", "8.8.8.8", "127.0.0.1.evil", "[", "a b"])
def test_a_page_that_calls_this_host_by_its_own_name_is_refused(port: int, host: str) -> None:
    answer = _asked(port, f"Host: {host.format(port)}")
    assert answer.startswith(b"HTTP/1.0 403 Forbidden\r\n")
    assert b"figure" not in answer


def test_of_another_address_the_names_are_not_known() -> None:
    with serving(ListenAddress("0.0.0.0", 0), lambda: b"figure 1\n") as address:
        assert _asked(address.port, "Host: db1.example.com").endswith(b"figure 1\n")


def test_patience_is_for_the_request_and_not_for_each_byte(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "HEAD_S", 0.5)
    begun_s = time.monotonic()
    with _connected(port) as client, contextlib.suppress(OSError):
        client.settimeout(0.05)
        while time.monotonic() - begun_s < _PATIENCE_S:
            client.sendall(b"G")
            with contextlib.suppress(TimeoutError):
                if not client.recv(1):
                    break
    assert time.monotonic() - begun_s < _PATIENCE_S, "a byte now and then keeps a place for ever"


def test_clients_that_dribble_take_no_place_from_a_scrape(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_LEAST_S", 0.0)
    with contextlib.ExitStack() as slow:
        for _ in range(2 * MOST_CONNECTIONS):
            slow.enter_context(_connected(port)).sendall(b"GET /m")
            if _ % 8 == 0:
                assert _asked(port).endswith(b"figure 1\n")
