"""Where to listen: a port of 127.0.0.1, another address that is named, or a unix socket."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError
from engine.text import safe_text, short_text, whole_number

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 29100
"""node_exporter's port and 20,000."""
_UNIX = "unix:"


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
