"""The exact tier when the host changes: a CPU leaves, the clock steps, a disk vanishes, the kernel locks down."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from collectors.model import MISSING
from tests import needs
from tests.lab.count_exactly import READS
from tests.lab.guest import KERNELS, run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

INTERVAL_S = 2.0


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    script = "python3 -m tests.lab.exact_trouble /dev/nullb0"
    lines = run_in_guest("null-blk", script, "--kernel", KERNELS[0]).splitlines()
    document: dict[str, Any] = next(json.loads(line) for line in lines if line.startswith("{"))
    return document


def test_a_cpu_that_leaves_and_comes_back_loses_nothing(found: dict[str, Any]) -> None:
    row = found["cpu"]
    assert row["reads"] == 3 * READS
    assert row["in_flight_now"] == row["unstamped"] == 0
    if found["fetch"]:
        assert 0 < row["busy_ns"] <= row["service_read_ns"]
    else:
        assert row["busy_ns"] == MISSING


def test_maps_that_are_refused_for_memory_are_named(found: dict[str, Any]) -> None:
    doctor = found["memory"]
    if doctor["status"] == "ok":
        pytest.skip("this kernel counts no maps as locked memory (from Linux 5.11 on)")
    assert doctor["status"] == "missing"
    assert "locked memory" in doctor["found"]


def test_a_clock_that_steps_an_hour_changes_no_figure(found: dict[str, Any]) -> None:
    idle, *rows = found["clock"]
    assert len(rows) == 3
    assert idle["iops"] == idle["busy_pct"] == 0
    assert idle["await_ms"] is None
    for row in rows:
        assert row["tiers"]["await_ms"] == "exact"
        assert (row["tiers"]["busy_pct"] == "exact") is found["fetch"]
        assert row["iops"] * INTERVAL_S == pytest.approx(READS, rel=0.2)
        assert 0 < row["busy_pct"] < 100
        assert 0 < row["max_ms"] < 1e3 * INTERVAL_S


def test_a_disk_that_vanishes_with_ios_in_flight_leaves_none_behind(found: dict[str, Any]) -> None:
    vanished = found["vanished"]
    assert vanished["under_way"]
    gone = vanished["gone"]
    assert gone["in_flight_now"] == gone["in_driver_now"] == 0
    assert gone["service_max_ns"] >= 0.9e9
    longest_ns = sum(gone[f"service_{kind}_ns"] for kind in ("read", "write")) + gone["others"] * 2e9
    assert gone["busy_ns"] <= longest_ns or not found["fetch"]


def test_a_disk_that_gets_the_number_of_another_has_its_own_name(found: dict[str, Any]) -> None:
    first, second = found["again"]
    if first["disk"] == "first":
        assert first["number"] == second["number"]
    assert first["is_known"]
    assert second["is_known"]


def test_a_kernel_that_is_locked_down_is_named_and_the_next_tier_serves(found: dict[str, Any]) -> None:
    locked = found["locked"]
    assert locked["doctor"]["status"] == "missing"
    assert locked["doctor"]["found"] == "the kernel is locked down (confidentiality)"
    assert "probe" not in locked["doctor"]["mend"]
    assert locked["tier"] == "sampled"
