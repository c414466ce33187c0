"""Whether a process has ended, for tests that wait for one that is not their child."""

from __future__ import annotations

from pathlib import Path


def has_ended(process: int) -> bool:
    """Whether it is gone, or only waited for: a read of its file fails with ESRCH where it vanishes meanwhile."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
