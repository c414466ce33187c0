"""Loads over a suspended device-mapper device and a paused network block device, in a guest that has them."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest
from tests.lab.stall_in_guest import DEPTH, ENDING

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

KERNELS = ["6.1", "backports"]
CASES = [f"{kind}-{number.name}" for kind in ("dm", "nbd") for number in ENDING]


@pytest.fixture(scope="module", params=KERNELS)
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    options = () if request.param == "6.1" else ("--kernel", request.param)
    lines = run_in_guest("null-blk", "python3 -m tests.lab.stall_in_guest", *options).splitlines()
    document: dict[str, Any] = next(json.loads(line) for line in lines if line.startswith("{"))
    return document


@pytest.mark.parametrize("case", CASES)
def test_a_stalled_device_is_named_and_a_second_signal_ends_the_load(found: dict[str, Any], case: str) -> None:
    row = found[case]
    assert row["named_after_s"] is not None, row
    assert row["named_after_s"] < 2.0 + 2.0, "two seconds more are for the emulated processor"
    assert row["after_first"] is None, "the first signal waits for what is outstanding"
    assert row["code"] == 128 + signal.Signals[case.partition("-")[2]], row
    assert row["took_s"] < 30, "the emulated processor needs its time to leave"
    assert row["ended"] == "stopped"
    assert [each["ios"] for each in row["outstanding"]] == [DEPTH]
