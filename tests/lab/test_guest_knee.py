"""The knee of a device whose curve is known in closed form, through a real kernel: null_blk with a timer.

With irqmode=2 each request is completed completion_nsec = S after it was issued, and hw_queue_depth = D requests can be
issued at a time (Documentation/block/null_blk.rst): X(N) = min(N, D) / S and R(N) = max(S, N S / D).
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import defaultdict
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

SERVICE_S, DEPTH = 0.005, 8
"""Slow enough that emulated processors are not the limit: D / S is 1,600 IOPS."""
OVERHEAD = 0.20
"""By how much an I/O may take longer than S, for submission, interrupt and completion on emulated processors."""
DEVICE = f"""
device=/sys/kernel/config/nullb/knee; mkdir $device
timer="queue_mode=2 irqmode=2 completion_nsec={SERVICE_S * 1e9:.0f} hw_queue_depth={DEPTH} submit_queues=1"
for pair in $timer size=1024; do echo ${{pair#*=}} > $device/${{pair%%=*}}; done
echo 1 > $device/power; udevadm settle
"""
SWEEP = "python3 -m tui sweep --vary qd=1..64 --target /dev/knee --json"
SEARCH = "python3 -m tui sweep --target /dev/knee --json"
ONE = "--slo 'p99<=20ms'"
THREE = "--slo 'p50<=8ms' --slo 'p90<=12ms' --slo 'p99<=20ms'"


def _documents(script: str) -> list[dict[str, Any]]:
    lines = run_in_guest("null-blk", DEVICE + script).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_sweep_finds_the_closed_form_knee() -> None:
    (document,) = _documents(SWEEP)
    (curve,) = document["curves"]
    answer, trials = curve["answer"], curve["trials"]
    # Interrupts of a deep queue cost emulated processors a few percent, which is a low peak.
    assert answer["shape"] in ("knee", "peak")
    assert abs(math.log2(answer["best_balance"]["load"] / DEPTH)) <= 1
    assert abs(math.log2(answer["highest_throughput"]["load"] / DEPTH)) <= 1
    assert answer["best_balance"]["iops"] == pytest.approx(DEPTH / SERVICE_S, rel=2 * OVERHEAD)
    assert answer["little"]["holds"], "I/Os in flight are IOPS x latency"
    points: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for trial in trials:
        assert trial["errors"] == 0
        points[trial["load"]].append(trial)
    assert set(points) >= {1, 2, 4, 8, 16, 32, 64}
    for load, same in points.items():
        iops = statistics.median(trial["iops"] for trial in same)
        latency_s = statistics.median(trial["latency_us"]["mean"] for trial in same) / 1e6
        throughput, response_s = min(load, DEPTH) / SERVICE_S, max(SERVICE_S, load * SERVICE_S / DEPTH)
        assert (1 - OVERHEAD) * throughput <= iops <= 1.02 * throughput, load
        assert 0.98 * response_s <= latency_s <= response_s / (1 - OVERHEAD) * 1.05, load


def test_three_limits_cost_at_most_one_and_a_half_times_one() -> None:
    """In time of the load, which the trials are; how fast the emulated processors turn its knobs is not in it."""
    one, three = _documents(f"{SEARCH} {ONE}\n{SEARCH} {THREE}")
    spent_s = [each["open_loop"]["searches"][0]["measured_s"] for each in (one, three)]
    assert [each["complete"] for each in (one, three)] == [True, True]
    assert spent_s[1] <= 1.5 * spent_s[0]
