"""Messages of the helper's socket: a frame with lengths, a JSON head, and arrays."""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.strict_json import dump_json, load_json_object

VERSION = 2
"""Version of the messages; both sides must have the same."""
DEFAULT_PATH = "/run/lunscope/probe.sock"
PATH_VARIABLE = "LUNSCOPE_PROBE"
"""Environment variable with the path of another socket."""

MOST_HEAD_BYTES = 4 << 20
MOST_ARRAY_BYTES = 64 << 20
"""Peaks of 19,200 busy devices are under 1 MiB."""
MOST_REQUEST_BYTES = 1 << 20
"""Largest head of a request: the names of 19,200 devices in groups take a third of it."""

_FRAME = struct.Struct("<II")
_TYPES: dict[str, np.dtype[Any]] = {"u4": np.dtype("<u4"), "u8": np.dtype("<u8")}
_MOST_DIMENSIONS = 2
_PART_BYTES = 1 << 20


class MessageError(OSError):
    """The peer sent something that is not a message, or disconnected within one."""


class ConnectionEnded(MessageError):  # noqa: N818 - the ordinary end between two messages
    """The peer closed the connection between two messages."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One message in either direction."""

    head: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """uint32 or uint64, one or two dimensions."""


class Incoming:
    """Assembles messages from the parts in which they arrive.

    A sender chooses all lengths, so nothing is allocated for bytes that have not arrived.
    """

    def __init__(self, most_head: int = MOST_HEAD_BYTES, most_arrays: int = MOST_ARRAY_BYTES) -> None:
        self._most = (most_head, most_arrays)
        self._lengths: tuple[int, int] | None = None
        self._held = bytearray()

    @property
    def wanted(self) -> int:
        """Bytes to the end of the frame, or of the message once its frame is read; never those of the next message."""
        return (_FRAME.size if self._lengths is None else sum(self._lengths)) - len(self._held)

    @property
    def begun(self) -> bool:
        """Whether part of a message has arrived."""
        return bool(self._held) or self._lengths is not None

    @property
    def held_bytes(self) -> int:
        """Memory of the unfinished message."""
        return len(self._held)

    def add(self, part: bytes) -> Message | None:
        """Add received bytes, at most `wanted`; return the message that they complete.

        Raises:
            MessageError: the message is too long or invalid, or the connection ended (`part` is empty).
        """
        if not part:
            raise (
                MessageError("the connection ended in a message")
                if self.begun
                else ConnectionEnded("the connection ended")
            )
        self._held += part
        if self._lengths is None and not self.wanted:
            self._lengths = self._checked(*_FRAME.unpack(self._held))
            self._held.clear()
        if self._lengths is None or self.wanted:
            return None
        head, body = bytes(self._held[: self._lengths[0]]), bytes(self._held[self._lengths[0] :])
        self._lengths, self._held = None, bytearray()
        return decode(head, body)

    def _checked(self, head_bytes: int, array_bytes: int) -> tuple[int, int]:
        if head_bytes > self._most[0] or array_bytes > self._most[1]:
            raise MessageError("a message is too long")
        if not head_bytes:
            raise MessageError("a message has no head")
        return head_bytes, array_bytes


def encode(message: Message) -> bytes:
    """Encode a message with its frame."""
    arrays = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    shapes = {name: [array.dtype.str[1:], *array.shape] for name, array in arrays.items()}
    head = dump_json({**message.head, "arrays": shapes}).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    return _FRAME.pack(len(head), len(body)) + head + body


def decode(head: bytes, body: bytes) -> Message:
    """Decode a message from its two complete parts.

    Raises:
        MessageError: the bytes are not a message; nothing else is raised.
    """
    try:
        known = load_json_object(head)
        arrays = dict(_arrays(known.pop("arrays", None), body))
    except (ValueError, TypeError) as error:
        raise MessageError(f"not a message of the probe helper: {_short(error)}") from None
    return Message(known, arrays)


def send(connection: socket.socket, message: Message) -> None:
    """Send a message, waiting as long as the socket's timeout allows.

    Raises:
        OSError: the peer disconnected or does not read.
    """
    connection.sendall(encode(message))


def receive(connection: socket.socket, within_s: float) -> Message:
    """Wait for a complete message.

    Raises:
        MessageError: the connection ended, or the bytes are not a message.
        OSError: it was not complete in time; ETIMEDOUT.
    """
    incoming, deadline_s = Incoming(), time.monotonic() + within_s
    while True:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"no whole message within {within_s:g} s")
        connection.settimeout(left_s)
        message = incoming.add(connection.recv(min(incoming.wanted, _PART_BYTES)))
        if message is not None:
            return message


def _arrays(shapes: object, body: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    if not isinstance(shapes, dict):
        raise TypeError("the head does not describe its arrays")
    start = 0
    for name, described in shapes.items():
        kind, shape = _described(described)
        end = start + math.prod(shape) * kind.itemsize
        if end > len(body):
            raise ValueError("an array is larger than what came")
        yield name, np.frombuffer(body[start:end], kind).reshape(shape)
        start = end
    if start != len(body):
        raise ValueError("bytes that belong to no array")


def _described(described: object) -> tuple[np.dtype[Any], list[int]]:
    if not isinstance(described, list) or not described or not isinstance(described[0], str):
        raise TypeError("an array is not described by its type and shape")
    kind, shape = _TYPES.get(described[0]), described[1:]
    # Each dimension has its own bound: next to a dimension of 0 any number would fit.
    plain = all(type(size) is int and 0 <= size <= MOST_ARRAY_BYTES for size in shape)
    if kind is None or not 1 <= len(shape) <= _MOST_DIMENSIONS or not plain:
        raise TypeError("an array has a type or shape that is never sent")
    return kind, shape


def _short(error: Exception) -> str:
    return str(error)[:100]
