"""Tunables of md arrays: Documentation/admin-guide/md.rst."""

from __future__ import annotations

from msgspec import Struct

from engine.tune.tunable import Tunable, TunedKind, between, fixed

_SYSTEM = "system"


class SystemOrLocal(Struct, frozen=True):
    """`1000 (system)`, as the host has it, or `2000 (local)` (sync_min_show, drivers/md/md.c)."""

    def value(self, text: str, device: str) -> str:  # noqa: ARG002 - as the protocol
        """Return the array's own speed; `system` without one."""
        speed, _, origin = text.partition(" ")
        return _SYSTEM if origin == f"({_SYSTEM})" else speed

    def line(self, value: str, device: str) -> str:  # noqa: ARG002 - as the protocol
        """Return the value."""
        return value


def _speed(name: str, help_text: str) -> Tunable:
    return Tunable(
        name,
        TunedKind.DISK,
        f"md/{name}",
        help_text,
        "KiB/s",
        SystemOrLocal(),
        legal=between(1, None, _SYSTEM),
        default=fixed(_SYSTEM),
    )


ARRAYS = (
    _speed("sync_speed_min", "md check, resync: at least this; 'system': as the host"),
    _speed("sync_speed_max", "md check, resync: at most this; 'system': as the host"),
)
