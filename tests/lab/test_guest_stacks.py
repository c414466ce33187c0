"""Random stacks with dm-linear and dm-thin: nobody's bytes change, and what nobody uses is written."""

from __future__ import annotations

import sys

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

COUNT = 40


def test_random_stacks_with_maps() -> None:
    script = "modprobe -a loop dm_mod dm_thin_pool overlay ext4 && "
    script += f"python3 -m tests.fuzz.stacks --guard-only --seed 2 --count {COUNT} || true"
    said = run_in_guest("none", script, "--mem", "2048").splitlines()
    wrong = [(plan, outcome) for plan, outcome in zip(said, said[2:], strict=False) if "WRONG" in outcome]
    assert not wrong
    assert said[-1] == f"{COUNT} plans, 0 wrong"
    assert {kind for kind in ("dm-linear", "dm-thin") if any(kind in line for line in said)} == {"dm-linear", "dm-thin"}
