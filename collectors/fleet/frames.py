"""Frames between the controller and the agent of a host: one JSON object a line, versioned and limited in size.

Each line begins with MAGIC, so that what a login shell prints (motd, profile scripts) is not taken for a frame.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from collectors.session import objects
from collectors.session.format import DamageError
from engine.errors import LunscopeError

MAGIC = b"@lunscope "
PROTOCOL = 3
"""Incremented when an older controller or agent could misread a frame; not for new fields, which are ignored."""
MAX_LINE_BYTES = 8 << 20
"""Longest line: the device graph of 19,200 paths takes 0.5 MB compressed."""
MAX_GARBAGE_BYTES = 64 << 10
"""Most bytes before the first frame."""


class FrameError(LunscopeError):
    """A line is no frame, or a frame lacks a field."""


Frame = Mapping[str, Any]
"""A frame by field; `type` says which it is."""


def encode(type_: str, **fields: object) -> bytes:
    """Write a frame as a line."""
    return MAGIC + objects.dump({"type": type_, **fields}) + b"\n"


def is_frame(line: bytes) -> bool:
    """Whether a line claims to be a frame."""
    return line.startswith(MAGIC)


def decode(line: bytes) -> Frame:
    """Read a line.

    Raises:
        FrameError: it is no frame.
    """
    if len(line) > MAX_LINE_BYTES:
        raise FrameError(f"a line of {len(line):,} bytes")
    if not is_frame(line):
        raise FrameError("a line that is no frame")
    try:
        frame = objects.load(line[len(MAGIC) :])
    except (DamageError, UnicodeDecodeError) as error:
        raise FrameError(f"a damaged frame: {error}") from None
    text(frame, "type")
    return frame


def whole(frame: Frame, field: str) -> int:
    """Return a whole number of a frame.

    Raises:
        FrameError: it has no such field; so for the other functions here.
    """
    value = frame.get(field)
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise FrameError(f"a frame without {field}")
    return value


def text(frame: Frame, field: str) -> str:
    """Return a text of a frame."""
    value = frame.get(field)
    if not isinstance(value, str):
        raise FrameError(f"a frame without {field}")
    return value


def texts(frame: Frame, field: str) -> tuple[str, ...]:
    """Return a list of texts of a frame."""
    value = frame.get(field)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FrameError(f"a frame without {field}")
    return tuple(value)


def pack(data: bytes) -> str:
    """Write bytes as text."""
    return base64.b64encode(data).decode("ascii")


def unpack(value: object) -> bytes:
    """Undo `pack`.

    Raises:
        FrameError: it is no such text.
    """
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise FrameError("a frame with damaged bytes")
