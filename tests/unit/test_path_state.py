"""Whether a path takes I/O, by what hinders most."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.graph import Path
from collectors.paths.state import PathLevel, state_of


@pytest.mark.parametrize(
    ("facts", "level", "word"),
    [
        ({}, PathLevel.ACTIVE, ""),
        ({"state": "running"}, PathLevel.ACTIVE, "active"),
        ({"state": "live", "access": "optimized"}, PathLevel.ACTIVE, "active"),
        ({"state": "running", "access": "active/non-optimized"}, PathLevel.SECONDARY, "non-optimized"),
        ({"state": "running", "access": "standby"}, PathLevel.STANDBY, "standby"),
        ({"state": "live", "access": "inaccessible"}, PathLevel.STANDBY, "inaccessible"),
        ({"state": "live", "access": "persistent-loss"}, PathLevel.DOWN, "persistent-loss"),
        ({"state": "running", "access": "unavailable"}, PathLevel.DOWN, "unavailable"),
        ({"state": "running", "access": "active/optimized", "marginal": True}, PathLevel.MARGINAL, "marginal"),
        ({"state": "offline", "marginal": True}, PathLevel.DOWN, "offline"),
        ({"state": "offline"}, PathLevel.DOWN, "offline"),
        ({"state": "connecting", "access": "optimized"}, PathLevel.DOWN, "connecting"),
        ({"state": "running", "access": "active/optimized", "map_state": "failed"}, PathLevel.DOWN, "failed"),
        ({"state": "bad\x1b[31m"}, PathLevel.DOWN, "bad\\x1b[31m"),
    ],
)
def test_state(facts: dict[str, Any], level: PathLevel, word: str) -> None:
    path = Path("k", "sda", "lun", **facts)
    assert state_of(path) == (level, word)
    assert (level in {PathLevel.ACTIVE, PathLevel.SECONDARY, PathLevel.MARGINAL}) == path.usable
