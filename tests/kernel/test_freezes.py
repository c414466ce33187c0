"""A filesystem of this kernel that is frozen: its begin and end are the kernel's own, and an event each."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from collectors.exact.tracer_supervisor import open_freezes
from collectors.tables.background.freezes import ATTACHED_AT, FrozenFilesystems
from engine.events import Event
from tests import needs
from tests.kernel.conftest import Storage, run

pytestmark = [needs.root, needs.loop, needs.mkfs_ext4, needs.fsfreeze, needs.tracer]

PATIENCE_S = 60.0
LASTS_S = 0.5


def test_a_freeze_is_an_event_from_its_begin_to_its_end(storage: Storage) -> None:
    device = storage.mkfs(storage.loop())
    name, point = Path(device).name, str(storage.mount(device))
    frozen = FrozenFilesystems(lambda: open_freezes("/proc", "/sys"))
    try:
        _attach(frozen)
        moments = [time.monotonic_ns()]
        run("fsfreeze", "--freeze", point)
        try:
            moments.append(time.monotonic_ns())
            # Others may freeze theirs meanwhile.
            works, begun = frozen.read()
            assert f"{name} freeze" in {work.key for work in works}
            time.sleep(LASTS_S)
            moments.append(time.monotonic_ns())
        finally:
            run("fsfreeze", "--unfreeze", point)
        moments.append(time.monotonic_ns())
        works, ended = frozen.read()
        assert f"{name} freeze" not in {work.key for work in works}
        began_ns, ended_ns = _of(name, begun, "began"), _of(name, ended, "ended after")
        assert moments[0] <= began_ns <= moments[1]
        assert moments[2] <= ended_ns <= moments[3]
        assert ended_ns - began_ns >= LASTS_S * 1e9
        assert frozen.read()[1] == []
    finally:
        frozen.close()


def _attach(frozen: FrozenFilesystems) -> None:
    for _ in range(ATTACHED_AT):
        frozen.read()
    deadline_s = time.monotonic() + PATIENCE_S
    while frozen._attached.program is None:
        if refusal := frozen._attached.refusal:
            pytest.skip(f"needs programs on functions of the kernel: {refusal}")
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def _of(name: str, events: list[Event], words: str) -> int:
    (event,) = (each for each in events if each.text.startswith(f"{name}: freeze {words}"))
    return event.monotonic_ns
