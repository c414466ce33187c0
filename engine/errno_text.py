"""Errors of single I/Os in words."""

from __future__ import annotations

import errno
import os


def error_name(code: int) -> str:
    """Name an errno, as in EIO; "short" for 0, a transfer that moved fewer bytes than requested."""
    return "short" if code == 0 else errno.errorcode.get(code, f"errno {code}")


def error_message(code: int) -> str:
    """Say what an errno means."""
    return "fewer bytes were moved than asked for" if code == 0 else os.strerror(code)


def describe_error(code: int, direction: str, offset: int) -> str:
    """As in "EIO Input/output error, read at offset 4096"."""
    return f"{error_name(code)} {error_message(code)}, {direction} at offset {offset}"
