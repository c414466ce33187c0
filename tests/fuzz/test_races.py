"""A short run of the races, and one that must fail: the oracle sees what a guard without questions would accept."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from tests import needs
from tests.fuzz import races

pytestmark = pytest.mark.alone

SEED = 1


@needs.root
@needs.loop
@needs.mkfs_ext4
def test_nothing_in_use_is_accepted_in_a_short_run() -> None:
    assert races.run(SEED, 10_000, 4.0) > 0


def test_races_of_names_need_no_rights() -> None:
    with patch("os.geteuid", return_value=1000):
        assert races.run(SEED, 10_000, 1.0) > 0


@needs.root
@needs.loop
@needs.mkfs_ext4
def test_a_guard_that_asks_nobody_is_found_out() -> None:
    with (
        patch("engine.guard.target.refuse_claimed_elsewhere"),
        patch("engine.guard.permission.refuse_claimed_elsewhere"),
        patch("engine.guard.claim_check.is_claimed", return_value=False),
        patch.object(races, "_ON_DEVICES", (races._claimed,)),
        pytest.raises(AssertionError, match="while it was claimed"),
    ):
        races.run(SEED, 1000, 120.0)
