"""How the kernel's files write a value: alone, in brackets among others, or in a line of one device."""

from __future__ import annotations

import re
from typing import Protocol

from msgspec import Struct

NO_LIMIT = "max"
_BRACKETS = re.compile(r"\[([^\]\s]+)\]")


class ValueForm(Protocol):
    """Text of a file to value and back; `device` is the number (`8:16`) of a line, empty for the default line."""

    def value(self, text: str, device: str) -> str:
        """Return the value in the content of the file."""

    def line(self, value: str, device: str) -> str:
        """Return what to write to set a value."""


class Plain(Struct, frozen=True):
    """The value is the whole file."""

    def value(self, text: str, device: str) -> str:  # noqa: ARG002 - as the protocol
        """Return the file."""
        return text

    def line(self, value: str, device: str) -> str:  # noqa: ARG002 - as the protocol
        """Return the value."""
        return value


PLAIN = Plain()


class OffAsNegative(Struct, frozen=True):
    """The file shows `off`, and takes any negative number for it (ctrl_loss_tmo of drivers/nvme/host/sysfs.c)."""

    def value(self, text: str, device: str) -> str:  # noqa: ARG002 - as the protocol
        """Return the file."""
        return OFF if text == "-1" else text

    def line(self, value: str, device: str) -> str:  # noqa: ARG002 - as the protocol
        """Return the value, or the number that means off."""
        return "-1" if value == OFF else value


OFF = "off"


class Bracketed(Struct, frozen=True):
    """All values, the present one in brackets: `none [mq-deadline] kyber`."""

    def value(self, text: str, device: str) -> str:  # noqa: ARG002 - as the protocol
        """Return the word in brackets, or the file where there are none (bio-based devices)."""
        found = _BRACKETS.search(text)
        return found[1] if found else text

    def line(self, value: str, device: str) -> str:  # noqa: ARG002 - as the protocol
        """Return the value."""
        return value


def words_of_brackets(text: str) -> tuple[str, ...]:
    """List all values of such a file."""
    return tuple(text.replace("[", " ").replace("]", " ").split())


class DeviceKey(Struct, frozen=True):
    """One key of the line of a device: `8:16 rbps=1048576 wbps=max` (io.max, io.latency of cgroup v2)."""

    key: str

    def value(self, text: str, device: str) -> str:
        """Return the value of the key; `max` without a line, which is no limit."""
        words = dict(word.partition("=")[::2] for word in _line_of(text, device).split())
        return words.get(self.key, NO_LIMIT)

    def line(self, value: str, device: str) -> str:
        """Return the line with this key only; the kernel keeps the others."""
        return f"{device} {self.key}={value}"


class Weight(Struct, frozen=True):
    """`default 100`, and lines of devices that differ: `8:16 200` (io.weight of cgroup v2)."""

    def value(self, text: str, device: str) -> str:
        """Return the weight; `default` for a device without a line."""
        if not device:
            # io.bfq.weight of older kernels shows the number alone.
            return _line_of(text, "default") or text.partition("\n")[0]
        return _line_of(text, device) or "default"

    def line(self, value: str, device: str) -> str:
        """Return the line of the device or of the default."""
        return f"{device or 'default'} {value}"


class Throttle(Struct, frozen=True):
    """`8:16 1048576` (blkio.throttle.* of cgroup v1), where 0 removes the limit."""

    def value(self, text: str, device: str) -> str:
        """Return the limit; `max` without a line."""
        return _line_of(text, device) or NO_LIMIT

    def line(self, value: str, device: str) -> str:
        """Return the line of the device."""
        return f"{device} {'0' if value == NO_LIMIT else value}"


def devices_of(text: str) -> tuple[str, ...]:
    """List the devices that have a line."""
    first = (line.split(" ", 1)[0] for line in text.splitlines())
    return tuple(word for word in first if ":" in word)


def _line_of(text: str, device: str) -> str:
    for line in text.splitlines():
        first, _, rest = line.partition(" ")
        if first == device:
            return rest.strip()
    return ""
