"""Filesystems that are frozen, from programs on the kernel's freeze and thaw: it shows that nowhere else."""

from __future__ import annotations

import time
from collections.abc import Callable

from collectors.kernel.identity import storable_name
from collectors.sampling.attached import LONGEST_PAUSE_S, AttachedProgram
from collectors.sampling.programs import FreezeProgram
from collectors.tables.background.schema import ArrayWork
from engine.events import Event, EventKind
from engine.text import safe_text

ATTACHED_AT = 5
"""Reading that attaches."""
_ACTION = "freeze"


class FrozenFilesystems:
    """Attaches the programs in a thread once a host is watched for a while: that takes 0.1 s of a processor."""

    def __init__(self, open_program: Callable[[], FreezeProgram]) -> None:
        """Nothing is attached yet; `open_program` raises OSError or LunscopeError where it cannot attach."""
        self._attached = AttachedProgram("freezes", open_program, LONGEST_PAUSE_S)
        self._readings = 0
        self._ended: dict[tuple[str, int], bool] = {}
        """Freezes by name and begin, and whether they have ended."""

    def read(self) -> tuple[list[ArrayWork], list[Event]]:
        """Return what is frozen now, and the begins and ends since the last reading, at the kernel's own times."""
        self._readings += 1
        if self._readings == ATTACHED_AT:
            self._attached.start()
        program, works, events = self._attached.program, list[ArrayWork](), list[Event]()
        found = [] if program is None else program.read()
        for kernel_name, _, _, began_ns, ended_ns in sorted(found, key=lambda each: each[3]):
            name = storable_name(kernel_name)
            before = self._ended.get((name, began_ns))
            if before is None:
                events.append(_event(name, "began", began_ns))
            if ended_ns and not before:
                events.append(_event(name, f"ended after {(ended_ns - began_ns) / 1e9:.1f} s", ended_ns))
            if not ended_ns:
                works.append(ArrayWork(name, _ACTION, lasts_ms=max(time.monotonic_ns() - began_ns, 0) // 1_000_000))
        self._ended = {(storable_name(each[0]), each[3]): bool(each[4]) for each in found}
        return works, events

    def close(self) -> None:
        """Detach."""
        self._attached.close()


def _event(name: str, what: str, at_ns: int) -> Event:
    text = f"{safe_text(name)}: {_ACTION} {what}"
    return Event.now(EventKind.BACKGROUND, text, name=name, action=_ACTION).moved_to(at_ns)
