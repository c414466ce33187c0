"""What goes over the helper's socket: a JSON head and arrays behind it, in a frame that says how long they are."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 1
"""Of the messages; both sides must have the same."""
DEFAULT_PATH = "/run/lunscope/probe.sock"
PATH_VARIABLE = "LUNSCOPE_PROBE"
"""Names another socket."""

MOST_HEAD_BYTES = 4 << 20
MOST_ARRAY_BYTES = 64 << 20
"""Peaks of 19,200 busy devices are under 1 MiB."""

_FRAME = struct.Struct("<II")
_TYPES = {"u4": np.uint32, "u8": np.uint64}


class MessageError(OSError):
    """The other side sent what cannot be a message, or went away in the middle of one."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One message of either side."""

    head: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """uint32 or uint64, one or two dimensions."""


def send(connection: socket.socket, message: Message) -> None:
    """Send a message.

    Raises:
        OSError: the other side is gone or takes nothing.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    shapes = {name: [array.dtype.str[1:], *array.shape] for name, array in arrays.items()}
    head = json.dumps({**message.head, "arrays": shapes}).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    connection.sendall(_FRAME.pack(len(head), len(body)) + head + body)


def receive(connection: socket.socket) -> Message:
    """Wait for a message.

    Raises:
        MessageError: the connection ended, or what came is none.
        OSError: nothing came in the time that the socket allows.
    """
    head_bytes, body_bytes = _FRAME.unpack(_exactly(connection, _FRAME.size))
    if head_bytes > MOST_HEAD_BYTES or body_bytes > MOST_ARRAY_BYTES:
        raise MessageError("a message is too long")
    head, body = _exactly(connection, head_bytes), _exactly(connection, body_bytes)
    try:
        known = json.loads(head)
        arrays = dict(_arrays(known.pop("arrays"), body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MessageError(f"not a message of the probe helper: {error}") from None
    return Message(known, arrays)


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise MessageError("the connection ended")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _arrays(shapes: Mapping[str, Sequence[Any]], body: bytes) -> list[tuple[str, NDArray[Any]]]:
    found, start = [], 0
    for name, (kind, *shape) in shapes.items():
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(body, _TYPES[kind], count, start).reshape(shape)
        found.append((name, array))
        start += array.nbytes
    return found
