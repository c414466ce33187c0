"""In which order the tests are given to several workers, so that all of them end at the same time."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

SHORT = Path(__file__).parent / "unit"
"""Tests that take no time to speak of: what is left of them at the end can go to whoever is free."""


def ordered(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests as xdist cuts them into shares, one for each worker, before workers take tests of each other.

    A share has whole files. It begins with tests that may take a minute, so that none of them is the last one, alone:
    on every other worker those of devices, which wait, before them those marked `waits`, which wait longest, and on the
    rest those of screens, which compute.
    """
    long = [item for item in items if item.get_closest_marker("waits")]
    others = [item for item in items if not item.get_closest_marker("waits")]
    short = [item for item in others if item.path.is_relative_to(SHORT)]
    files = [[*file] for path, file in groupby(others, key=lambda item: item.path) if not path.is_relative_to(SHORT)]
    shares = [files[worker::workers][:: -1 if worker % 2 else 1] for worker in range(workers)]
    waiting = max(1, workers // 2)
    for worker in range(waiting):
        shares[(2 * worker + 1) % workers].insert(0, long[worker::waiting])
    result: list[pytest.Item] = []
    for worker, share in enumerate(shares, 1):
        result += [item for file in share for item in file]
        wanted = max(0, len(items) * worker // workers - len(result))
        result += short[:wanted]
        del short[:wanted]
    return result + short
