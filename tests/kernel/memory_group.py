"""A control group whose memory is limited, by the controller of either version."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOTS = ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max"))
PATIENCE_S = 10.0


def refusal() -> str:
    if os.geteuid() != 0:
        return "not root"
    return "" if _found() else "no control group here has the memory controller for its children"


def _found() -> tuple[Path, str] | None:
    for root, limit in _ROOTS:
        enabled = root / "cgroup.subtree_control"
        if (root / "cgroup.procs").exists() and (not enabled.exists() or "memory" in enabled.read_text().split()):
            return root, limit
    return None


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """Make one; processes join it by writing their number to its cgroup.procs, and have left it in the end."""
    found = _found()
    assert found is not None, refusal()
    root, limit = found
    folder = root / f"lunscope-test-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / limit).write_text(str(limit_bytes))
        yield folder
    finally:
        deadline_s = time.monotonic() + PATIENCE_S
        while (folder / "cgroup.procs").read_text() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        folder.rmdir()
