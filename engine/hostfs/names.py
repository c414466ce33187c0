"""How the kernel spells names and device numbers."""

from __future__ import annotations

import os
import re

_OCTAL = re.compile(r"\\([0-7]{3})")


def unescape_octal(text: str) -> str:
    r"""Undo the `\040` escapes of /proc/*/mountinfo and /proc/swaps (proc(5))."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def device_text(number: int) -> str:
    """Spell a device number as sysfs does, `8:1`."""
    return f"{os.major(number)}:{os.minor(number)}"
